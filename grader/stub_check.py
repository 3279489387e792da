"""Is a submission the untouched stub, or not Python at all?"""

from __future__ import annotations

import ast


def untouched(source: bytes, stub: bytes) -> bool:
    """Equal to the stub but for comments, docstring spacing and blank lines."""
    if source == stub:
        return True
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))
    except (SyntaxError, ValueError):
        return False


def unreadable(source: bytes) -> tuple[str, int | None] | None:
    """Why the source cannot be parsed, and the line; None when it can."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        return f"{type(error).__name__}: {error.msg}", error.lineno
    except ValueError as error:
        return str(error), None
    return None
