"""Names that Triton's compiled loop leaves at their first value, found in the learner's source.

Triton 3.6 to 3.9 learn what a loop carries from a trial run of its body: a name is carried if it then holds another
value than before. A name that holds the same value as another one when the loop starts, and takes that one's value in
the body, holds the very same value after the trial: it is taken for unchanged, and reads its first value in every
iteration. The trial is repeated here on the syntax tree. Where the tree does not settle which values are the same,
nothing is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_STEPS = 20_000  # statements run: loops within loops repeat their bodies
# of triton.language: they give a value that was not there before, whatever they are given
MAKE_NEW = {
    *("load", "dot", "zeros", "full", "arange", "where", "maximum", "minimum", "fma", "sum", "max", "min"),
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs", "program_id", "cumsum"),
}


@dataclass(frozen=True)
class StaleName:
    """All lines are 1-based."""

    name: str
    follows: str  # whose value it takes in the loop
    loop: int
    line: int  # where it takes it
    read: int  # where the first value is read instead
    carried: tuple[str, ...]  # names that the compiled loop carries for certain


class Undecided(Exception):
    """The function holds what is not modelled."""


@dataclass(eq=False)
class _Value:
    """Names hold the same value when they hold this very object."""

    born: int
    new: bool  # certainly none of those born before
    copied: bool = True  # False: may be a constexpr, of which each assignment makes a tensor of its own


@dataclass(eq=False)
class _Suspect:
    name: str
    follows: str
    loop: int
    line: int
    depth: int
    carried: tuple[str, ...]
    reads: list[int] = field(default_factory=list)


def stale_names(source: str) -> list[StaleName]:
    """Those of all `jit` functions of the file, by line."""
    try:
        functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and _is_jit(n)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[StaleName] = []
    for function in functions:
        trial = _Trial()
        try:
            trial.function(function)
        except (Undecided, RecursionError):
            continue
        for s in trial.suspects:
            if s.reads:
                found.append(StaleName(s.name, s.follows, s.loop, s.line, min(s.reads), s.carried))
    return sorted(found, key=lambda one: (one.line, one.name))


def _is_jit(function: ast.FunctionDef) -> bool:
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(named, ast.Name) and named.id == "jit":
            return True
        if isinstance(named, ast.Attribute) and named.attr == "jit" and isinstance(named.value, ast.Name):
            if named.value.id in ("triton", "gluon"):
                return True
    return False


class _Trial:
    """Runs a function's statements on values that are known by identity alone."""

    def __init__(self) -> None:
        self.state: dict[str, _Value] = {}
        self.suspects: list[_Suspect] = []
        self.stale: dict[_Value, _Suspect] = {}
        self.telling = True  # False in a trial of an enclosing loop
        self.depth = 0  # of branches: what is read in one may be read in the first iteration only
        self.count = self.steps = 0

    def function(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.state[argument.arg] = self._value(new=True, copied=False)  # an integer 1 is made a constexpr
        self._run(node.body)

    def _value(self, new: bool, copied: bool = True) -> _Value:
        self.count += 1
        return _Value(self.count, new, copied)

    # -- statements -------------------------------------------------------------------------------------------------

    def _run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Undecided
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self._assign(node)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None and isinstance(node.target, ast.Name):
                given = self._given(node.value)
                plain = "constexpr" not in ast.unparse(node.annotation)
                self.state[node.target.id] = given if plain else self._value(new=False, copied=False)
        elif isinstance(node, ast.AugAssign):
            self._read(node.value)
            if isinstance(node.target, ast.Name):
                self._name(node.target.id, node.lineno)
                self.state[node.target.id] = self._value(new=True)
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, (ast.For, ast.While)):
            self._loop(node)
        elif isinstance(node, (ast.Expr, ast.Return, ast.Assert, ast.Pass)):
            self._read(node)
        else:
            raise Undecided

    def _assign(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if len(node.targets) > 1:
            raise Undecided
        if isinstance(target, ast.Name):
            self.state[target.id] = self._given(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            values = [self._given(one) for one in value.elts]
            for place, given in zip(target.elts, values, strict=True):
                if not isinstance(place, ast.Name):
                    raise Undecided
                self.state[place.id] = given
        else:
            self._read(value)
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    self.state[name.id] = self._value(new=False)

    def _branch(self, node: ast.If) -> None:
        """Both ways, for which of them is taken may be settled while compiling."""
        self._read(node.test)
        before = dict(self.state)
        self.depth += 1
        self._run(node.body)
        taken, self.state = self.state, dict(before)
        self._run(node.orelse)
        self.depth -= 1
        for name in {*taken, *self.state}:
            one, other = taken.get(name), self.state.get(name)
            if one is not other:
                copied = one is not None and other is not None and one.copied and other.copied
                self.state[name] = self._value(new=False, copied=copied)

    # -- loops ------------------------------------------------------------------------------------------------------

    def _loop(self, node: ast.For | ast.While) -> None:
        if isinstance(node, ast.For):
            self._read(node.iter)
        entry, telling = dict(self.state), self.telling
        assigned, target = _assigned(node), _targets(node)
        if isinstance(node, ast.For) and not _is_compiled_loop(node.iter):
            self._unrolled(node, entry, assigned)
            return
        self.telling = False
        after = self._body(node, entry)
        inside = (assigned & set(entry)) - target
        unchanged = {n for n in inside if after[n] is entry[n]}
        carried = {n for n in inside if _differ(after[n], entry[n])}
        start = entry | {n: self._value(new=n in carried) for n in sorted(inside - unchanged)}
        changing: set[str] = set()  # of the names taken for unchanged: those that follow one which does change
        after = self._body(node, start)
        while more := {n for n in unchanged - changing if _differ(after[n], entry[n])}:
            changing |= more
            start |= {n: self._value(new=True) for n in sorted(more)}
            after = self._body(node, start)
        suspects = self._suspects(node, start, after, changing, tuple(sorted(carried)))
        self.telling = telling
        if telling:
            self.suspects += suspects.values()
            self.stale |= {start[name]: suspect for name, suspect in suspects.items()}
            self._body(node, start)
        left = {n: self._value(new=n in carried) for n in sorted((inside - unchanged) | changing)}
        self.stale |= {left[name]: suspect for name, suspect in suspects.items() if telling}
        known = {name: value for name, value in entry.items() if name not in assigned or name in inside}
        self.state = known | left | {name: self._value(new=False, copied=False) for name in target}

    def _suspects(
        self,
        node: ast.For | ast.While,
        start: dict[str, _Value],
        after: dict[str, _Value],
        changing: set[str],
        carried: tuple[str, ...],
    ) -> dict[str, _Suspect]:
        """By name. A loop of two iterations reads the first value rightly."""
        if isinstance(node, ast.For) and _few_iterations(node.iter):
            return {}
        found = {}
        for name in sorted(changing):
            follows = next((other for other, value in start.items() if value is after[name] and other != name), None)
            if follows is not None:
                lines = [n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt) and name in _targets(n)]
                found[name] = _Suspect(name, follows, node.lineno, max(lines, default=node.lineno), self.depth, carried)
        return found

    def _body(self, node: ast.For | ast.While, start: dict[str, _Value]) -> dict[str, _Value]:
        """What each name holds after one run of the body."""
        self.state = dict(start)
        if isinstance(node, ast.While):
            if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
                raise Undecided  # the trial leaves the condition out
            self._read(node.test)
        elif isinstance(node.target, ast.Name):
            self.state[node.target.id] = self._value(new=True, copied=False)
        else:
            raise Undecided
        self._run(node.body)
        return self.state

    def _unrolled(self, node: ast.For, entry: dict[str, _Value], assigned: set[str]) -> None:
        """`tl.static_range`, or what may be one under another name: each iteration is compiled by itself."""
        unknown = {name: self._value(new=False, copied=False) for name in assigned}
        self.state = entry | unknown
        self._run(node.body)
        self.state = entry | unknown

    # -- expressions ------------------------------------------------------------------------------------------------

    def _given(self, node: ast.expr) -> _Value:
        """The value that a name holds once it is assigned this."""
        if isinstance(node, ast.Name):
            value = self.state.get(node.id)
            return value if value is not None and value.copied else self._value(new=False)
        self._read(node)
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            return self.state[node.target.id]
        operation = isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert))
        return self._value(new=operation or isinstance(node, (ast.BinOp, ast.Constant)) or _makes_new(node))

    def _read(self, node: ast.AST) -> None:
        """Note what is read, and what `:=` assigns on the way."""
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            self.state[node.target.id] = self._given(node.value)
        elif isinstance(node, ast.Name):
            self._name(node.id, node.lineno)
        elif isinstance(node, ast.IfExp):
            self._read(node.test)
            self.depth += 1
            self._read(node.body)
            self._read(node.orelse)
            self.depth -= 1
        else:
            for child in ast.iter_child_nodes(node):
                self._read(child)

    def _name(self, name: str, line: int) -> None:
        value = self.state.get(name)
        suspect = self.stale.get(value) if self.telling and value is not None else None
        if suspect is not None and suspect.depth == self.depth:
            suspect.reads.append(line)


