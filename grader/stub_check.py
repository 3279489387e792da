"""Is a submission the untouched stub, or not Python at all?"""

from __future__ import annotations

import ast

DEEPEST = 150  # levels of syntax tree; solutions have at most 13, and Python's own recursion ends below 1,000


def untouched(source: bytes, stub: bytes) -> bool:
    """Equal to the stub but for comments, docstring spacing and blank lines."""
    if source == stub:
        return True
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested beyond what Python can parse
        return False


def unreadable(source: bytes) -> tuple[str, int | None] | None:
    """Why the source cannot be parsed, and the line; None when it can."""
    try:
        line = _too_deep(ast.parse(source))
    except SyntaxError as error:
        return f"{type(error).__name__}: {error.msg}", error.lineno
    except ValueError as error:
        return str(error), None
    except (RecursionError, MemoryError):
        return "nested too deeply for Python to parse", None
    return (f"nested more than {DEEPEST} levels deep: no kernel needs that", line) if line else None


def _too_deep(tree: ast.AST) -> int | None:
    """The line of what lies too deep for what walks the tree later on."""
    level: list[tuple[ast.AST, int]] = [(tree, 1)]
    for _ in range(DEEPEST):
        level = [(n, getattr(n, "lineno", line)) for node, line in level for n in ast.iter_child_nodes(node)]
    return level[0][1] if level else None
