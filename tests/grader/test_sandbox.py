"""What a graded file may not do, each thing tried from inside a real grade. A layer this system lacks is skipped by name."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader import sandbox
from grader.catalog import course_root, find
from grader.process_tree import descendants

LAYERS = sandbox.probe("interpreter")
TRY = """

def _try(action):
    try:
        return repr(action())
    except BaseException as error:
        return type(error).__name__

import json as _json
print("RESULT " + _json.dumps({name: _try(action) for name, action in ACTIONS.items()}))
"""


def needs(layer: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(layer not in LAYERS, reason=f"this system has no layer for {layer}")


@pytest.fixture
def attempt(submit):
    """Run actions (source of a dict of lambdas) inside a graded file that is otherwise right; what each gave."""

    def run(actions: str, before: str = "") -> dict[str, str]:
        source = find("vector_add").solution.read_text()
        verdict = submit("vector_add", source=f"{source}\n{before}\nACTIONS = {{{actions}}}\n{TRY}")
        assert verdict["status"] == "passed", verdict["diagnosis"]
        assert verdict["sandbox"] == LAYERS
        (line,) = [x for x in verdict["output"]["text"].splitlines() if x.startswith("RESULT ")]
        return dict(json.loads(line.removeprefix("RESULT ")))

    return run


@needs("files")
def test_a_graded_file_reads_no_solution_no_home_and_writes_only_its_scratch_folder(attempt, tmp_path):
    (tmp_path / "other.py").write_text("another learner's work")
    solution = find("vector_add").solution
    found = attempt(
        f"'solution': lambda: open({str(solution)!r}).read(), 'home': lambda: os.listdir({str(Path.home())!r}),"
        f"'course': lambda: os.listdir({str(course_root() / 'exercises')!r}),"
        f"'other': lambda: open({str(tmp_path / 'other.py')!r}).read(),"
        f"'write': lambda: open({str(tmp_path / 'new')!r}, 'w'), 'remove': lambda: os.remove({str(tmp_path / 'other.py')!r}),"
        "'shell': lambda: subprocess.run(['cat', " + repr(str(solution)) + "], capture_output=True).stdout,"
        "'scratch': lambda: open('mine', 'w').write('x'), 'temporary': lambda: len(tempfile.mkdtemp()) > 0,"
        "'numpy': lambda: len(open(numpy.__file__).read()) > 0",
        "import os, subprocess, tempfile, numpy",
    )
    refused = {name for name, result in found.items() if result == "PermissionError"}
    assert refused == {"solution", "home", "course", "other", "write", "remove"}
    assert found["shell"] == "b''"
    assert (found["scratch"], found["temporary"], found["numpy"]) == ("1", "True", "True")
    assert (tmp_path / "other.py").exists()


@needs("files")
def test_a_runner_on_a_gpu_may_name_its_own_threads_and_no_others(tmp_path):
    """CUDA's driver does so when it starts, by writing to their `comm`, and fails where it may not."""
    kept = tmp_path / "scratch"
    kept.mkdir()

    def tried() -> dict[str, bool]:
        sandbox.enter("cuda", [str(kept)], 4096)
        others = [f"/proc/{os.getppid()}/task/{os.getppid()}/comm", "/proc/self/oom_score_adj"]
        named = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        named.write_text("cuda")  # truncates, too
        return {"own": named.read_text() == "cuda\n", **{path: _writable(path) for path in others}}

    assert list(in_a_child(tried).values()) == [True, False, False]


