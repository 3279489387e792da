"""What compiles beside a run on a GPU, without one: the processes compile for a target that is not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import compile_ahead, triton_adapter
from grader.catalog import find
from grader.compile_ahead import CompileAhead, processes, shares
from grader.cores import VARIABLE as CORES_VARIABLE
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.verdict import Verdict
from grader.warm import SLOW_IMPORTS, Warm


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    warm = Warm("offline")
    yield Judge({"offline": warm}, "no GPU")
    warm.close()


@pytest.fixture
def make(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compile_ahead, "device_target", lambda: "sm_90")

    def grade(slug: str, change: tuple[str, str] = ("", "")) -> Grade:
        files = find(slug)
        text = files.solution.read_text()
        assert change[0] in text
        problem = judge.problem(files)
        verdict = Verdict(slug, problem.title, f"{slug}.py", "", 0, "cuda", "no GPU", {})
        submission = Submission(files, f"{slug}.py", text.replace(*change).encode() if change[0] else text.encode())
        options, cache = Options(backend="cuda", target="gfx942"), str(tmp_path)
        return Grade(
            submission, problem, options, "cuda", lambda event: None, lambda: False, verdict, judge.drawings, cache
        )

    return grade


def compiled(folder: str | None) -> set[Path]:
    assert folder is not None
    return set(Path(folder).rglob("*.cubin"))


def finish(ahead: CompileAhead) -> None:
    """Let the processes come to their ends, which a grade does not wait for."""
    ahead.pool.shutdown(wait=True)


def test_what_the_cases_need_lies_in_the_grades_cache_and_is_found_there_again(judge, make, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "8")
    grade = make("vector_add")
    with CompileAhead(judge, grade) as ahead:
        finish(ahead)
    first = compiled(grade.cache)
    assert len(first) > 1
    with CompileAhead(judge, grade) as ahead:
        finish(ahead)
    assert compiled(grade.cache) == first
    assert not judge.warm["offline"].runners


def test_a_file_that_does_not_compile_is_the_runs_to_report(judge, make, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "8")
    for change in (("tl.store(out_ptr", "tl.stored(out_ptr"), ("import triton\n", "import triton\nraise OSError\n")):
        grade = make("vector_add", change)
        with CompileAhead(judge, grade) as ahead:
            finish(ahead)
        assert not compiled(grade.cache) and grade.verdict.status == "infrastructure_error" and not grade.verdict.notes


def test_it_ends_with_its_block_wherever_it_is(judge, make, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "8")
    grade = make("vector_add", ("import triton\n", "import time, triton\ntime.sleep(3600)\n"))
    with CompileAhead(judge, grade):
        pass
    assert not judge.warm["offline"].runners and not grade.over.is_set()


def test_each_case_is_compiled_by_one_process(make):
    grade = make("softmax")
    dealt = [case.name for cases in shares(grade, 3) for case in cases]
    assert len(dealt) == len(set(dealt)) > 3 and len(shares(grade, 3)) == 3 and shares(grade, 0) == []
    assert len(shares(grade, 1000)) == len(dealt)


def test_nothing_is_compiled_where_it_would_delay_the_run_or_change_it(make, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "3")
    assert processes() == 0
    monkeypatch.setenv(CORES_VARIABLE, "16")
    assert processes() == 4
    assert shares(make("compiled_add"), 4) == []
    assert shares(make("vector_add", ("import triton\n", "import triton  # cache_results\n")), 4) == []


def test_the_c_compiler_is_not_asked_for_the_drivers_module_again(monkeypatch):
    """Triton builds it in every construction of the class, and construct it does, in each process."""
    from triton.backends.nvidia.driver import CudaUtils

    built: list[int] = []
    monkeypatch.setattr(CudaUtils, "__init__", lambda self: built.append(1))
    triton_adapter.preload_driver()
    CudaUtils()
    assert built == [1]


def test_several_threads_may_ask_a_warm_process_at_a_time(judge):
    """Each gets the answer to its own question."""
    warm = judge.warm["offline"]
    wrong: list[object] = []

    def asks(message: dict[str, object], answer: str) -> None:
        for _ in range(200):
            try:
                reply = warm._ask(message, [])
            except Exception as error:
                wrong.append(error)
                return
            if set(reply) != {answer}:
                wrong.append(reply)

    questions = [({"op": "layers"}, "layers"), ({"op": "alive", "pid": 0}, "alive")] * 2
    threads = [threading.Thread(target=asks, args=question) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_only_some_files_need_is_imported_one_by_one_and_once(judge: Judge):
    warm = judge.warm["offline"]
    left = [warm.import_next() for _ in (*SLOW_IMPORTS, "one more")]
    assert left == [*reversed(range(len(SLOW_IMPORTS))), 0]
