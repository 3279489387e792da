from __future__ import annotations

from pathlib import Path

import pytest

from tutor.course.loader import CourseErrors
from tutor.drill.plan import load_plans, schema_file, schema_text

GOOD = """\
plans:
  - id: drills.plan.one
    name: one
    title: One
    about: One phase.
    phases:
      - name: ask
        minutes: 5
        script: Ask.
        picks:
          - {kinds: [quiz], count: 2}
"""


def errors(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "drills.yaml"
    file.write_text(text)
    with pytest.raises(CourseErrors) as caught:
        load_plans(file)
    return [str(error).removeprefix(f"{file}:") for error in caught.value.errors]


def test_a_good_plan_loads(tmp_path: Path) -> None:
    (tmp_path / "drills.yaml").write_text(GOOD)
    assert load_plans(tmp_path / "drills.yaml")[0].minutes == 5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("minutes: 5", "minuets: 5", "8: drills.plan.one: unknown key 'minuets'; write 'minutes'"),
        ("minutes: 5", "minutes: 0", "8: drills.plan.one: expected `int` >= 1"),
        ("[quiz]", "[quizz]", "11: drills.plan.one: invalid enum value 'quizz'"),
        ("    name: one\n", "", "2: drills.plan.one: 'name' is missing; add `name:` to this plan"),
        ("        picks:\n          - {kinds: [quiz], count: 2}\n", "", "7: drills.plan.one: nothing to do in 'ask'"),
        ("count: 2}", "beside: kernel}", "7: drills.plan.one: no phase before this one is 'kernel'"),
        ("count: 2}", "difficulty: [3, 1]}", "10: drills.plan.one: difficulty runs from high to low; write [from, to]"),
        ("title: One", "title: [", "6: not YAML"),
    ],
)
def test_an_error_names_the_line_and_what_to_write(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = errors(tmp_path, GOOD.replace(old, new))
    assert any(text.startswith(said) for text in found), found


def test_several_errors_are_told_at_once(tmp_path: Path) -> None:
    assert len(errors(tmp_path, GOOD.replace("minutes: 5", "minutes: 0").replace("[quiz]", "[quizz]"))) == 2


def test_the_schema_is_the_one_of_the_types() -> None:
    assert schema_file().read_text() == schema_text(), "run python -m tutor.drill.plan"
