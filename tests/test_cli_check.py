from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tutor.course.schema import schema_text


@pytest.fixture
def sound(course_root: Path) -> Path:
    """The small course made to hold under the stand-in grader: its bug fails as declared, its mend passes."""
    file = course_root / "modules" / "01-tiny.yaml"
    text = file.read_text().replace(
        "      tl.store(x)\n", "      tl.store(x)  # fake: out_of_bounds # cause: missing_store_mask\n"
    )
    assert "# fake" not in file.read_text()
    assert "# fake" in text
    file.write_text(text)
    (course_root / "modules" / "schema.json").write_text(schema_text(), encoding="utf-8")
    return course_root


def write(root: Path, old: str, new: str) -> None:
    file = root / "modules" / "01-tiny.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


def test_a_sound_course_holds(command: Run, sound: Path) -> None:
    done = command("check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The course holds." in done.stdout
    assert "✓ pass  bug items fail as declared, their mends pass: 2 checked" in done.stdout
    assert "an installed course carries no tests" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "status: out_of_bounds",
            "status: wrong_answer",
            "declares wrong_answer / missing_store_mask, gives out_of_bounds",
        ),
        ("    cause: missing_store_mask\n", "    cause: other_cause\n", "declares out_of_bounds / other_cause"),
        ("mask=m)", "mask=m)  # fake: not_written", "(mended, vector_add): should pass, gives not_written"),
        ("exercise: row_sum", "exercise: vector_add", "no module has an `exercise` item for it"),
        ("title: The launch", "titel: The launch", "modules/01-tiny.yaml:12: m01.lesson.launch: unknown key 'titel'"),
    ],
)
def test_a_false_claim_is_found(command: Run, sound: Path, old: str, new: str, said: str) -> None:
    write(sound, old, new)
    done = command("check")
    assert done.returncode == 1, done.stdout
    assert said in done.stdout
    assert "✗ FAIL" in done.stdout


def test_a_stale_schema_is_found(command: Run, sound: Path) -> None:
    (sound / "modules" / "schema.json").write_text("{}")
    done = command("check")
    assert done.returncode == 1
    assert "python -m tutor.course.schema" in done.stdout


def test_a_lost_grader_fails_the_check(command: Run, sound: Path) -> None:
    done = command("check", FAKE_GRADER_SILENT="1")
    assert done.returncode == 1
    assert "no module named torch" in done.stdout


def test_what_only_a_gpu_shows_is_skipped_by_name(command: Run, sound: Path) -> None:
    write(sound, "status: out_of_bounds", "status: nondeterministic\n    needs_gpu: races do not show")
    done = command("check")
    assert done.returncode == 0, done.stdout
    assert "m01.bug.mask (as given, vector_add): races do not show" in done.stdout
    assert command("check", FAKE_GRADER_BACKEND="cuda").returncode == 1


def test_cited_tests_are_run_and_skips_are_named(command: Run, sound: Path) -> None:
    tests = sound / "tests" / "evidence"
    tests.mkdir(parents=True)
    (tests / "test_m01.py").write_text(
        "import pytest\n"
        "def test_good():\n    pass\n"
        "def test_bad():\n    assert 1 == 2\n"
        "def test_gpu():\n    pytest.skip('needs a GPU')\n"
    )
    cite = "evidence: ['test:tests/evidence/test_m01.py::test_good', 'test:tests/evidence/test_m01.py::test_{}']"
    write(sound, "title: Two right", "title: Two right\n    " + cite.format("gpu"))
    done = command("check", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (evidence,) = [group for group in json.loads(done.stdout)["groups"] if group["name"].startswith("evidence")]
    assert evidence["checked"] == 1
    assert evidence["skipped"] == [["tests/evidence/test_m01.py::test_gpu", "needs a GPU"]]
    write(sound, "::test_gpu", "::test_bad")
    done = command("check")
    assert done.returncode == 1
    assert "test_bad (cited by m01.quiz.b): " in done.stdout
    assert "assert 1 == 2" in done.stdout
    assert command("check", "--no-evidence").returncode == 0
