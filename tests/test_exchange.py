"""Export and import lose nothing, and importing twice changes nothing. Decks for Anki keep brackets and identities."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import zipfile
from pathlib import Path

import msgspec
import pytest

from tests.app.sample_course import BUG, COURSE, MATCH, QUIZ, SEVERAL
from tests.test_review import Learner
from tutor.anki import inline_html, write_deck
from tutor.course.loader import load
from tutor.course.model import Quiz
from tutor.exchange import BadDocument, Document, decoded, exported, merge
from tutor.widgets.content import inline


def document(learner: Learner) -> Document:
    return decoded(msgspec.json.encode(exported(learner.progress)))


def content(learner: Learner) -> Document:
    """What would be exported, the moment of the export aside."""
    return msgspec.structs.replace(exported(learner.progress), exported="")


def begun() -> Learner:
    learner = Learner().answers(QUIZ).answers(MATCH, correct=False, score=0.5)
    learner.progress.record_page("m01.lesson.grid", 2)
    learner.progress.record_hint(BUG.id, 1)
    learner.on(1).answers(MATCH)
    learner.progress.set_setting("theme", "nord")
    return learner


def test_an_empty_progress_becomes_the_exported_one() -> None:
    learner, other = begun(), Learner()
    merged = merge(other.progress, document(learner))
    assert (merged.attempts, merged.settings) == (3, 1)
    assert content(other) == content(learner)
    assert content(learner).cards


def test_importing_twice_or_ones_own_export_changes_nothing() -> None:
    learner, other = begun(), Learner().answers(SEVERAL)
    merge(other.progress, document(learner))
    once = content(other)
    again = merge(other.progress, document(learner))
    assert (again.attempts, again.states, again.settings) == (0, 0, 0)
    merge(other.progress, document(other))
    assert content(other) == once


def test_two_that_went_on_apart_end_the_same_whichever_way_they_merge() -> None:
    common = begun()
    one, two = Learner(), Learner()
    for each in (one, two):
        merge(each.progress, document(common))
    one.on(3).answers(QUIZ, correct=False).answers(SEVERAL)
    one.progress.record_page("m01.lesson.grid", 0)
    two.on(4).answers(QUIZ).answers(BUG)
    two.progress.set_setting("theme", "gruvbox")
    two.progress.record_give_up(BUG.id)
    from_one, from_two = document(one), document(two)
    merge(one.progress, from_two)
    merge(two.progress, from_one)
    assert content(one) == content(two)
    assert one.progress.state(QUIZ.id).attempts == 3
    assert one.progress.cards()[QUIZ.id].reviews == 3
    assert one.progress.state("m01.lesson.grid").position == 0
    assert one.progress.setting("theme") == "gruvbox"
    assert one.progress.state(BUG.id).gave_up


def test_equal_answers_at_the_same_moment_are_all_kept() -> None:
    learner = Learner().answers(QUIZ).answers(QUIZ)
    other = Learner().answers(QUIZ)
    merge(other.progress, document(learner))
    assert other.progress.state(QUIZ.id).attempts == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"{not json", "not JSON"),
        (lambda data: b"[]", "not a progress export"),
        (lambda data: json.dumps({**data, "schema": 2}).encode(), "update triton-prep"),
        (lambda data: json.dumps({**data, "attempts": [{"item": 3}]}).encode(), "$.attempts[0].item"),
        (
            lambda data: json.dumps({**data, "attempts": [{**data["attempts"][0], "day": "2026-13-40"}]}).encode(),
            "month",
        ),
        (lambda data: json.dumps({**data, "attempts": [{**data["attempts"][0], "rating": 9}]}).encode(), "rating"),
    ],
)
def test_what_is_no_export_is_refused_with_the_place(change, said: str) -> None:  # type: ignore[no-untyped-def]
    data = json.loads(msgspec.json.encode(exported(begun().progress)))
    with pytest.raises(BadDocument, match=said.replace("$", r"\$").replace("[", r"\[")):
        decoded(change(data))


def notes(deck: Path, folder: Path) -> dict[str, tuple[str, list[str]]]:
    with zipfile.ZipFile(deck) as archive:
        archive.extract("collection.anki2", folder)
    with sqlite3.connect(folder / "collection.anki2") as database:
        rows = database.execute("SELECT guid, flds FROM notes").fetchall()
    database.close()
    return {fields.split("\x1f")[0]: (guid, fields.split("\x1f")) for guid, fields in rows}


def test_a_deck_holds_quizzes_and_bugs_with_brackets_and_indentation_intact(tmp_path: Path) -> None:
    pytest.importorskip("genanki")
    count = write_deck(COURSE, tmp_path / "deck.apkg")
    found = notes(tmp_path / "deck.apkg", tmp_path)
    assert count == len(found) == 5
    _, (_, title, front, back) = found[QUIZ.id]
    assert title == "What is kernel[grid]?"
    assert "What does kernel[grid](x) do with <code>a[i]</code>?" in front
    assert "<pre>kernel[grid](x)\na[i] = 1</pre>" in front
    assert "<a " not in front + back
    assert "One program for each grid[i]." in back
    _, (_, _, front, back) = found[BUG.id]
    assert "13      tl.store(out_ptr + offs, x + y)" in front
    assert "mask=mask)</pre>" in back
    assert "offs &lt; n" in front


def test_no_text_of_the_course_loses_or_gains_a_character_on_its_way_into_html() -> None:
    for item in load().items():
        texts = [item.title]
        if isinstance(item, Quiz):
            texts += [text for option in item.options for text in (option.text, option.why)]
        for text in texts:
            shown = html.unescape(re.sub(r"<[^>]+>", "", inline_html(text)))
            assert shown.split() == inline(text).plain.split(), item.id


def test_a_later_deck_has_the_same_notes_under_the_same_identities(tmp_path: Path) -> None:
    pytest.importorskip("genanki")
    write_deck(COURSE, tmp_path / "deck.apkg")
    first = {item: guid for item, (guid, _) in notes(tmp_path / "deck.apkg", tmp_path).items()}
    write_deck(COURSE, tmp_path / "deck.apkg")
    second = {item: guid for item, (guid, _) in notes(tmp_path / "deck.apkg", tmp_path).items()}
    assert first == second
    assert len(set(first.values())) == 5
    assert first[QUIZ.id] == "oA^ilf~*,5"  # pinned: another one would duplicate every card in learners' collections
