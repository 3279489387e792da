"""The glossary: its file, its terms' items, and the plain command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run
from tutor.course.course import kind_of
from tutor.course.glossary import find, glossary_file, item_errors, load_glossary, occurring, schema_file, schema_text
from tutor.course.loader import CourseErrors, load

GOOD = """\
terms:
  - term: mask
    text: Which lanes touch memory, as in p[i].
    item: m01.bug.mask
    also: [masked, "mask="]
  - term: grid
    text: How many programs kernel[grid](x) starts.
    item: m01.lesson.launch
  - term: split-K
    text: Several programs share one tile of C.
    item: m01.lesson.launch
"""


def errors(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "glossary.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CourseErrors) as caught:
        load_glossary(file)
    return [str(error).removeprefix(f"{file}:") for error in caught.value.errors]


def test_the_course_explains_its_terms_and_names_an_item_for_each() -> None:
    terms, course = load_glossary(), load()
    assert len(terms) >= 120
    assert item_errors(terms, course) == ()
    names = [term.term.casefold().replace("_", " ").replace("-", " ") for term in terms]
    assert names == sorted(names)
    assert schema_file().read_text(encoding="utf-8") == schema_text(), "run python -m tutor.course.glossary"


def test_each_term_stands_in_the_item_that_is_said_to_teach_it() -> None:
    course = load()
    from tutor.course.text import item_text

    missing = []
    for term in load_glossary():
        item = course.item(term.item)
        if not occurring((term,), item_text(item, answer=True)):
            missing.append(f"{term.term}: {kind_of(item)} {term.item}")
    assert missing == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("term: grid", "trem: grid", "6: term 2: unknown key 'trem'; write 'term'"),
        ("    item: m01.bug.mask\n", "", "2: mask: 'item' is missing; add `item:` to this term"),
        ("item: m01.bug.mask", "item: mask", "4: mask: 'mask' has the wrong form"),
        ("text: How many programs kernel[grid](x) starts.", "text: Many.", "7: grid: expected `str` of length >= 10"),
        ("term: grid", "term: Masked", "6: Masked: the name 'Masked' is taken by 'mask'; keep one of them"),
        ("term: grid", "term: [", "7: not YAML"),
    ],
)
def test_an_error_names_the_line_and_what_to_write(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = errors(tmp_path, GOOD.replace(old, new))
    assert any(text.startswith(said) for text in found), found


def test_a_term_is_found_in_text_as_a_word_however_it_is_spelled(tmp_path: Path) -> None:
    file = tmp_path / "glossary.yaml"
    file.write_text(GOOD, encoding="utf-8")
    terms = load_glossary(file)

    def used(text: str) -> list[str]:
        return [term.term for term in occurring(terms, text)]

    assert used("Split K with masks, load(p, mask=m).") == ["mask", "split-K"]
    assert used("kernel[grid](x)") == ["grid"]
    assert used("unmask meta.grid gridlock") == []
    assert [term.term for term in find(terms, "split_k")] == ["split-K"]
    assert [term.term for term in find(terms, "K")] == ["mask", "split-K"]


def test_an_item_that_is_gone_is_named_with_its_line(small_course: Path) -> None:
    file = glossary_file()
    assert file.is_relative_to(small_course)
    file.write_text(GOOD.replace("m01.bug.mask", "m01.bug.mas"), encoding="utf-8")
    (error,) = item_errors(load_glossary(), load(cache=False))
    assert str(error) == f"{file}:4: mask: there is no item m01.bug.mas; did you mean m01.bug.mask?"


def test_the_command_prints_one_term_or_all_and_advises_on_unknown_ones(command: Run, course_root: Path) -> None:
    assert "no glossary" in command("glossary").stderr
    (course_root / "modules" / "glossary.yaml").write_text(GOOD, encoding="utf-8")
    done = command("glossary", "Masked")
    assert done.stdout == ("mask (also masked, mask=)\nWhich lanes touch memory, as in p[i].\n-> m01.bug.mask\n"), (
        done.stderr
    )
    assert done.returncode == 0
    everything = command("glossary").stdout
    assert everything.index("kernel[grid](x)") < everything.index("p[i]") < everything.index("tile of C")
    unknown = command("glossary", "gird")
    assert unknown.returncode == 2
    assert unknown.stdout == ""
    assert "Did you mean grid?" in unknown.stderr
