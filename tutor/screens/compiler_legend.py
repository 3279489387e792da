"""What the stages are for, and what the signs of the compiler view mean."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Static

from tutor.compiler.compilation import STAGE_PURPOSE
from tutor.widgets.content import plain
from tutor.widgets.desk import key_of
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading

SIGNS = (
    (">", "the cursor's line"),
    ("=", "belongs to the line under the other side's cursor"),
    ("*", "marked: a line that matters for speed; in your file, one that such lines come from"),
    ("12", "beside a stage's line: the line of your file that it comes from"),
)
MARKS = (
    ("load, store", "global memory. 'vector' moves more than 32 bits a lane at a time; 128 is the widest usual one"),
    ("asynchronous copy", "global to shared memory while the program goes on (cp.async, TMA)"),
    ("tensor-core", "mma, wgmma, tcgen05, or AMD's mfma: where a matrix product should be"),
    ("layout conversion", "a tensor changes which thread holds what, mostly through shared memory"),
    ("local memory", "spills: registers ran out"),
    ("shuffle", "lanes of a warp exchange values, as reductions do"),
    ("barrier", "threads wait for each other or for a copy"),
    ("masked, predicated", "not every lane does it: a mask, or one thread chosen to act"),
)
NOTES = (
    "The kernel is compiled exactly as your function launches it, for a GPU that need not be here; nothing runs.",
    "The optimiser moves and merges instructions: some name no line of yours or a neighbour of it; a line may be gone.",
    "Debug tables are left out of every stage; `triton-prep inspect` prints them all.",
    "On AMD a masked lane mostly gets an address out of range, which the hardware drops: nothing is predicated for it.",
)


def keys(node: DOMNode) -> tuple[tuple[str, str], ...]:
    """What each key does, as the learner has set them."""

    def of(*actions: tuple[str, str]) -> str:
        return " ".join(key_of(node, *action) for action in actions)

    return (
        (of(("compiler.other-side", "tab")), "the other side, at the line that belongs to this one"),
        (f"1-5 {of(('compiler.step-back', 'left'), ('compiler.next-step', 'right'))}", "the stage"),
        (of(("compiler.next-marked", "n"), ("compiler.marked-before", "N")), "next and previous marked line"),
        (of(("compiler.target", "t")), "another GPU"),
        (of(("compiler.sizes", "s")), "other sizes: those that are timed on a GPU, or those of the largest case"),
        (of(("compiler.kernel", "k")), "another kernel or configuration of this file"),
        (
            of(("compiler.compare", "c")),
            "compare with the stub, the solution, a backup, another GPU or number of warps",
        ),
        (of(("lines.scroll-left", "comma"), ("lines.scroll-right", "full_stop")), "scroll sideways"),
        (of(("compiler.back", "escape")), "back to the exercise"),
    )


class LegendScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,f1,question_mark", "dismiss", "Close", key_display="Esc", id="compiler-help.close")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            with Reading():
                yield Static(self._text())
        yield KeyLine()

    def _text(self) -> Column:
        parts: list[Hanging] = []
        for title, rows in (
            ("Stages", tuple(STAGE_PURPOSE.items())),
            ("Signs", SIGNS),
            ("Marked lines", MARKS),
            ("Keys", keys(self)),
        ):
            parts += [Hanging(plain(""), plain(title, "bold"))]
            width = max(len(name) for name, _ in rows)
            parts += [Hanging(plain(f"  {name:<{width}}  ", "bold"), plain(words)) for name, words in rows]
            parts += [Hanging(plain(""), plain(" "))]
        parts += [Hanging(plain("- "), plain(note)) for note in NOTES]
        return Column(parts)
