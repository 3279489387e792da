"""Small changes to a Triton source, as a learner might make them by mistake; each is one edit of one place.

An edit replaces a piece of the text, so that line numbers and everything else stay. What a mutation operator is called
is what it does: `drop_mask`, `swap_stride`, `floor_grid`.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DROPPED = "pass"
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OTHER_COMPARISON = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
}
ARITHMETIC = {
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+", "/")),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("%", "/")),
    ast.Mod: ("%", ("//",)),
    ast.BitAnd: ("&", ("|",)),
    ast.Pow: ("**", ("*",)),
}
FUNCTIONS = {
    "max": ("min", "sum"),
    "sum": ("max",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "min": ("max",),
    "exp": ("exp2", "log"),
    "exp2": ("exp",),
    "zeros": ("ones", "empty"),
    "empty": ("zeros",),
    "sigmoid": ("exp",),
    "relu": ("abs",),
    "next_power_of_2": ("abs",),
    "program_id": ("num_programs",),
    "num_programs": ("program_id",),
}
FILLS = ("0.0", "1.0", "-1.0", '-float("inf")', 'float("inf")', "-1e4")


@dataclass(frozen=True)
class Edit:
    """Replace text[start:end]; where two places change together, a second edit behind the first."""

    operator: str
    start: int
    end: int
    text: str
    second: tuple[int, int, str] | None = None

    def applied(self, source: str) -> str:
        if self.second is not None:
            start, end, text = self.second
            source = source[:start] + text + source[end:]
        return source[: self.start] + self.text + source[self.end :]


@dataclass(frozen=True)
class Mutant:
    exercise: str
    operator: str
    line: int
    source: str
    original: str

    @property
    def diff(self) -> str:
        """The lines that differ, without the headers."""
        lines = difflib.unified_diff(self.original.splitlines(), self.source.splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if line[:2] not in ("--", "++", "@@"))


class Source:
    """A parsed text whose nodes know their place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        lines = text.encode().splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.ascii = text.isascii()

    def place(self, node: ast.AST) -> tuple[int, int]:
        start = self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        """In characters; ast counts columns in bytes."""
        offset = self.starts[line - 1] + column
        return offset if self.ascii else len(self.text.encode()[:offset].decode())

    def of(self, node: ast.AST) -> str:
        start, end = self.place(node)
        return self.text[start:end]

    def replace(self, operator: str, node: ast.AST, text: str) -> Edit:
        return Edit(operator, *self.place(node), text)

    def exchange(self, operator: str, a: ast.AST, b: ast.AST) -> Edit:
        (start, end), (second_start, second_end) = sorted((self.place(a), self.place(b)))
        first, second = self.text[start:end], self.text[second_start:second_end]
        return Edit(operator, start, end, second, (second_start, second_end, first))

    def functions(self) -> Iterator[ast.FunctionDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Calls with the last name of what is called: `load` for tl.load(…)."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                yield node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id, node


def _without(source: Source, operator: str, call: ast.Call, names: set[str]) -> Edit:
    """The call without the keyword arguments of these names."""
    kept = [source.of(a) for a in call.args]
    kept += [
        f"{k.arg}={source.of(k.value)}" if k.arg else f"**{source.of(k.value)}"
        for k in call.keywords
        if k.arg not in names
    ]
    return source.replace(operator, call, f"{source.of(call.func)}({', '.join(kept)})")


def memory_accesses(source: Source) -> Iterator[Edit]:
    for name, call in source.calls():
        if name not in ("load", "store", "atomic_add"):
            continue
        keywords = {k.arg: k.value for k in call.keywords}
        if "mask" in keywords:
            yield _without(source, "drop_mask", call, {"mask", "other"})
        if "other" in keywords:
            yield _without(source, "drop_other", call, {"other"})
            for fill in FILLS:
                yield source.replace("change_other", keywords["other"], fill)
        elif name == "load" and "mask" in keywords:
            for fill in FILLS[:4]:
                yield source.replace("add_other", keywords["mask"], f"{source.of(keywords['mask'])}, other={fill}")
        if name == "atomic_add":
            yield source.replace("atomic_to_store", call.func, "tl.store")


def comparisons(source: Source) -> Iterator[Edit]:
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        left, right = source.of(node.left), source.of(node.comparators[0])
        symbol = COMPARISONS.get(type(node.ops[0]))
        for other in OTHER_COMPARISON.get(symbol or "", ()):
            yield source.replace("change_comparison", node, f"{left} {other} {right}")
        for change in ("- 1", "+ 1"):
            yield source.replace("move_bound", node.comparators[0], f"{right} {change}")


def arithmetic(source: Source) -> Iterator[Edit]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.AugAssign):
            target, value = source.of(node.target), source.of(node.value)
            yield source.replace("overwrite_accumulator", node, f"{target} = {value}")
            continue
        if not isinstance(node, ast.BinOp) or type(node.op) not in ARITHMETIC:
            continue
        left, right = source.of(node.left), source.of(node.right)
        symbol, others = ARITHMETIC[type(node.op)]
        mask = isinstance(node.op, ast.BitAnd)
        for other in others:
            yield source.replace("loosen_mask" if mask else "change_operator", node, f"({left} {other} {right})")
        if isinstance(node.op, (ast.Add, ast.BitAnd, ast.Mult)):
            for kept in (left, right):
                yield source.replace("drop_mask_term" if mask else "drop_term", node, f"({kept})")
        yield source.exchange("swap_operands", node.left, node.right)