def _differ(one: _Value, other: _Value) -> bool:
    """Whether they are two values for certain."""
    return one is not other and max(one, other, key=lambda value: value.born).new


def _targets(node: ast.AST) -> set[str]:
    """The names that this statement itself assigns."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For)):
        targets = [node.target]
    else:
        return set()
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _assigned(loop: ast.For | ast.While) -> set[str]:
    return {name for node in ast.walk(loop) for name in _targets(node)}


def _is_compiled_loop(iterator: ast.expr) -> bool:
    """`range(…)` or `tl.range(…)`."""
    if not isinstance(iterator, ast.Call):
        return False
    named = iterator.func
    return (named.id if isinstance(named, ast.Name) else getattr(named, "attr", None)) == "range"


def _few_iterations(iterator: ast.expr) -> bool:
    """Whether plain numbers say that there are fewer than three."""
    assert isinstance(iterator, ast.Call)
    try:
        limits = [ast.literal_eval(argument) for argument in iterator.args]
        return len(range(*limits)) < 3
    except (ValueError, TypeError, OverflowError):
        return False


def _makes_new(node: ast.expr) -> bool:
    named = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(named, ast.Attribute)
        and isinstance(named.value, ast.Name)
        and named.value.id == "tl"
        and named.attr in MAKE_NEW
    )
