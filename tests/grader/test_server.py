"""The protocol's edges: what is malformed, unknown, cancelled or not a file."""

from __future__ import annotations

import json

import pytest

from grader.catalog import find
from tests.grader.server import RealGrader


def failed(grader, **request):
    event, _ = grader.ask("grade", **request)
    assert event["event"] == "failed", event
    return event["kind"], event["message"]


def test_ready_says_versions_and_backend(grader):
    assert grader.ready["event"] == "ready"
    assert grader.ready["backend"] in ("interpreter", "cuda") and grader.ready["versions"]["triton"]


def test_an_unknown_exercise_is_usage_and_suggests_the_nearest(grader):
    kind, message = failed(grader, exercise="vector_ad", file="x.py")
    assert kind == "usage" and "vector_add" in message


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "directory"),
        (lambda path: path.write_bytes(b"x = 1\ny = '\xff\xfe'\n"), ":2: not UTF-8"),
        (lambda path: path.write_bytes(b"#" * (2 << 20)), "larger than"),
    ],
)
def test_what_is_no_readable_file_is_usage(grader, tmp_path, make, words):
    path = tmp_path / "submission.py"
    make(path)
    kind, message = failed(grader, exercise="vector_add", file=str(path))
    assert kind == "usage" and words in message


@pytest.mark.parametrize(
    ("options", "words"),
    [({"backend": "tpu"}, "backend"), ({"target": "sm_ninety"}, "sm_90")],
)
def test_bad_options_are_usage(grader, options, words):
    kind, message = failed(grader, exercise="vector_add", file=str(find("vector_add").solution), **options)
    assert kind == "usage" and words in message


def test_verified_without_a_gpu_is_infrastructure(grader):
    if grader.ready["backend"] == "cuda":
        pytest.skip("there is a GPU")
    kind, message = failed(grader, exercise="vector_add", file=str(find("vector_add").solution), verified=True)
    assert kind == "infrastructure" and "needs a GPU" in message


def test_sanitize_without_a_gpu_is_infrastructure(grader):
    if grader.ready["backend"] == "cuda":
        pytest.skip("there is a GPU")
    kind, message = failed(grader, exercise="vector_add", file=str(find("vector_add").solution), sanitize=True)
    assert kind == "infrastructure" and "needs a GPU" in message


def test_a_malformed_line_is_answered_and_the_next_request_served(grader):
    grader.write("{not json")
    assert grader.read()["kind"] == "usage"
    event, _ = grader.ask("dance")
    assert event["kind"] == "usage" and "dance" in event["message"]


def test_stages_and_cases_arrive_before_the_verdict(grader):
    event, events = grader.ask(
        "grade", exercise="vector_add", file=str(find("vector_add").solution), backend="interpreter"
    )
    names = [e["name"] for e in events if e["event"] == "stage" and e["state"] == "done"]
    assert names == ["import", "run", "offline compile"]
    cases = [e for e in events if e["event"] == "case"]
    assert [c["index"] for c in cases] == list(range(cases[0]["total"]))
    assert [c["case"] for c in cases] == event["verdict"]["cases"]


def test_a_cancelled_grade_ends_at_once_and_leaves_no_process(grader, tmp_path):
    file = tmp_path / "vector_add.py"
    file.write_text("def add(x, y):\n    while True:\n        pass\n")
    grader.number += 1
    number = grader.number
    grader.write(
        json.dumps({"op": "grade", "id": number, "exercise": "vector_add", "file": str(file), "backend": "interpreter"})
    )
    while True:
        event = grader.read()
        if event["event"] == "stage" and event["name"] == "run":
            break
    grader.write(json.dumps({"op": "cancel", "id": number}))
    while event["event"] not in ("failed", "verdict"):
        event = grader.read()
    assert event["kind"] == "cancelled"


def test_inspect_shows_each_stage_without_the_scratch_folder(grader):
    for stage, words in (("ttir", "tt.load"), ("ptx", ".target sm_90"), ("sass", "EXIT")):
        event, _ = grader.ask(
            "inspect", exercise="vector_add", file=str(find("vector_add").solution), stage=stage, target="sm_90"
        )
        text = event["kernels"][0]["text"]
        assert words in text and "triton-prep-" not in text


def test_inspect_compiles_for_amd(grader):
    event, _ = grader.ask(
        "inspect", exercise="vector_add", file=str(find("vector_add").solution), stage="amdgcn", target="gfx942"
    )
    assert "gfx942" in event["kernels"][0]["text"]


def test_inspect_of_what_does_not_compile_names_file_and_line(grader, tmp_path):
    file = tmp_path / "vector_add.py"
    file.write_text(find("vector_add").solution.read_text().replace("BLOCK=1024", "BLOCK=1000"))
    event, _ = grader.ask("inspect", exercise="vector_add", file=str(file), stage="ttir")
    assert event["event"] == "failed" and "vector_add.py:" in event["message"] and "power of 2" in event["message"]


def test_compiled_without_a_gpu_says_what_was_left_out(grader):
    verdict = grader.grade("compiled_add", find("compiled_add").solution)
    assert verdict["status"] == "passed"
    assert any("torch.compile" in note for note in verdict["notes"])


def test_without_triton_the_grader_says_what_is_missing(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'triton' else find(name, package)\n"
    )
    grader = RealGrader(PYTHONPATH=str(tmp_path))
    assert grader.ready["backend"] == "none" and "triton" in grader.ready["reason"]
    event, _ = grader.ask("grade", exercise="vector_add", file="x.py")
    assert (event["event"], event["kind"]) == ("failed", "infrastructure")
    event, _ = grader.ask("doctor")
    assert any(row["name"] == "grading" and row["state"] == "missing" for row in event["report"]["rows"])
    grader.close()


def test_doctor_reports_versions_and_the_missing_gpu(grader):
    event, _ = grader.ask("doctor")
    names = {row["name"]: row for row in event["report"]["rows"]}
    assert names["triton"]["state"] == "ok" and "GPU" in names
