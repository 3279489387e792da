"""Kernels that look copied from one another, for a person to read: copydetect's fingerprints without the stub's text.

The fingerprints are all k-grams instead of a winnowed sample: copydetect chooses the sample by Python's string hashes,
which differ from process to process, and files of this size need no sample.
"""

from __future__ import annotations

import html
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from grader.catalog import find
from tutor.homework.results.feedback import STYLE
from tutor.html_page import html_page, left_out_words

K = 25  # characters of a fingerprint, copydetect's own default
AS_WRITTEN, BY_STRUCTURE, ABOVE_CLASS = 0.8, 0.9, 0.1
MOST_PAIRS = 50  # of one exercise
SOLUTION = "(the course's solution)"


class NotInstalled(Exception):
    """The text says what to install."""


@dataclass(frozen=True)
class Pair:
    """Shares of the file that has less in common; the stub's own text counts for nothing."""

    exercise: str
    first: str
    second: str
    as_written: float
    by_structure: float  # names and strings left out of account
    typical: float  # by structure, the median of the exercise's pairs


@dataclass(frozen=True)
class Likeness:
    same: tuple[tuple[str, tuple[str, ...]], ...]  # exercise, who handed in one file byte for byte
    pairs: tuple[Pair, ...]


def likeness(handed_in: Mapping[str, Mapping[str, str]], sources: Mapping[str, bytes]) -> Likeness:
    """`handed_in`: by exercise and learner, the content; `sources`: by content. Raises NotInstalled."""
    try:
        import copydetect  # noqa: F401
    except ImportError as error:
        advice = "pip install 'triton-prep[homework]'"
        raise NotInstalled(f"{left_out_words('similarity.html', error)} {advice} brings it.") from error
    same: list[tuple[str, tuple[str, ...]]] = []
    pairs: list[Pair] = []
    for slug in sorted(handed_in):
        names: dict[str, list[str]] = defaultdict(list)
        stub = find(slug).stub.read_bytes()
        for learner, content in sorted(handed_in[slug].items()):
            if sources[content] != stub:
                names[content].append(learner)
        same += [(slug, tuple(group)) for group in names.values() if len(group) > 1]
        texts = {group[0]: sources[content].decode("utf-8", "replace") for content, group in names.items()}
        solution = find(slug).solution
        if solution.is_file() and texts:
            texts[SOLUTION] = solution.read_text(encoding="utf-8")
        pairs += _pairs(slug, texts, stub.decode("utf-8"))
    return Likeness(tuple(same), tuple(pairs))


def _pairs(slug: str, texts: Mapping[str, str], stub: str) -> list[Pair]:
    plain = {name: _print_of(text, stub, filtered=False) for name, text in texts.items()}
    structure = {name: _print_of(text, stub, filtered=True) for name, text in texts.items()}
    shares = {}
    for first, second in combinations(sorted(texts), 2):
        shares[first, second] = _share(plain[first], plain[second]), _share(structure[first], structure[second])
    # with the solution among them a class of one has a pair already: no median to speak of
    among = [both[1] for pair, both in shares.items() if SOLUTION not in pair]
    typical = median(among) if len(among) > 2 else 0.0
    found = [
        Pair(slug, first, second, round(written, 3), round(shape, 3), round(typical, 3))
        for (first, second), (written, shape) in shares.items()
        if written >= AS_WRITTEN or (shape >= BY_STRUCTURE and shape > typical + ABOVE_CLASS)
    ]
    return sorted(found, key=lambda p: (-p.as_written, -p.by_structure, p.first, p.second))[:MOST_PAIRS]


def _print_of(text: str, stub: str, *, filtered: bool) -> Any:
    """copydetect's fingerprint, without what the stub holds too."""
    from copydetect import CodeFingerprint
    from copydetect.utils import get_token_coverage

    made = CodeFingerprint("submission.py", K, 1, fp=io.StringIO(text), filter=filtered)
    given = CodeFingerprint("stub.py", K, 1, fp=io.StringIO(stub), filter=filtered)
    made.hashes = made.hashes - given.hashes
    made.hash_idx = {key: places for key, places in made.hash_idx.items() if key in made.hashes}
    made.token_coverage = get_token_coverage(made.hash_idx, K, len(made.filtered_code))
    return made


def _share(first: Any, second: Any) -> float:
    from copydetect import compare_files

    common = len(first.hashes & second.hashes)
    least, most = sorted((len(first.hashes), len(second.hashes)))
    if (
        not least or common < 0.5 * most
    ):  # far from anything that is reported; the exact figure takes a hundred times as long
        return common / most if most else 0.0
    _, shares, _ = compare_files(first, second)
    return min(float(share) for share in shares)


def similarity_page(title: str, found: Likeness) -> str:
    body = [
        f"<h1>{html.escape(title)}: likeness</h1>",
        "<p>Nothing here proves anything: short kernels have few ways to be right, and look alike by nature. What the "
        "stub gives is left out. <em>As written</em> compares the text, names and comments included; <em>by structure"
        "</em> leaves names and strings out of account; <em>typical</em> is the median by structure of all pairs of "
        "the class. Made with copydetect.</p>",
    ]
    if found.same:
        body += ["<h2>One file, byte for byte</h2>", "<ul>"]
        body += [f"<li>{html.escape(slug)}: {html.escape(', '.join(names))}</li>" for slug, names in found.same] + [
            "</ul>"
        ]
    if found.pairs:
        body += ["<h2>Pairs</h2>", _table(found.pairs)]
    if not found.same and not found.pairs:
        body.append("<p>No pair stands out.</p>")
    return html_page(f"{title}: likeness", STYLE, "\n".join(body))


def _table(pairs: Sequence[Pair]) -> str:
    names = ("exercise", "one", "other", "as written", "by structure", "typical")
    head = "".join(f"<th>{name}</th>" for name in names)
    return "\n".join([f"<table><tr>{head}</tr>", *_rows(pairs), "</table>"])


def _rows(pairs: Iterable[Pair]) -> Iterable[str]:
    for one in pairs:
        figures = "".join(
            f'<td class="number">{100 * x:.0f} %</td>' for x in (one.as_written, one.by_structure, one.typical)
        )
        names = f"<td>{one.exercise}</td><td>{html.escape(one.first)}</td><td>{html.escape(one.second)}</td>"
        yield f"<tr>{names}{figures}</tr>"
