from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from tests.homework.marks import DUE, attempt, graded, mark, timed, verdict
from tutor.homework.assignment import Assignment, Exercise, Late, SpeedStep
from tutor.homework.files import folder_name
from tutor.homework.marking import Result
from tutor.homework.results import class_page, classroom, feedback, gradescope, junit, tables, told
from tutor.homework.results.told import Told
from tutor.homework.work import Facts

ASKED = Exercise(exercise="vector_add", points=4)
SECRET = verdict("wrong_answer", seed=987654, cases=[{"name": "n=31337", "status": "wrong_answer", "message": "is 42"}])
FACTS = Facts("interpreter", "CPU interpreter", {"triton": "3.7.1"})


def said(result: Result, asked: Exercise = ASKED) -> list[Told]:
    return [told.tell(one, asked) for one in result.counted.marks]


def every_form(result: Result, asked: Exercise = ASKED) -> dict[str, str]:
    """What a learner may see, in every form."""
    words = said(result, asked)
    heading = told.heading(result, f"Homework: {result.learner}")
    return {
        "gradescope": json.dumps(gradescope.results_json(result, words, "Homework", 1.0)),
        "classroom": json.dumps(classroom.classroom_json(result, words, {})),
        "junit": junit.junit_xml(result.learner, words),
        "md": feedback.markdown(heading, words),
        "html": feedback.page(heading, words),
    }


def test_of_a_hidden_run_only_kind_and_concept_are_told() -> None:
    for name, text in every_form(mark(graded(verdict()), graded(SECRET))).items():
        assert "wrong answer (about: masking)" in text, name
        for secret in ("987654", "31337", "is 42", "no mask", "m03.bug.fill", "missing"):
            assert secret not in text, (name, secret)


def test_of_a_hidden_case_only_kind_and_concept_are_told() -> None:
    shown = verdict(
        "wrong_answer", traffic={"loaded_bytes": 31337, "stored_bytes": 1, "minimum_bytes": 1, "ratio": 1.0}
    )
    result = mark(graded(shown))
    open_to_all = every_form(result)
    for name, text in every_form(result, Exercise(exercise="vector_add", points=4, hidden_cases=("n=1001",))).items():
        assert "hidden case 1" in text, name
        assert "masking" in text, name
        assert "n=1000" in text, name
        for secret in ("n=1001", "a[i]", "I printed", "31337", "31.3"):
            assert secret not in text, (name, secret)
            assert secret in "".join(open_to_all.values()) or secret == "31337"


def test_gradescope_gets_its_documented_format() -> None:
    result = mark(
        graded(verdict("wrong_answer")),
        None,
        attempt(submitted=DUE + timedelta(days=1)),
        due=DUE,
        late=Late(policy="linear", lose_per_day=50),
    )
    found = gradescope.results_json(result, said(result), "Homework", 12.34)
    assert set(found) <= {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format",
                          "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"}  # fmt: skip
    assert (found["score"], found["execution_time"], found["stdout_visibility"]) == (0, 12.3, "hidden")
    assert "50 % of the points are kept" in found["output"]
    for test in found["tests"]:
        assert set(test) <= {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format",
                             "tags", "visibility", "extra_data"}  # fmt: skip
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] in ("hidden", "after_due_date", "after_published", "visible")
        assert test["output_format"] == "text"
    assert [(t["name"], t["number"], t["status"], t.get("score"), t.get("max_score")) for t in found["tests"]] == [
        ("vector_add", "1", "failed", 0, 4),
        ("vector_add: n=1000", "1.1", "passed", None, None),
        ("vector_add: n=1001", "1.2", "failed", None, None),
    ]


def test_a_score_that_is_not_known_is_given_to_nobody() -> None:
    lost = mark(graded(None, "secret fault"))
    found = gradescope.results_json(lost, said(lost), "Homework", 1.0)
    assert "score" not in found
    assert "score" not in found["tests"][0]
    assert classroom.classroom_json(lost, said(lost), {})["status"] == "error"
    assert '<error message="' in junit.junit_xml("ana", said(lost))
    assert "secret fault" not in "".join(every_form(lost).values())
    rows = list(csv.DictReader(tables.results_csv([lost], [ASKED]).splitlines()))
    assert rows[0]["score"] == ""
    assert "secret fault" in rows[0]["attention"]


def test_junit_counts_agree_with_what_is_in_it() -> None:
    shown = verdict("wrong_answer")
    shown["cases"].append({"name": "big", "status": "skipped", "message": "needs a GPU"})
    shown["cases"][1]["message"] = "control \x00\x1b and <&>"
    result = mark(graded(shown), learner="a\x08n<a>")
    (suite,) = ET.fromstring(junit.junit_xml(result.learner, said(result)))
    assert suite.attrib["name"] == "a\N{REPLACEMENT CHARACTER}n<a>"
    assert [suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "1"]
    assert [len(case) for case in suite] == [0, 1, 1]
    failure = suite[1][0]
    assert (failure.tag, failure.attrib["type"]) == ("failure", "wrong_answer")
    assert "The store has no mask" in str(failure.text)


def test_an_exercise_that_fails_beside_its_cases_fails_in_junit() -> None:
    result = mark(graded(verdict("not_triton", cases=[{"name": "n=1", "status": "passed"}])))
    (suite,) = ET.fromstring(junit.junit_xml("ana", said(result)))
    assert [(case.attrib["name"], len(case)) for case in suite] == [("n=1", 0), ("the whole", 1)]


