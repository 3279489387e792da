"""Looking things up in a learner's source: only to point at a line, never to decide."""

from __future__ import annotations

import ast
import io
import re
import tokenize


def line_of_pattern(source: str, pattern: str | None) -> int | None:
    """1-based line of the first match's last line."""
    if not pattern:
        return None
    match = re.search(pattern, _code_only(source))
    return source.count("\n", 0, max(match.end() - 1, match.start())) + 1 if match else None


def _code_only(source: str) -> str:
    """The source with comments and docstrings blanked out, every character in its place."""
    lines = [list(line) for line in source.splitlines(keepends=True)]

    def blank(start: tuple[int, int], end: tuple[int, int]) -> None:
        for row in range(start[0] - 1, end[0]):
            first = start[1] if row == start[0] - 1 else 0
            last = end[1] if row == end[0] - 1 else len(lines[row])
            for column in range(first, last):
                if lines[row][column] != "\n":
                    lines[row][column] = " "

    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            docstring = token.type == tokenize.STRING and token.line.strip().startswith(('"""', "'''"))
            if token.type == tokenize.COMMENT or docstring:
                blank(token.start, token.end)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return source
    return "".join("".join(line) for line in lines)


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


def assigned_in_branch(source: str, name: str) -> bool:
    """Whether some `if` of the file gives the name a value."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    branches = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    return any(_assigns(node, name) for branch in branches for node in ast.walk(branch))


def assignment_in_loop(source: str, name: str, line: int) -> int | None:
    """The last line on which the loop that starts at this line, or holds it, gives the name a value."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    loops = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While))]
    around = [loop for loop in loops if loop.lineno <= line <= (loop.end_lineno or loop.lineno)]
    if not around:
        return None
    innermost = max(around, key=lambda loop: loop.lineno)
    lines = [n.lineno for n in ast.walk(innermost) if isinstance(n, ast.stmt) and _assigns(n, name)]
    return max(lines, default=None)


def _assigns(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Assign):
        targets = [t for target in node.targets for t in ast.walk(target)]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    else:
        return False
    return any(isinstance(t, ast.Name) and t.id == name for t in targets)
