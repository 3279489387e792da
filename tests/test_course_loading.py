from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import MODULE
from tutor.course import loader
from tutor.course.course import UnknownItem, kind_of
from tutor.course.loader import CourseErrors, load


@pytest.fixture
def modules(small_course: Path) -> Path:
    return small_course / "modules"


def write(modules: Path, old: str, new: str) -> None:
    file = modules / "01-tiny.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def errors(modules: Path, *, thorough: bool = True) -> list[str]:
    with pytest.raises(CourseErrors) as caught:
        load(modules, thorough=thorough)
    return [str(error).removeprefix(f"{modules}/") for error in caught.value.errors]


def line_of(text: str, *, module: str = MODULE) -> int:
    return module[: module.index(text)].count("\n") + 1


def test_every_kind_of_item_is_read(modules: Path) -> None:
    course = load(modules, thorough=True)
    kinds = [kind_of(item) for item in course.items()]
    assert set(kinds) == {"lesson", "quiz", "bug", "match", "walkthrough", "predict", "open", "exercise"}


def test_items_are_found_by_id_alias_and_neighbour(modules: Path) -> None:
    course = load(modules)
    assert course.item("m01.quiz.was-a").id == "m01.quiz.a"
    assert course.current_id("m01.quiz.never") is None
    with pytest.raises(UnknownItem, match=r"m01\.quiz\.a"):
        course.item("m01.quiz.aa")
    following = course.after("m01.lesson.launch")
    assert following is not None
    assert following.id == "m01.quiz.a"
    assert course.before("m01.lesson.launch") is None
    assert course.after(course.items()[-1].id) is None
    exercise = course.exercise_item("row_sum")
    assert exercise is not None
    assert exercise.id == "m01.exercise.row-sum"
    assert course.module_of("m01.quiz.a").id == "m01"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("title: The launch", "titel: The launch", "m01.lesson.launch: unknown key 'titel'; write 'title'"),
        ("- kind: lesson", "- kind: leson", "m01.lesson.launch: unknown kind 'leson'; write `kind: lesson`"),
        ("id: m01.quiz.b", "id: Quiz B", "Quiz B: 'Quiz B' has the wrong form; it should look like m04.quiz.shift"),
        ('{a: "1", b: "2"}', "{a: 1, b: '2'}", 'put it in quotes: "1"'),
        ('text: "Indexes"', "text: yes", "YAML reads yes, no, on, off"),
        ("faulty: [2]", "faulty: [7]", "m01.bug.mask: line 7 is not in the code; the code has lines 1 to 3"),
        ("line: 2, text", "line: 9, text", "line 9 is not in the code"),
        ("lines: [2], state", "lines: [5], state", "line 5 is not in the stage; it has lines 1 to 2"),
        ('{a: "1", b: "2"}', '{a: "1", c: "2"}', "state differs from step 1 in its names: b, c"),
        (', correct: true}\n      - {text: "Indexes"', '}\n      - {text: "Indexes"', "m01.quiz.a: no option is right"),
        ("id: m01.quiz.b", "id: m01.quiz.a", "id is used twice"),
        ("id: m01.quiz.b", "id: m02.quiz.b", "id does not start with its module's; write m01."),
        ("id: m01.quiz.b", "id: m01.lesson.b", "id does not name its kind, quiz"),
        ("aliases: [m01.quiz.was-a]", "aliases: [m01.quiz.b]", "alias m01.quiz.b is the id of an item"),
        ("exercise: row_sum", "exercise: row_sun", "no exercise 'row_sun'; did you mean row_sum?"),
        ("b = a + 1", "b = a + 1  # " + "x" * 70, "code of 83 columns, at most 72 are shown; break the line"),
        ("kernel[grid](x, acc", "kernel[grid](x, " + "y" * 70 + ", acc", "columns, at most 72 are shown"),
        ("text: More about x[0].", 'text: "' + "a\\n" * 61 + '"', "page 2 has 61 lines, at most 60 are shown"),
        ("title: Two right", "title: Two right\n    title: Twice", "'title' is given twice here"),
        ("title: Two right", "title: Two right\n    evidence: [because]", "write test:tests/evidence/test_m04.py::"),
        ("title: Two right", "title: Two: right", "not YAML"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(modules: Path, old: str, new: str, expected: str) -> None:
    write(modules, old, new)
    assert any(expected in error for error in errors(modules)), errors(modules)


def test_an_error_names_the_line_it_stands_on(modules: Path) -> None:
    write(modules, "title: The launch", "titel: The launch")
    (unknown,) = [error for error in errors(modules) if "unknown key" in error]
    assert unknown.startswith(f"01-tiny.yaml:{line_of('title: The launch')}: ")


def test_a_wide_line_of_code_is_named_by_its_own_line(modules: Path) -> None:
    write(modules, "b = a + 1", "b = a + 1  # " + "x" * 70)
    (wide,) = errors(modules)
    assert wide.startswith(f"01-tiny.yaml:{line_of('b = a + 1')}: m01.walk.add: ")


def test_all_errors_of_all_files_come_at_once(modules: Path) -> None:
    write(modules, "title: The launch", "titel: The launch")
    write(modules, "question: Which are true?", "questoin: Which are true?")
    (modules / "02-other.yaml").write_text("id: m02\ntitle: [not, text]\n")
    (modules / "03-third.yaml").write_text("id: 'unclosed\n")
    found = errors(modules)
    for part in (
        "'titel'",
        "'questoin'",
        "'question' is missing",
        "02-other.yaml:2",
        "'probes' is missing",
        "03-third.yaml",
    ):
        assert any(part in error for error in found), (part, found)


def test_evidence_must_exist(small_course: Path, modules: Path) -> None:
    tests = small_course / "tests" / "evidence"
    tests.mkdir(parents=True)
    (tests / "test_m01.py").write_text("def test_there():\n    pass\n")
    cited = "title: Two right\n    evidence: ['test:tests/evidence/test_m01.py::test_{}']"
    write(modules, "title: Two right", cited.format("there"))
    load(modules, thorough=True)
    write(modules, "::test_there", "::test_ther")
    (missing,) = errors(modules)
    assert "did you mean test_there?" in missing
    write(modules, "evidence/test_m01.py", "evidence/test_m09.py")
    (missing,) = errors(modules)
    assert "a file that is not there" in missing


def test_the_app_opens_a_course_that_only_breaks_rules_for_authors(modules: Path) -> None:
    write(modules, "b = a + 1", "b = a + 1  # " + "x" * 70)
    assert load(modules, cache=False).item("m01.walk.add")


def test_the_cache_is_used_until_a_file_changes(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(modules)

    def fail(*_: object) -> None:
        raise AssertionError("parsed again")

    with monkeypatch.context() as patched:
        patched.setattr(loader, "_parse", fail)
        assert load(modules) == first
    write(modules, "title: Tiny module", "title: Other title")
    assert load(modules).modules[0].title == "Other title"


def test_a_damaged_or_unwritable_cache_is_no_matter(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(modules)
    (cache,) = (tmp_path / "cache").iterdir()
    cache.write_bytes(cache.read_bytes()[:40] + b"\xff\xff")
    assert load(modules).modules[0].title == "Tiny module"
    (tmp_path / "blocked").write_text("in the way")
    monkeypatch.setitem(os.environ, "TRITON_PREP_CACHE", str(tmp_path / "blocked" / "cache"))
    assert load(modules).modules[0].title == "Tiny module"