def test_github_classroom_adds_up_to_the_score() -> None:
    result = mark(
        graded(verdict()), None, attempt(submitted=DUE + timedelta(days=1)), due=DUE, late=Late(policy="linear")
    )
    found = classroom.classroom_json(result, said(result), {"vector_add": 1.5})
    assert found["version"] == 1
    assert sum(test["score"] for test in found["tests"]) == result.points == 3.6
    assert found["max_score"] == 4
    assert found["tests"][0]["duration"] == 1500


def test_learners_text_stays_text_in_markdown_and_html() -> None:
    nasty = "```\n# no\n<script>alert(1)</script>\n![x](http://x)"
    result = mark(graded(verdict(output={"text": nasty})), learner="<b>*ana*")
    forms = every_form(result)
    assert "<script" not in forms["html"].replace("&lt;script", "")
    assert "&lt;b&gt;*ana*" in forms["html"]
    lines = forms["md"].splitlines()
    fence = next(line for line in lines if line.startswith("````"))
    assert fence == "````text"
    assert lines[0] == r"# Homework: \<b\>\*ana\*"


def test_times_stand_apart() -> None:
    asked = Exercise(exercise="vector_add", points=4, speed=(SpeedStep(percent_of_limit=50, points=1),))
    result = mark(graded(timed(90)), asked=asked, timing=True)
    forms = every_form(result, asked)
    assert "yours" in forms["md"].split("## Times")[1]
    assert "10.0 µs" not in forms["md"].split("## Times")[0]
    assert "Speed: 1 of 1 points" in forms["md"]
    assert "Not timed" not in forms["md"]
    before, times = forms["html"].split('<section class="times">')
    assert "µs" not in before
    assert times.count('class="bar') == 3


def test_tables_hold_every_learner_and_no_formula() -> None:
    results = [mark(graded(verdict()), learner="=1+1"), mark(graded(verdict("timeout")), learner="ben")]
    rows = list(csv.DictReader(tables.results_csv(results, [ASKED]).splitlines()))
    assert [row["learner"] for row in rows] == ["'=1+1", "ben"]
    assert [(row["vector_add"], row["vector_add status"]) for row in rows] == [("4.0", "passed"), ("0.0", "timeout")]
    speedy = Exercise(exercise="vector_add", speed=(SpeedStep(percent_of_limit=50, points=2),), hidden_cases=("n=7",))
    found = tables.summary(results, [speedy], Assignment(exercises=(speedy,)), FACTS)
    assert found["verified"] is False
    assert [entry["score"] for entry in found["learners"]] == [4, 0]
    notes = "\n".join(found["notes"])
    assert "not verified by replay" in notes
    assert "Points for speed (2) are left out" in notes
    assert "no case is called n=7" in notes
    assert "seconds" not in json.dumps(found).replace("late_seconds", "")


REMARK = {
    "cause": "wrong_device_current", "message": "Right, but not on two GPUs.", "line": 3,
    "concept": "launch", "see": "m02.lesson.launch", "case": "n=1000",
}  # fmt: skip


def test_a_remark_beside_a_pass_is_told_and_counts_as_no_mistake() -> None:
    result = mark(graded(verdict(diagnosis=REMARK)))
    assert result.points == 4 and [tables.cause(one) for one in result.counted.marks] == [None]
    forms = every_form(result)
    assert json.loads(forms.pop("classroom"))["tests"][0]["message"] is None  # its words are for failures
    for name, text in forms.items():
        assert "Right, but not on two GPUs." in text, name
    (suite,) = ET.fromstring(junit.junit_xml("ana", said(result)))
    assert [suite.attrib[key] for key in ("tests", "failures")] == ["1", "0"]
    assert [one.tag for one in suite[0]] == ["system-out"]
    page = class_page.class_page("Homework", [], [result], [ASKED])
    assert "wrong device" not in page and "Mistakes made most" not in page
    rows = list(csv.DictReader(tables.results_csv([result], [ASKED]).splitlines()))
    assert (rows[0]["vector_add status"], rows[0]["vector_add cause"]) == ("passed", "")


def test_a_hidden_run_s_mistake_is_counted_and_no_remark_of_the_shown_one() -> None:
    result = mark(graded(verdict(diagnosis=REMARK)), graded(SECRET))
    assert [tables.cause(one) for one in result.counted.marks] == ["missing_store_mask"]


def test_a_remark_about_a_hidden_case_says_its_concept_alone() -> None:
    asked = Exercise(exercise="vector_add", points=4, hidden_cases=("n=1000",))
    for name, text in every_form(mark(graded(verdict(diagnosis=REMARK))), asked).items():
        assert ("This is about: launch." in text) == (name != "classroom"), name
        assert "two GPUs" not in text and "Why" not in text, name
    asked = Exercise(exercise="vector_add", points=4, hidden_cases=("n=7",))
    assert "two GPUs" in every_form(mark(graded(verdict(diagnosis=REMARK))), asked)["md"]


class Elsewhere(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe"):
            self.found.append(tag)
        self.found += [str(value) for name, value in attrs if name in ("src", "href") and "//" in str(value)]


def test_the_class_page_needs_nothing_from_elsewhere_and_is_the_same_twice() -> None:
    results = [mark(graded(verdict()), learner="<i>ana"), mark(graded(verdict("wrong_answer")), learner="ben")]
    pages = {class_page.class_page("Homework", ["A note."], results, [ASKED]) for _ in range(2)}
    (page,) = pages
    reader = Elsewhere()
    reader.feed(page)
    assert reader.found == []
    assert page.count("<svg") == 4
    assert "missing store mask" in page
    assert "&lt;i&gt;ana" in page
    assert "<i>ana" not in page


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", ".hidden", "é" * 500, " "])
def test_a_learners_folder_is_a_plain_name(name: str) -> None:
    made = folder_name(name)
    assert made
    assert "/" not in made
    assert not made.startswith(".")
    assert len(made.encode()) <= 255