def names(source: Source) -> Iterator[Edit]:
    """Another parameter of the same kernel in place of one: a stride, a size, a pointer, a block."""
    for function in source.functions():
        parameters = [a.arg for a in function.args.args]
        assigned = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            for family, operator in FAMILIES.items():
                if not FAMILIES_TEST[family](node.id):
                    continue
                for other in dict.fromkeys([*parameters, *assigned]):
                    if other != node.id and FAMILIES_TEST[family](other):
                        yield source.replace(operator, node, other)


FAMILIES = {
    "stride": "swap_stride",
    "pointer": "other_pointer",
    "size": "other_size",
    "block": "other_block",
    "index": "other_index",
}
FAMILIES_TEST: dict[str, Callable[[str], bool]] = {
    "stride": lambda name: name.startswith("stride_"),
    "pointer": lambda name: name.endswith("_ptr"),
    "size": lambda name: name in ("M", "N", "K", "n_rows", "n_cols", "N_q", "N_k", "H"),
    "block": lambda name: name.startswith("BLOCK"),
    "index": lambda name: name.startswith("offs_") or name in ("rows", "cols", "pid_m", "pid_n", "batch", "head"),
}


def places(source: Source) -> Iterator[Edit]:
    """Axes, new axes, strides asked of a tensor."""
    for name, call in source.calls():
        axis = next((k.value for k in call.keywords if k.arg == "axis"), None)
        if axis is None and name in ("program_id", "num_programs", "stride") and call.args:
            axis = call.args[0]
        if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
            yield source.replace(
                "swap_stride" if name == "stride" else "change_axis", axis, str(1 - min(axis.value, 1))
            )
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            text = source.of(node.slice)
            if text in (":, None", "None, :"):
                other = "None, :" if text == ":, None" else ":, None"
                yield source.replace("swap_new_axis", node.slice, other)
                yield source.replace("drop_new_axis", node, source.of(node.value))


