"""Launchers in C: Triton 3.5 and 3.6 have the C compiler build one for every signature of a kernel, 0.3 s each time.

They are kept in the user's cache folder, so that a signature costs that once and not in every grade. Runners only read
there: what is missing they build for themselves and note in their scratch folder, and a process that has never seen
their code builds it again, from the signature alone. Later versions of Triton launch without a compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import queue
import re
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import Any

NAME = "__triton_launcher"  # of the module that Triton builds
NOTES = "launchers.jsonl"  # in a runner's scratch folder: a signature a line
TYPE = re.compile(r"\*?[a-z][a-z0-9]{1,11}")  # "*fp32", "i32", "constexpr"
MOST_TYPES, MOST_NOTED, MOST_KEPT = 64, 32, 512
LONGEST_NOTES = 1 << 16  # bytes
Signature = tuple[Any, ...]  # type names, and tuples of them where an argument is a tuple


def folder() -> Path:
    """Where the launchers of this Triton and this Python are kept."""
    versions = f"triton-{importlib.metadata.version('triton')}-{sysconfig.get_config_var('SOABI')}"
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")  # Triton runs on Linux alone
    return caches / "triton-prep" / "launchers" / versions


def use_kept(driver: Any = None) -> Path | None:
    """In the warm process: launchers come from `folder()` where they are kept. None: this Triton builds none.

    `driver` has Triton's names `make_launcher` and `compile_module_from_src`.
    """
    if driver is None:
        driver = importlib.import_module("triton.backends.nvidia.driver")
    if not hasattr(driver, "make_launcher"):
        return None
    kept = folder()
    kept.mkdir(parents=True, exist_ok=True)
    make, build = driver.make_launcher, driver.compile_module_from_src
    made: dict[str, Signature] = {}

    def make_launcher(constants: Any, signature: dict[Any, Any], tensordesc_meta: Any = None) -> str:
        source: str = make(constants, signature, tensordesc_meta)
        if not tensordesc_meta:
            made[source] = tuple(signature.values())
        return source

    def compile_module_from_src(src: str, name: str, **places: Any) -> Any:
        if name != NAME:
            return build(src=src, name=name, **places)
        path = kept / file_name(src)
        if path.exists():
            return _loaded(path)
        if src in made:
            with contextlib.suppress(OSError), open(NOTES, "a") as notes:  # the working folder is the scratch folder
                notes.write(json.dumps(made[src]) + "\n")
        return build(src=src, name=name, **places)

    driver.make_launcher, driver.compile_module_from_src = make_launcher, compile_module_from_src
    return kept


def file_name(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest() + ".so"


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def noted(scratch: Path) -> list[Signature]:
    """What a runner noted, as far as it makes sense: the runner is not trusted."""
    try:
        descriptor = os.open(scratch / NOTES, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
        lines = os.read(descriptor, LONGEST_NOTES).splitlines()[:MOST_NOTED] if plain else []
    finally:
        os.close(descriptor)
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            found.append(_signature(json.loads(line)))
    return found


def _signature(value: Any, depth: int = 0) -> Signature:
    """Raises ValueError."""
    if not isinstance(value, list) or len(value) > MOST_TYPES or depth > 3:
        raise ValueError("no signature")
    return tuple(_signature(v, depth + 1) if isinstance(v, list) else _type(v) for v in value)


def _type(value: Any) -> str:
    if not isinstance(value, str) or not TYPE.fullmatch(value):
        raise ValueError(f"no type: {value!r}")
    return value


class Keeper:
    """Builds what runners noted, one process at a time and behind the grades."""

    def __init__(self) -> None:
        self._wanted: queue.Queue[list[Signature]] = queue.Queue()
        self._seen: set[Signature] = set()
        self._thread: threading.Thread | None = None

    def want(self, signatures: list[Signature]) -> None:
        new = [s for s in dict.fromkeys(signatures) if s not in self._seen]
        if not new:
            return
        self._seen.update(new)
        self._wanted.put(new)
        if self._thread is None:
            self._thread = threading.Thread(target=self._build, daemon=True)
            self._thread.start()

    def _build(self) -> None:
        while True:
            signatures = self._wanted.get()
            with contextlib.suppress(OSError, subprocess.SubprocessError):  # not kept: slower, not wrong
                subprocess.run(
                    [sys.executable, "-m", "grader.triton_c_launchers"],
                    input=json.dumps(signatures).encode(),
                    cwd=Path(__file__).resolve().parents[1],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=120,
                    check=False,
                )


KEEPER = Keeper()


def keep(signatures: list[Signature], kept: Path, driver: Any) -> None:
    """Build the launchers of these signatures that are missing, with Triton's own functions."""
    for signature in signatures:
        source = driver.make_launcher({}, dict(enumerate(signature)), None)
        path = kept / file_name(source)
        if path.exists() or len(list(kept.glob("*.so"))) >= MOST_KEPT:
            continue
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TRITON_CACHE_DIR"] = cache
            driver.compile_module_from_src(
                src=source,
                name=NAME,
                library_dirs=driver.library_dirs(),
                include_dirs=driver.include_dirs,
                libraries=driver.libraries,
            )
            built = next(Path(cache).rglob(f"{NAME}*"))
            part = kept / f".{path.name}.{os.getpid()}"
            part.write_bytes(built.read_bytes())
            part.replace(path)


def main() -> None:
    driver = importlib.import_module("triton.backends.nvidia.driver")
    os.nice(10)
    signatures = [_signature(value) for value in json.load(sys.stdin)]
    kept = folder()
    kept.mkdir(parents=True, exist_ok=True)
    keep(signatures, kept, driver)


if __name__ == "__main__":
    main()
