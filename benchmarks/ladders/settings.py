"""Which rungs there are, and the sizes at which they are timed. Imports no torch: the parent process reads it too."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "softmax": "04-softmax-and-reductions",
    "rms_norm": "04-softmax-and-reductions",
    "matmul": "06-blocked-matmul",
    "attention": "07-flash-attention",
}
EXERCISES = {  # what the rungs of a ladder do
    "softmax": ("softmax",),
    "rms_norm": ("rms_norm",),
    "matmul": ("matmul", "grouped_matmul", "persistent_matmul"),
    "attention": ("attention", "causal_attention"),
}
LADDER_OF = {exercise: ladder for ladder, exercises in EXERCISES.items() for exercise in exercises}
MEMORY_BOUND = ("softmax", "rms_norm")
NAME = re.compile(r"(?P<exercise>\w+)_(?P<number>\d+)_(?P<name>[a-z]\w*)")
COMPILED = "torch.compile"
NOT_INTERPRETED = "not interpreted: Gluon is compiled, for a GPU, or not run at all"
NOT_COMPILED = "left out of the dry run: torch.compile's kernel for a CPU is another one"
TOO_WIDE = "not tried: a row of 2^20 float32 values is 4 MiB, 16 times the registers of a multiprocessor"


@dataclass(frozen=True)
class Rung:
    """One file of solutions/<module>/ladder, which does what `exercise` asks for."""

    ladder: str
    exercise: str
    number: int
    name: str
    path: Path

    @property
    def label(self) -> str:
        return f"{self.number} {self.name.replace('_', ' ')}"

    @property
    def gluon(self) -> bool:
        """Whether it is written in Gluon rather than in Triton: no submission, and nothing for the interpreter."""
        return self.name.startswith("gluon_")


def rungs(ladder: str) -> tuple[Rung, ...]:
    """From the lowest. Raises ValueError for a file that is not named <exercise>_<number>_<name>.py."""
    found = []
    for path in (ROOT / "solutions" / FOLDERS[ladder] / "ladder").glob("*.py"):
        parts = NAME.fullmatch(path.stem)
        if parts is None or FOLDERS.get(LADDER_OF.get(parts["exercise"], "")) != FOLDERS[ladder]:
            raise ValueError(f"{path}: name it <exercise>_<number>_<name>.py, for a ladder of this folder")
        if LADDER_OF[parts["exercise"]] == ladder:
            found.append(Rung(ladder, parts["exercise"], int(parts["number"]), parts["name"], path))
    return tuple(sorted(found, key=lambda rung: rung.number))


@dataclass(frozen=True)
class Setting:
    """Inputs of one size. `shape`: M, N · M, N, K · B, H, N, D. `dry`: the same, for the interpreter."""

    ladder: str
    name: str
    shape: tuple[int, ...]
    dry: tuple[int, ...]
    exercises: tuple[str, ...]  # whose rungs are timed
    left_out: dict[int, str] = field(default_factory=dict)  # rung number to reason
    dtype: str = "float16"

    @property
    def limit(self) -> str:
        return "memory" if self.ladder in MEMORY_BOUND else "compute"

    def rungs(self, device: str = "cuda") -> tuple[Rung, ...]:
        """Those that are timed on "cuda", or compared in the interpreter on "cpu"."""
        found = [r for r in rungs(self.ladder) if r.exercise in self.exercises and r.number not in self.left_out]
        return tuple(r for r in found if r.label not in self.skipped(device))

    def skipped(self, device: str) -> dict[str, str]:
        """Candidates that are not run on this device, with the reason."""
        if device != "cpu":
            return {}
        gluon = [r for r in rungs(self.ladder) if r.exercise in self.exercises and r.gluon]
        compiled = {COMPILED: NOT_COMPILED} if self.ladder == "rms_norm" else {}
        return {r.label: NOT_INTERPRETED for r in gluon} | compiled


def _matmul(size: int) -> Setting:
    return Setting("matmul", f"{size} x {size} x {size}", (size, size, size), (40, 48, 72), EXERCISES["matmul"])


def _attention(exercise: str, n: int, d: int) -> Setting:
    name = f"{exercise.replace('_', ' ')}, B=4 H=16 N={n} D={d}"
    return Setting("attention", name, (4, 16, n, d), (1, 2, 70, d), (exercise,))


def _softmax(m: int, n: int, dry: tuple[int, int], left_out: dict[int, str] | None = None) -> Setting:
    return Setting("softmax", f"{m} x {n}", (m, n), dry, ("softmax",), left_out or {})


def _rms_norm(m: int, n: int) -> Setting:
    return Setting("rms_norm", f"{m} x {n} bfloat16", (m, n), (3, n // 8 - 5), ("rms_norm",), dtype="bfloat16")


SETTINGS = (
    _softmax(524288, 128, (33, 20)),
    _softmax(32768, 4096, (3, 300)),
    _softmax(10922, 12288, (2, 700)),
    _softmax(4096, 32768, (2, 4100)),
    _softmax(64, 1048576, (1, 8200), dict.fromkeys((1, 2, 3, 4), TOO_WIDE)),
    _rms_norm(131072, 1024),
    _rms_norm(65536, 2048),
    _rms_norm(32768, 4096),
    _rms_norm(16384, 8192),
    _matmul(2048),
    _matmul(4096),
    _matmul(8192),
    _attention("attention", 1024, 128),
    _attention("attention", 4096, 128),
    _attention("attention", 4096, 64),
    _attention("causal_attention", 1024, 128),
    _attention("causal_attention", 4096, 128),
    _attention("causal_attention", 4096, 64),
)
