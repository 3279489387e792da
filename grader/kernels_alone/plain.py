"""A file's kernels without the rest of it: what the grader itself may run, because it is Triton's language and no more.

The interpreter runs a kernel as Python, so a kernel could do whatever Python can. The compiler accepts far less. What
is kept here is a little more than the compiler accepts, and reaches nothing but its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Python's own names that the compiler knows inside a kernel
BUILTINS = frozenset(
    "range min max abs len print int float bool tuple list sum isinstance any all zip enumerate "
    "AssertionError ValueError".split()
)
# module names that appear inside Triton's modules, and lead out of the language
OUT_OF_THE_LANGUAGE = frozenset(
    "core standard semantic target_info builtins tl jit runtime tools testing compiler backends knobs language_extra "
    "gdc utils module module_finder module_from_spec pkgutil spec "
    "sys os inspect functools types typing warnings np numpy wraps dispatch partial constexpr_function".split()
)
SUBMODULES = frozenset("math random extra libdevice cuda hip".split())
HOST_FUNCTIONS = frozenset("cdiv next_power_of_2".split())  # of the module triton itself
# attributes of the interpreter's values that the compiler does not have, or that lead to Python objects
HIDDEN = frozenset(
    "handle fn src run cache builder semantic data func kernel params arg_names format format_map "
    "gi_frame gi_code cr_frame cr_code tb_frame f_globals f_locals f_back f_builtins mro".split()
)
STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Return, ast.Pass, ast.Break,
    ast.Continue, ast.Assert,
)  # fmt: skip
EXPRESSIONS = (
    ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Call, ast.keyword, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Tuple, ast.List, ast.Name, ast.Constant, ast.Starred, ast.JoinedStr, ast.FormattedValue,
    ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


class NotPlain(Exception):
    """A kernel holds something else than Triton's language; the text says what, `line` where."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


def kernels_of(source: str) -> str:
    """A module of the file's top-level kernels, their constants and Triton's imports. Raises NotPlain."""
    tree = ast.parse(source)
    roots = _roots(tree)
    kernels = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_kernel(node, roots)}
    if not kernels:
        raise NotPlain("the file has no function decorated with @triton.jit at its top level")
    checker = _Checker(roots, set(kernels))
    constants: list[ast.stmt] = []
    for node in tree.body:
        name, value = _assigned(node)
        if name is None or value is None:
            continue
        try:
            checker.constant(value)
        except NotPlain:
            checker.constants.discard(name)  # the host's business, unless a kernel uses it
            continue
        checker.constants.add(name)
        constants.append(node)
    kept: list[ast.stmt] = []
    for node in kernels.values():
        checker.kernel(node)
        kept.append(_without_tuning(node))
    module = ast.Module([*_imports(roots), *constants, *kept], [])
    return ast.unparse(ast.fix_missing_locations(module)) + "\n"


