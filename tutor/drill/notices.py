"""What a sitting tells whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass

from tutor.drill.clock import time_left


@dataclass(frozen=True)
class Notice:
    kind: str  # near_end, phase_ended, time_up, away, clock, unsaved
    text: str


@dataclass(frozen=True)
class Receipt:
    counted: bool
    text: str


@dataclass(frozen=True)
class Now:
    """What a screen shows of the clock."""

    phase: int
    phase_left: float  # seconds
    whole_left: float
    paused: bool

    def header(self, *, narrow: bool, near: bool) -> str:
        """For a screen's head; that an end is near shows without colour too."""
        phase, whole = time_left(self.phase_left), time_left(self.whole_left)
        text = f"{phase}/{whole}" if narrow else f"phase {phase}  all {whole}"
        return f"paused {text}" if self.paused else f"! {text}" if near else text

    def text(self, name: str = "") -> str:
        paused = " paused" if self.paused else ""
        return f"{name} {time_left(self.phase_left)} | all {time_left(self.whole_left)}{paused}".strip()
