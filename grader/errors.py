"""In the runner: an exception as a message, in the learner's terms: status, reason, line of the learner's file."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from grader import reasons

LONGEST = 1500  # characters of one message


class NoGradient(RuntimeError):
    """The entry's result does not lead back to its inputs."""


def plain(status: str, message: str, cause: str | None = None, line: int | None = None) -> dict[str, Any]:
    return {"event": "error", "status": status, "message": message[:LONGEST], "cause": cause, "line": line}


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return (text.splitlines()[0] if text else type(error).__name__)[:400]


def described(error: BaseException, path: Path, stage: str, module: Any = None) -> dict[str, Any]:
    """The message for an exception raised while importing (`stage` "import") or calling the learner's file."""
    from grader.watch import OutOfBounds

    chain = _chain(error)
    for link in chain:
        if isinstance(link, OutOfBounds):
            kind = "load" if link.access == "load" else "store"
            return {
                **plain(
                    "out_of_bounds",
                    str(link),
                    f"out_of_range_{kind}" if link.masked else f"missing_{kind}_mask",
                    link.line,
                ),
                "index": link.index,
                "program": list(link.program),
                "tensor": link.name,
                "access": link.access,
            }
    if isinstance(error, SystemExit):
        return plain("import_error" if stage == "import" else "runtime_error", "the file calls sys.exit", "exits")
    if stage == "import" and isinstance(error, SyntaxError):
        return plain("import_error", f"{type(error).__name__}: {error.msg}", "syntax_error", error.lineno)
    line = next((n for link in reversed(chain) if (n := _line_in(link.__traceback__, path))), None)
    status = "import_error" if stage == "import" else "runtime_error"
    cause = None
    reason = chain[-1]
    compiled = _compile_error(chain, module)
    if compiled is not None:
        status, line, cause = "compile_error", compiled[0] or line, "compiler_rejects"
        reason = compiled[1]
    elif stage == "call" and _from_language(chain[-1]):
        status, cause = "compile_error", "compiler_rejects"
    known = reasons.named(
        _plain_global(reason, module) or f"{type(reason).__name__}: {_text(reason)}",
        any("/triton/" in name for name in _files(reason)),
    )
    if type(reason).__name__ == "OutOfResources":
        status, cause = "runtime_error", "out_of_resources"
    elif isinstance(error, NoGradient):
        cause = "no_gradient"
    elif (
        isinstance(reason, MemoryError)
        or "allocate memory" in str(reason)
        or type(reason).__name__ == "OutOfMemoryError"
    ):
        cause = "out_of_memory"
    if known is not None and cause in (None, "compiler_rejects"):
        cause = known.cause
        if cause == "kernel_without_source":
            status = "compile_error"  # also at import: it is the compiler that cannot read the kernel
        elif cause == "tensor_on_the_cpu":
            status = "runtime_error"  # the launcher says so, which lies among the compiler's files
        message = f"{known.short or _text(reason)}. Try: {known.advice}."
    else:
        message = f"{type(reason).__name__}: {_text(reason)}"
    folder = f"{path.parent}/"
    whole = "".join(traceback.format_exception(error)).replace(folder, "")
    return {**plain(status, message.replace(folder, ""), cause, line), "whole": whole[-8000:]}


# the compiler wraps what it caught in its own text: NameError('…')
WRAPPED = re.compile(r"""^\w+\((?P<quote>['"])(?P<text>.*)(?P=quote)\)$""", re.DOTALL)


def _plain_global(reason: BaseException, module: Any) -> str | None:
    """What Triton would say: torch.compile copies a kernel without the file's globals, which are then unknown names."""
    name = re.search(reasons.UNDEFINED, _text(reason)) if QUOTED.search(str(reason)) else None
    return f"Cannot access global variable {name[1]}" if name is not None and hasattr(module, name[1]) else None