def _roots(tree: ast.Module) -> dict[str, str]:
    """Names of the file that stand for Triton's modules or for something of its language, as dotted paths."""
    roots: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "math":  # of constants: the compiler computes it while it compiles
                    roots[alias.asname or "math"] = "math"
                elif alias.name.split(".")[0] == "triton":
                    roots[alias.asname or "triton"] = alias.name if alias.asname else "triton"
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "triton":
            for alias in node.names:
                roots[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    whole = ("math", "triton", "triton.language")
    return {name: path for name, path in roots.items() if path in whole or _allowed(path)}


def _allowed(path: str) -> bool:
    """Whether a dotted path names a part of the language, and not a way out of it."""
    parts = path.split(".")
    if parts[0] == "math":
        return len(parts) == 2 and not parts[1].startswith("_")
    if parts[0] != "triton" or any(part.startswith("_") or part in OUT_OF_THE_LANGUAGE for part in parts):
        return path == "triton.jit"
    if len(parts) == 2:
        return parts[1] in HOST_FUNCTIONS
    return parts[1] == "language" and all(part in SUBMODULES for part in parts[2:-1])


def _path(node: ast.expr, roots: dict[str, str]) -> str | None:
    """The dotted path that a chain of attributes stands for, if it begins with one of Triton's names."""
    if isinstance(node, ast.Name):
        return roots.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _path(node.value, roots)
        return f"{before}.{node.attr}" if before is not None else None
    return None


def _is_kernel(node: ast.FunctionDef, roots: dict[str, str]) -> bool:
    return any(_decorator(d, roots) == "triton.jit" for d in node.decorator_list)


def _decorator(node: ast.expr, roots: dict[str, str]) -> str | None:
    return _path(node.func if isinstance(node, ast.Call) else node, roots)


def _without_tuning(node: ast.FunctionDef) -> ast.FunctionDef:
    """The launch was recorded with the constexprs that tuning and heuristics chose."""
    jit = ast.Attribute(ast.Name("triton", ast.Load()), "jit", ast.Load())
    node.decorator_list, node.returns = [jit], None
    return node


def _imports(roots: dict[str, str]) -> Iterator[ast.stmt]:
    yield ast.Import([ast.alias("triton")])
    for name, path in roots.items():
        module, _, last = path.rpartition(".")
        if path in ("math", "triton"):
            yield ast.Import([ast.alias(path, None if name == path else name)])
        else:
            yield ast.ImportFrom(module, [ast.alias(last, None if name == last else name)], 0)


def _assigned(node: ast.stmt) -> tuple[str | None, ast.expr | None]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return None, None


class _Checker:
    def __init__(self, roots: dict[str, str], kernels: set[str]) -> None:
        self.roots, self.kernels = roots, kernels
        self.constants: set[str] = set()

    def constant(self, node: ast.expr) -> None:
        """A number, text, or tuple of them, also as tl.constexpr(…) or by way of Python's math."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                called = _path(part.func, self.roots) or ""
                if called != "triton.language.constexpr" and not called.startswith("math."):
                    raise NotPlain("a call", part.lineno)
            elif isinstance(part, ast.Attribute):
                if not _allowed(_path(part, self.roots) or "") and not self.leads_to_allowed(part, node):
                    raise NotPlain("an attribute", part.lineno)
            elif isinstance(part, ast.Name):
                if part.id not in self.roots and part.id not in self.constants and part.id != "float":
                    raise NotPlain("a name", part.lineno)
            elif not isinstance(
                part,
                (ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context),
            ):
                raise NotPlain(type(part).__name__, getattr(part, "lineno", None))

    def leads_to_allowed(self, part: ast.expr, whole: ast.AST) -> bool:
        """`tl` and `tl.math` are no values, but the beginning of one."""
        path = _path(part, self.roots)
        if path is None:
            return False
        return any(
            isinstance(n, ast.Attribute) and n.value is part and path.split(".")[-1] in (*SUBMODULES, "language")
            for n in ast.walk(whole)
        )

    def kernel(self, node: ast.FunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if node.args.vararg or node.args.kwarg:
            raise NotPlain(f"{node.name}: * and ** arguments", node.lineno)
        local = {a.arg for a in arguments}
        local |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for argument in arguments:
            if argument.annotation is not None and not isinstance(argument.annotation, ast.Constant):
                self.check(argument.annotation, local, node.name)
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.constant(default)
        for statement in node.body:
            self.check(statement, local, node.name)

    def check(self, top: ast.AST, local: set[str], kernel: str) -> None:
        for node in ast.walk(top):
            line = getattr(node, "lineno", None)
            if not isinstance(node, (*STATEMENTS, *EXPRESSIONS)):
                raise NotPlain(f"{kernel}: {type(node).__name__}, which is not part of Triton's language", line)
            if isinstance(node, ast.Name):
                if node.id.startswith("__") or node.id not in (
                    local | self.constants | self.kernels | set(self.roots) | BUILTINS
                ):
                    raise NotPlain(
                        f"{kernel}: {node.id!r} is neither a local variable, nor a constant, nor a kernel of this file",
                        line,
                    )
            elif isinstance(node, ast.Attribute):
                self.attribute(node, top, local, kernel)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                raise NotPlain(f"{kernel}: an element is assigned to", line)

    def attribute(self, node: ast.Attribute, top: ast.AST, local: set[str], kernel: str) -> None:
        if not isinstance(node.ctx, ast.Load):
            raise NotPlain(f"{kernel}: an attribute is assigned to", node.lineno)
        first: ast.expr = node
        while isinstance(first, ast.Attribute):
            first = first.value
        path = None if isinstance(first, ast.Name) and first.id in local else _path(node, self.roots)
        if path is not None and (_allowed(path) or self.leads_to_allowed(node, top)):
            return
        # tl.float32.primitive_bitwidth: an attribute of something of the language, which must be no module
        parts = (path or "").split(".")[:-1]
        of_value = path is None or (len(parts) == 3 and _allowed(".".join(parts)) and parts[2] not in SUBMODULES)
        if not of_value or node.attr.startswith("_") or node.attr in HIDDEN:
            raise NotPlain(f"{kernel}: {ast.unparse(node)} is not part of Triton's language", node.lineno)
