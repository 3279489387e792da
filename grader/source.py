"""Looking things up in a learner's source: only to point at a line, never to decide."""

from __future__ import annotations

import ast
import re


def line_of_pattern(source: str, pattern: str | None) -> int | None:
    """1-based line of the first match's last line."""
    if not pattern:
        return None
    match = re.search(pattern, source)
    return source.count("\n", 0, max(match.end() - 1, match.start())) + 1 if match else None


def unmasked_access(source: str) -> tuple[str, int] | None:
    """The first tl.load ("load") or tl.store / tl.atomic_* ("store") of a tile without a mask, and its line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "tl"
    ]
    for node in sorted(calls, key=lambda n: n.lineno):
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        places = {"load": 2, "store": 3}
        if name not in places or any(k.arg == "mask" for k in node.keywords) or len(node.args) >= places[name]:
            continue
        if not any(isinstance(n, (ast.BinOp, ast.Name)) for n in ast.walk(node.args[0])):
            continue
        return name, node.lineno
    return None
