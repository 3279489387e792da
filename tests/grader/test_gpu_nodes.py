"""Which GPUs' device files a runner must not open, where its grader was given some of a machine's GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader import gpu_nodes, sandbox
from tests.grader.test_sandbox import in_a_child, needs


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Three GPUs as the driver tells of them, whose device files are numbered otherwise than their places on the bus."""
    driver, dev = tmp_path / "driver", tmp_path / "dev"
    dev.mkdir()
    for bus, minor, uuid in (
        ("0000:07:00.0", 2, "GPU-aa11"),
        ("0000:1f:00.0", 0, "GPU-bb22"),
        ("0000:9d:00.0", 1, "GPU-bb33"),
    ):
        place = driver / bus
        place.mkdir(parents=True)
        lines = f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nBus Location: \t {bus}\nDevice Minor: \t {minor}\n"
        (place / "information").write_text(lines)
        (dev / f"nvidia{minor}").touch()
    monkeypatch.setattr(gpu_nodes, "DRIVER", driver)
    monkeypatch.setattr(gpu_nodes, "DEV", dev)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "hidden"),
    [
        ("0", {"nvidia0", "nvidia1"}),
        ("2", {"nvidia2", "nvidia0"}),
        ("GPU-aa11", {"nvidia0", "nvidia1"}),
        ("GPU-BB3", {"nvidia2", "nvidia0"}),
        # several, none, or not understood: nothing is hidden that may be needed
        ("1,2", set()),
        ("", set()),
        ("GPU-bb", set()),
        ("3", set()),
        ("-1", set()),
        ("MIG-0123", set()),
        (None, set()),
    ],
)
def test_the_gpus_that_were_not_given_are_left_out(three, monkeypatch, given, hidden):
    if given is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert gpu_nodes.left_out() == hidden
    gpu_nodes.renumber(gpu_nodes.left_out())
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == ("0" if hidden else given)


def test_numbers_are_not_believed_where_cuda_may_count_the_fastest_first(three, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    other = three / "driver" / "0000:1f:00.0" / "information"
    other.write_text(other.read_text().replace("H200", "A2"))
    assert gpu_nodes.left_out() == frozenset()
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert gpu_nodes.left_out() == {"nvidia0", "nvidia1"}


def test_in_a_container_only_what_has_a_device_file_is_counted(three, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (three / "dev" / "nvidia2").unlink()  # the first on the bus was not given to the container
    assert gpu_nodes.left_out() == {"nvidia1"}
    (three / "dev" / "nvidia1").unlink()
    assert gpu_nodes.left_out() == frozenset()


def test_without_a_driver_nothing_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_nodes, "DRIVER", tmp_path / "none")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert gpu_nodes.left_out() == frozenset()


@needs("files")
def test_a_runner_opens_no_device_of_another_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_nodes, "left_out", lambda: frozenset({"zero"}))  # in place of nvidia1
    kept = tmp_path / "scratch"
    kept.mkdir()

    def tried() -> dict[str, bool]:
        sandbox.enter("cuda", [str(kept)], 4096)
        return {"other": _opens("/dev/zero"), "own": _opens("/dev/full"), "random": _opens("/dev/urandom")}

    assert in_a_child(tried) == {"other": False, "own": True, "random": True}


def _opens(path: str) -> bool:
    try:
        Path(path).open("rb").close()
    except PermissionError:
        return False
    return True