def _writable(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        return False
    return True


def in_a_child(action: Callable[[], dict[str, bool]]) -> dict[str, bool]:
    """What it gives in a forked process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return dict(json.loads(text))


@needs("network")
def test_a_graded_file_reaches_no_network(attempt):
    found = attempt(
        "'tcp': lambda: socket.create_connection(('192.0.2.1', 80), 1), 'udp': lambda: udp(), 'pair': lambda: bool(socket.socketpair())",
        "import socket\ndef udp():\n    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    )
    assert found["tcp"] in ("PermissionError", "OSError") and found["udp"] in ("PermissionError", "OSError")
    assert found["pair"] == "True"


@needs("system_calls")
def test_a_graded_file_reaches_no_daemon_through_the_file_system(attempt):
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(f"{folder}/daemon")  # such as a container engine's, or an ssh agent's
        daemon.listen()
        daemon.setblocking(False)
        found = attempt(
            f"'reached': lambda: socket.socket(socket.AF_UNIX).connect({folder!r} + '/daemon')", "import socket"
        )
        assert found == {"reached": "PermissionError"}
        with pytest.raises(BlockingIOError):
            daemon.accept()


@needs("system_calls")
def test_a_graded_file_may_not_trace_mount_or_make_namespaces(attempt):
    found = attempt(
        "'trace': lambda: libc.ptrace(0, 0, 0, 0), 'namespace': lambda: libc.unshare(0x10000000),"
        "'mount': lambda: libc.mount(b'none', b'/mnt', b'tmpfs', 0, None)",
        "import ctypes\nlibc = ctypes.CDLL(None)",
    )
    assert found == {"trace": "-1", "namespace": "-1", "mount": "-1"}


@needs("files")
def test_a_graded_file_cannot_signal_or_look_into_the_processes_above_it(attempt):
    found = attempt(
        "'kill': lambda: os.kill(os.getppid(), 9), 'memory': lambda: open(f'/proc/{os.getppid()}/mem', 'rb').read(1),"
        "'descriptors': lambda: os.listdir(f'/proc/{os.getppid()}/fd'), 'environment': lambda: open(f'/proc/{os.getppid()}/environ').read()",
        "import os",
    )
    assert set(found.values()) == {"PermissionError"}


def test_a_daemon_ends_with_the_grade(submit, grader, tmp_path):
    solution = find("vector_add").solution.read_text()
    daemon = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os._exit(0)
"""
    before = set(descendants(grader.process.pid))
    assert submit("vector_add", source=solution + daemon)["status"] == "passed"
    assert set(descendants(grader.process.pid)) <= before


def test_endless_forking_is_stopped_and_leaves_nothing(submit, grader):
    storm = """
import os
def add(x, y):
    for _ in range(400):  # bounded, should the limit fail
        if os.fork() == 0:
            import time
            time.sleep(60)
            os._exit(0)
    time.sleep(60)
import time
"""
    before = set(descendants(grader.process.pid))
    started = time.monotonic()
    verdict = submit("vector_add", source=storm)
    assert verdict["status"] in ("crashed", "runtime_error"), verdict["diagnosis"]
    assert time.monotonic() - started < 55  # seconds; the children sleep for 60
    assert set(descendants(grader.process.pid)) <= before


def test_what_is_in_force_is_told_by_the_doctor(grader):
    event, _ = grader.ask("doctor")
    rows = {row["name"]: row for row in event["report"]["rows"]}
    for layer, name in (("files", "files a graded file reaches"), ("network", "network of a graded file")):
        assert (rows[name]["state"] == "ok") == (layer in LAYERS)


def test_nothing_forbidden_is_readable_even_where_it_lies_inside_a_readable_folder(tmp_path, monkeypatch):
    course = tmp_path / "packages" / "course"
    for name in ("modules", "exercises", "solutions"):
        (course / name).mkdir(parents=True)
    (tmp_path / "packages" / "torch").mkdir()
    (course / "code.py").write_text("")
    monkeypatch.setattr(sandbox, "course_roots", lambda: (course,))
    monkeypatch.setattr(sandbox, "SYSTEM", (str(tmp_path / "packages"),))
    found = [Path(p) for p in sandbox.readable("interpreter") if p.startswith(str(tmp_path))]
    assert found == [course / "code.py", tmp_path / "packages" / "torch"]
    assert os.path.isdir(found[1])
