"""The course's quizzes and bugs as an Anki deck. Needs `genanki` (the extra `anki`): few learners use Anki."""

from __future__ import annotations

from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from tutor.course.course import Course
from tutor.course.model import Bug, Option, Quiz
from tutor.whole_files import replacing

# Anki tells decks and note types apart by these numbers: fixed, so that a later import updates instead of adding.
DECK, NOTE_TYPE = 1_732_841_617, 1_732_841_618
FIELDS = ("Id", "Title", "Question", "Answer")
STYLE = """\
.card { font-family: sans-serif; font-size: 18px; text-align: left; }
pre, code { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 15px; }
pre { white-space: pre; overflow-x: auto; padding: 6px; border: 1px solid #8884; }
.faulty { font-weight: bold; }
"""
FRONT = "<p><b>{{Title}}</b></p>{{Question}}"
BACK = "{{FrontSide}}<hr id=answer>{{Answer}}<p><small>{{Id}}</small></p>"


class NoGenanki(Exception):
    def __init__(self) -> None:
        super().__init__("An Anki deck needs one package more: pip install genanki")


def write_deck(course: Course, file: Path) -> int:
    """Writes the deck and returns how many cards it holds. Raises NoGenanki or OSError."""
    try:
        import genanki
    except ImportError as error:
        raise NoGenanki from error
    kind = genanki.Model(
        NOTE_TYPE,
        "triton-prep",
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "Card", "qfmt": FRONT, "afmt": BACK}],
        css=STYLE,
    )
    deck = genanki.Deck(DECK, "triton-prep")
    for module in course.modules:
        for item in module.items:
            if isinstance(item, (Quiz, Bug)):
                front, back = _quiz_sides(item) if isinstance(item, Quiz) else _bug_sides(item)
                deck.add_note(
                    genanki.Note(
                        model=kind,
                        fields=[item.id, inline_html(item.title), front, back],
                        guid=genanki.guid_for(item.id),
                        tags=[module.id, item.concept.replace(" ", "-") or "triton"],
                    )
                )
    with replacing(file) as beside:
        genanki.Package(deck).write_to_file(str(beside))
    return len(deck.notes)


def _quiz_sides(item: Quiz) -> tuple[str, str]:
    ask = "<p>Several are right.</p>" if item.several else ""
    options = "".join(f"<li>{inline_html(option.text)}</li>" for option in item.options)
    code = code_html(item.code) if item.code else ""
    front = f"{markdown_html(item.question)}{code}{ask}<ol>{options}</ol>"
    whys = "".join(f"<li>{_why(option)}</li>" for option in item.options)
    remember = f"<p><b>Remember:</b> {inline_html(item.remember)}</p>" if item.remember else ""
    return front, f"<ol>{whys}</ol>{remember}"


def _why(option: Option) -> str:
    return f"{'✓ <b>right</b>' if option.correct else '✗'}: {inline_html(option.why)}"


def _bug_sides(item: Bug) -> tuple[str, str]:
    front = f"{markdown_html(item.story)}{code_html(item.code, numbered=True)}<p>Which line is wrong?</p>"
    lines = ", ".join(map(str, item.faulty))
    mends = "".join(
        f"<p>Line {mend.line} becomes:</p>{code_html(mend.text)}" if mend.text else f"<p>Line {mend.line} goes.</p>"
        for mend in item.mends
    )
    where = f"<p>Line{'s' if len(item.faulty) > 1 else ''} {lines}.</p>"
    return front, f"{where}{mends}{markdown_html(item.explain)}"


def code_html(code: str, *, numbered: bool = False) -> str:
    lines = code.rstrip("\n").split("\n")
    if numbered:
        width = len(str(len(lines)))
        lines = [f"{number:>{width}}  {line}" for number, line in enumerate(lines, 1)]
    return f"<pre>{_text(chr(10).join(lines))}</pre>"


def markdown_html(text: str) -> str:
    return str(_markdown().render(text))


def inline_html(text: str) -> str:
    return str(_markdown().renderInline(text))


def _markdown() -> MarkdownIt:
    """Without links and images: kernel[grid](x) is a launch, and must stay one."""
    return MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink", "reference"]).enable("table")


def _text(text: str) -> str:
    return escape(text, quote=False)
