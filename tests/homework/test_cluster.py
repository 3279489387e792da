"""`--cluster`: a real Ray cluster of several nodes on this machine, with the stand-in grader on its nodes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAKE_GRADER, MODULE, PROBLEM, REPOSITORY, STUB
from tests.homework.conftest import fill
from tests.homework.test_command import journaled, requests, rows, tree
from tutor.homework.cluster import Slots, slots

ray_installed = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (the extra `cluster`)")
pytestmark = pytest.mark.xdist_group("ray")  # one worker: the cluster is started once
LIMIT = 300  # seconds: a cluster of several nodes starts slowly on a busy machine
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}


def node(alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"Alive": alive, "Resources": resources}


@pytest.mark.parametrize(
    ("nodes", "workers", "with_gpus", "expected"),
    [
        ([node(CPU=8), node(CPU=4), node(alive=False, CPU=64)], None, True, Slots(6, 0)),
        ([node(CPU=8), node(CPU=4)], 12, True, Slots(12, 0)),
        ([node(CPU=8), node(CPU=4)], 99, True, Slots(12, 0)),
        ([node(CPU=64), node(CPU=32, GPU=8.0), node(CPU=32, GPU=4.0)], None, True, Slots(12, 1)),
        ([node(CPU=64), node(CPU=32, GPU=8.0)], 3, True, Slots(3, 1)),
        ([node(CPU=2), node(CPU=2, GPU=8.0)], None, False, Slots(2, 0)),
        ([node(memory=1.0)], None, True, Slots(0, 0)),
    ],
)
def test_gpus_are_used_where_there_are_any_else_half_of_the_processors(
    nodes: list[dict[str, Any]], workers: int | None, with_gpus: bool, expected: Slots
) -> None:
    assert slots(nodes, workers, with_gpus=with_gpus) == expected


class Nodes:
    """The cluster, and the command run against it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        from ray.cluster_utils import Cluster

        self.folder, self.environment = folder, environment
        self.log = Path(environment["FAKE_GRADER_LOG"])
        # processors nowhere but on the nodes that may be lost
        self.cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})

    def add(self) -> Any:
        return self.cluster.add_node(**NODE)

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        full = [sys.executable, "-m", "tutor", "homework", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(full, env={**self.environment, **more}, cwd=self.folder, text=True, **pipes)  # type: ignore[call-overload]

    def homework(self, folder: Path, out: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        given = (str(folder), "--out", str(out), "--workers", "2", *arguments)
        with self.start(*given, **more) as process:
            try:
                said = process.communicate(timeout=LIMIT)
            finally:
                process.kill()
        return subprocess.CompletedProcess(given, process.returncode, *said)

    def on_cluster(self, folder: Path, out: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.homework(folder, out, "--cluster", self.cluster.address, *arguments, **more)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes of one processor each."""
    root = tmp_path_factory.mktemp("cluster")
    course = root / "course"
    fill(course, {"modules/01-tiny.yaml": MODULE})
    for slug in ("vector_add", "row_sum"):
        name = f"exercises/01-tiny/{slug}"
        fill(course, {f"{name}/stub.py": STUB.format(slug=slug), f"{name}/problem.py": PROBLEM.format(slug=slug)})
    set_to = {
        "PYTHONPATH": str(REPOSITORY), "TRITON_PREP_COURSE": str(course), "TRITON_PREP_CACHE": str(root / "cache"),
        "TRITON_PREP_GRADER": FAKE_GRADER, "FAKE_GRADER_LOG": str(root / "grader.log"),
        "RAY_TMPDIR": tempfile.mkdtemp(prefix="tp-", dir="/tmp"),  # a short path: sockets lie there
        "RAY_memory_monitor_refresh_ms": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_initial_delay_ms": "0",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in set_to.items():
            patch.setenv(name, value)
        made = Nodes(root, {**os.environ})
        made.add()
        made.add()
        yield made
        made.cluster.shutdown()
        shutil.rmtree(set_to["RAY_TMPDIR"], ignore_errors=True)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


@ray_installed
def test_a_cluster_gives_the_same_files_as_one_machine_and_each_knows_the_others_grades(
    nodes: Nodes, tmp_path: Path
) -> None:
    statuses = ("passed", "timeout", "wrong_answer", "import_error", "not_triton")
    files = {
        f"learner{n}/vector_add.py": f"# {n}\n# fake: {statuses[n % 5]}\n# cause: missing_mask\n" for n in range(9)
    }
    files |= {"twice/row_sum.py": "# die once\n", "gone/row_sum.py": "# die\n"}
    folder = fill(tmp_path / "class", files)
    here, there = tmp_path / "here", tmp_path / "there"
    for path in folder.rglob("*.py"):  # "once" leaves its mark beside the file, which on a node is a new one each time
        path.write_text(path.read_text().replace("# die once", "# fine"))
    local = nodes.homework(folder, here)
    nodes.log.unlink()
    remote = nodes.on_cluster(folder, there)
    assert (local.returncode, remote.returncode) == (3, 3), remote.stderr
    assert tree(here) == tree(there)
    assert len({line.split(" ")[0] for line in nodes.log.read_text().splitlines()}) >= 2  # graders
    assert not any(Path(one["file"]).exists() for one in requests(nodes.log))  # nothing is left on the nodes
    again = nodes.on_cluster(folder, here)  # of a run on this machine, all but what could not be graded is known
    assert "10 of 11 grades are known from before" in again.stderr
    assert len(journaled(here)) == 10


@ray_installed
def test_the_work_of_a_node_that_dies_is_done_by_another(nodes: Nodes, tmp_path: Path) -> None:
    pause = tmp_path / "pause"
    pause.touch()
    names = [f"l{n}" for n in range(8)]
    folder = fill(tmp_path / "class", {f"{name}/vector_add.py": f"# {name}\n# while: {pause}\n" for name in names})
    out = tmp_path / "out"
    nodes.log.unlink(missing_ok=True)
    given = (str(folder), "--out", str(out), "--workers", "2", "--json", "--cluster", nodes.cluster.address)
    process = nodes.start(*given)
    try:
        wait_for(lambda: len(requests(nodes.log)) == 2, process)  # one on each node, and neither comes to its end
        victim = next(iter(nodes.cluster.worker_nodes))
        nodes.cluster.remove_node(victim, allow_graceful=False)
        pause.unlink()
        printed, said = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        nodes.add()
    assert process.returncode == 0, said
    assert len(json.loads(printed)["learners"]) == 8  # nothing that Ray says of the lost node is among it
    assert said.splitlines()[0] == "The node that graded vector_add, or its worker, was lost."
    assert "raylet" not in said
    assert {row["score"] for row in rows(out).values()} == {"1.0"}
    assert len(journaled(out)) == len(set(journaled(out))) == 8
    assert len(requests(nodes.log)) == 9  # of eight, one was begun twice


@ray_installed
def test_work_that_costs_two_nodes_their_worker_is_no_score_and_stops_nobody(nodes: Nodes, tmp_path: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# kill parent\n", "ben/vector_add.py": "# fine\n"})
    out = tmp_path / "out"
    done = nodes.on_cluster(folder, out)
    assert done.returncode == 3, done.stderr
    assert "a node of the cluster was lost" in done.stderr
    found = {name: (row["score"], row["vector_add status"]) for name, row in rows(out).items()}
    assert found == {"ana": ("", "infrastructure_error"), "ben": ("1.0", "passed")}


@ray_installed
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_goes_on_where_it_was(nodes: Nodes, tmp_path: Path, number: signal.Signals) -> None:
    pause = tmp_path / "pause"
    pause.touch()
    files = {f"l{n}/vector_add.py": f"# {n}\n" for n in range(4)} | {"m/vector_add.py": f"# while: {pause}\n"}
    folder, out = fill(tmp_path / "class", files), tmp_path / "out"
    process = nodes.start(str(folder), "--out", str(out), "--workers", "2", "--cluster", nodes.cluster.address)
    try:
        wait_for(lambda: len(journaled(out)) == 4, process)
        process.send_signal(number)
        process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    known = journaled(out)
    pause.unlink()
    done = nodes.on_cluster(folder, out)
    assert done.returncode == 0, done.stderr
    assert "4 of 5 grades are known from before" in done.stderr
    assert journaled(out)[:4] == known
    assert len(set(journaled(out))) == len(journaled(out)) == 5


@ray_installed
def test_each_grader_has_a_gpu_of_its_own_where_there_are_gpus(nodes: Nodes, tmp_path: Path) -> None:
    """Ray believes a node that says it has GPUs."""
    pause = tmp_path / "pause"
    pause.touch()
    folder = fill(tmp_path / "class", {f"l{n}/vector_add.py": f"# {n}\n# while: {pause}\n" for n in range(3)})
    nodes.log.unlink(missing_ok=True)
    with_gpus = nodes.cluster.add_node(**{**NODE, "num_cpus": 4, "num_gpus": 2})
    try:
        process = nodes.start(str(folder), "--out", str(tmp_path / "out"), "--cluster", nodes.cluster.address)
        try:
            wait_for(lambda: len(requests(nodes.log)) == 2, process)  # of three: as many as there are GPUs
            pids = {line.split(" ")[0] for line in nodes.log.read_text().splitlines()}
            found = [Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in pids]
            given = [entry for environ in found for entry in environ if entry.startswith(b"CUDA_VISIBLE_DEVICES=")]
            assert sorted(given) == [b"CUDA_VISIBLE_DEVICES=0", b"CUDA_VISIBLE_DEVICES=1"]
            pause.unlink()
            _, said = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        assert process.returncode == 0, said
    finally:
        nodes.cluster.remove_node(with_gpus)  # in order: the cluster knows at once that it is gone


@ray_installed
def test_files_where_the_user_stands_are_not_imported_on_the_nodes(nodes: Nodes, tmp_path: Path) -> None:
    folder = fill(
        tmp_path / "class", {"ana/vector_add.py": "# fine\n", "tutor.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n"}
    )
    full = [sys.executable, "-P", "-m", "tutor", "homework", ".", "--out", str(tmp_path / "out"), "--cluster"]
    environment = {**nodes.environment}
    done = subprocess.run(
        [*full, nodes.cluster.address],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 1, done.stderr  # tutor.py is no exercise
    assert rows(tmp_path / "out")["ana"]["score"] == "1.0"
    assert not (tmp_path / "ran").exists()


@ray_installed
def test_what_is_wrong_with_the_nodes_is_said(nodes: Nodes, tmp_path: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# fine\n"})
    other = fill(tmp_path / "other", {"modules/01-tiny.yaml": MODULE})
    name = "exercises/01-tiny/vector_add"
    fill(
        other,
        {f"{name}/stub.py": STUB.format(slug="x"), f"{name}/problem.py": PROBLEM.format(slug="x") + "# changed\n"},
    )
    done = nodes.on_cluster(folder, tmp_path / "out", TRITON_PREP_COURSE=str(other))
    assert done.returncode == 3
    assert "the course is another version than here: install the same" in done.stderr
    nowhere = nodes.homework(folder, tmp_path / "out", "--cluster", "127.0.0.1:9")
    assert nowhere.returncode == 3
    assert "--cluster 127.0.0.1:9: " in nowhere.stderr
    assert "Traceback" not in nowhere.stderr + done.stderr


def test_without_ray_the_command_says_what_to_install(command: Any, class_folder: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    fill(hidden, {"ray/__init__.py": "raise ImportError('hidden')\n"})
    done = command("homework", str(class_folder), "--cluster", "auto", PYTHONPATH=f"{hidden}:{REPOSITORY}")
    assert done.returncode == 3
    assert "pip install 'triton-prep[cluster]'" in done.stderr
    assert json.dumps(done.stdout) == '""'