def constants(source: Source) -> Iterator[Edit]:
    docstrings = {id(n.body[0].value) for n in ast.walk(source.tree) if _has_docstring(n)}  # type: ignore[attr-defined]
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings or isinstance(node.value, bool):
            continue
        value = node.value
        if isinstance(value, int):
            changes = {value + 1, value - 1} if value < 8 else {value * 2, value // 2, value - 1, value + 16}
        elif isinstance(value, float):
            changes = {0.0, 1.0, -value, value * 2} - {value}
        elif value == "inf":
            yield source.replace("change_constant", node, '"nan"')
            yield source.replace("change_constant", node, "0.0")
            continue
        else:
            continue
        for change in sorted(changes):
            yield source.replace("change_constant", node, f"({change})" if change < 0 else str(change))


def functions(source: Source) -> Iterator[Edit]:
    for name, call in source.calls():
        for other in FUNCTIONS.get(name, ()):
            if isinstance(call.func, ast.Attribute):
                yield source.replace("change_function", call.func, f"{source.of(call.func.value)}.{other}")
            elif name in ("min", "max"):
                yield source.replace("change_function", call.func, other)
        if len(call.args) >= 2 and name in ("dot", "maximum", "where", "cdiv", "load", "min"):
            yield source.exchange("swap_arguments", call.args[-2], call.args[-1])
        if name == "to" and isinstance(call.func, ast.Attribute):
            yield source.replace("drop_cast", call, source.of(call.func.value))
        if name == "contiguous" and isinstance(call.func, ast.Attribute):
            yield source.replace("drop_contiguous", call, source.of(call.func.value))
        if name == "cdiv" and len(call.args) == 2:
            a, b = source.of(call.args[0]), source.of(call.args[1])
            yield source.replace("floor_grid", call, f"({a} // {b})")
            yield source.replace("fewer_programs", call, f"({source.of(call)} - 1)")
            yield source.replace("more_programs", call, f"({source.of(call)} + 1)")
        for keyword in call.keywords:
            if keyword.arg in ("reset_to_zero", "key", "dtype", "input_precision"):
                yield _without(source, f"drop_{keyword.arg}", call, {keyword.arg})


def dtypes(source: Source) -> Iterator[Edit]:
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        text = source.of(node)
        if text in ("tl.float32", "torch.float32"):
            for other in ("float16", "int32", "float64"):
                yield source.replace("change_dtype", node, f"{node.value.id}.{other}")
        elif text == "tl.int64":
            yield source.replace("change_dtype", node, "tl.int32")
        elif node.attr == "dtype" and node.value.id in ("x", "a", "q", "rows"):
            yield source.replace("change_dtype", node, "torch.float32")


def statements(source: Source) -> Iterator[Edit]:
    for node in ast.walk(source.tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(body, list):
                continue
            own = [
                s
                for s in body
                if not _is_docstring(s)
                and not isinstance(s, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))
            ]
            for statement in own:
                yield source.replace("drop_statement", statement, DROPPED)
            for a, b in itertools.pairwise(own):
                if isinstance(node, ast.FunctionDef) and isinstance(a, ast.Assign) and isinstance(b, ast.Assign):
                    yield source.exchange("swap_statements", a, b)


def loops_and_grids(source: Source) -> Iterator[Edit]:
    for name, call in source.calls():
        if name != "range":
            continue
        texts = [source.of(a) for a in call.args]
        if len(texts) == 1:
            texts = ["0", texts[0], "1"]
        start, stop, step = texts
        for operator, piece in (
            ("skip_first_tile", f"range({start} + {step}, {stop}, {step})"),
            ("stop_early", f"range({start}, {stop} - {step}, {step})"),
            ("stop_late", f"range({start}, {stop} + {step}, {step})"),
            ("off_by_one", f"range({start}, {stop} - 1, {step})"),
            ("first_tile_only", f"range({start}, {start} + {step}, {step})"),
            ("wrong_step", f"range({start}, {stop}, 2 * {step})"),
        ):
            yield source.replace(operator, call, piece)
    for node in ast.walk(source.tree):
        grid = None
        if isinstance(node, ast.Assign) and source.of(node.targets[0]) == "grid":
            grid = node.value.body if isinstance(node.value, ast.Lambda) else node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grid = node.func.slice
        if not isinstance(grid, ast.Tuple):
            continue
        for element in grid.elts:
            yield source.replace("fewer_programs", element, f"{source.of(element)} - 1")
            yield source.replace("more_programs", element, f"{source.of(element)} + 1")
            yield source.replace("one_program", element, "1")
        if len(grid.elts) == 2:
            yield source.exchange("swap_grid", *grid.elts)
        if isinstance(node, ast.Call):  # arguments of a launch
            for a, b in itertools.pairwise(node.args):
                yield source.exchange("swap_launch_arguments", a, b)


MUTATORS = (
    memory_accesses, comparisons, arithmetic, names, places, constants, functions, dtypes, statements, loops_and_grids,
)  # fmt: skip


def mutants(exercise: str, text: str) -> list[Mutant]:
    """Every mutant of the source that parses and differs from it and from the others as a program."""
    source = Source(text)
    seen = {ast.dump(source.tree)}
    found = []
    for mutate in MUTATORS:
        for edit in mutate(source):
            changed = edit.applied(text)
            try:
                dumped = ast.dump(ast.parse(changed))
            except (SyntaxError, ValueError):
                continue
            if dumped in seen:
                continue
            seen.add(dumped)
            found.append(Mutant(exercise, edit.operator, text.count("\n", 0, edit.start) + 1, changed, text))
    return found


def sample(exercise: str, text: str, count: int, seed: int) -> list[Mutant]:
    """`count` mutants, each operator as likely as any other, the same ones for the same seed."""
    generator = random.Random(f"{seed}/{exercise}")
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in mutants(exercise, text):
        by_operator.setdefault(mutant.operator, []).append(mutant)
    chosen: list[Mutant] = []
    while by_operator and len(chosen) < count:
        operator = generator.choice(sorted(by_operator))
        pool = by_operator[operator]
        chosen.append(pool.pop(generator.randrange(len(pool))))
        if not pool:
            del by_operator[operator]
    return chosen


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _has_docstring(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    return isinstance(body, list) and bool(body) and _is_docstring(body[0])