EXCERPTS = ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure")
# torch.compile passes on the text of a compiler's error, and not the error
QUOTED = re.compile(r"\bCompilationError: at (?P<line>\d+):\d+:\s+def (?P<kernel>\w+)\(")


def _text(error: BaseException) -> str:
    text = _unwrapped(error).rstrip(".")
    if text:
        return text
    # a bare assert: the check itself is all there is to say
    frames = traceback.extract_tb(error.__traceback__)
    return f"a check of the compiler's failed: {frames[-1].line}" if frames and frames[-1].line else ""


def _unwrapped(error: BaseException) -> str:
    text = str(error).strip()
    # a CompilationError's text ends with the reason, after the source excerpt
    lines = [line for line in text.splitlines() if line.strip()]
    if type(error).__name__ in EXCERPTS or QUOTED.search(text):
        marker = next((i for i, line in enumerate(lines) if set(line.strip()) == {"^"}), None)
        reason = " ".join(lines[marker + 1 :]) if marker is not None else lines[-1] if lines else ""
        wrapped = WRAPPED.match(reason)
        return wrapped["text"] if wrapped else reason
    return "\n".join(lines[:6])


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what caused it, outermost first."""
    chain = [error]
    while chain[-1].__cause__ is not None and chain[-1].__cause__ not in chain:
        chain.append(chain[-1].__cause__)
    return chain


def _line_in(tb: TracebackType | None, path: Path) -> int | None:
    """The innermost line of the learner's file in a traceback."""
    found = None
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == str(path):
            found = tb.tb_lineno
        tb = tb.tb_next
    return found


def _files(error: BaseException) -> list[str]:
    """The files of a traceback, outermost first."""
    tb, names = error.__traceback__, []
    while tb is not None:
        names.append(tb.tb_frame.f_code.co_filename.replace("\\", "/"))
        tb = tb.tb_next
    return names


def _innermost_file(error: BaseException) -> str:
    return (_files(error) or [""])[-1]


def _from_language(error: BaseException) -> bool:
    """Raised by the language's own checks: what the interpreter shares with the compiler's front end."""
    return "/triton/language/" in _innermost_file(error)


def _compile_error(chain: list[BaseException], module: Any) -> tuple[int | None, BaseException] | None:
    """Line of the learner's file and the reason, if the compiler refused."""
    front = [link for link in chain if type(link).__module__ == "triton.compiler.errors" and hasattr(link, "node")]
    if front:
        # the innermost of the learner's own functions: a kernel may call another
        line = next((n for link in reversed(front) if (n := _source_line(link, module))), None)
        return line, chain[-1]
    passes = [
        link for link in chain if "/triton/compiler/" in _innermost_file(link) or "/backends/" in _innermost_file(link)
    ]
    quoted = QUOTED.search(str(chain[-1]))
    if quoted is not None:
        return _line_of(getattr(module, quoted["kernel"], None), int(quoted["line"])), chain[-1]
    if passes and type(chain[-1]).__name__ != "OutOfResources":
        return None, chain[-1]
    return None


def _source_line(error: Any, module: Any) -> int | None:
    """A CompilationError counts lines from the kernel's `def`: find that kernel in the learner's module."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if node is None or not hasattr(node, "lineno"):
        return None
    for value in vars(module).values() if module is not None else ():
        kernel = _function_of(value)
        if getattr(kernel, "src", None) == source and hasattr(kernel, "raw_src"):
            return _line_of(kernel, node.lineno)
    return None


def _function_of(kernel: Any) -> Any:
    """Below an autotuner and its like."""
    while kernel is not None and not hasattr(kernel, "raw_src") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _line_of(kernel: Any, lineno: int) -> int | None:
    """The line of the file, of a line counted from the kernel's `def`."""
    kernel = _function_of(kernel)
    if not hasattr(kernel, "raw_src"):
        return None
    skipped = next((i for i, text in enumerate(kernel.raw_src) if text.lstrip().startswith("def ")), 0)
    return int(kernel.starting_line_number + skipped + lineno - 1)
