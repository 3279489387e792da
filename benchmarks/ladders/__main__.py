"""Time every rung of the ladders beside PyTorch's calls and the measured limits: JSON, and tables in Markdown.

    python -m benchmarks.ladders [--out DIR] [--only softmax|rms_norm|matmul|attention]… [--budget SECONDS]
                                 [--device cuda|cpu]

A size that is in the record already, of the same rungs on the same device and versions, is not measured again.
`--device cpu` is a dry run in the interpreter: tiny sizes, values compared, no times, no rungs in Gluon, no
`torch.compile`. Exits with 1 when a rung fails, 3 without a GPU.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ladders.report import write
from benchmarks.ladders.settings import FOLDERS, ROOT, SETTINGS, rungs

SILENCE = 45.0  # seconds without a word after which a candidate counts as hung; a first compile takes a few
START = 180.0  # seconds until the first word: torch may be read from a cold disk


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.ladders", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", action="append", choices=list(FOLDERS))
    parser.add_argument("--budget", type=float, default=210.0, help="seconds; a size that is begun is finished")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args(arguments)
    until = time.monotonic() + options.budget
    told = next(events(start({"device": options.device, "settings": []})))
    if told["event"] != "ready":
        print(f"no CUDA device here ({told['why']}); --device cpu makes a dry run without times", file=sys.stderr)
        return 3
    options.out.mkdir(parents=True, exist_ok=True)
    run = Run(options.device, options.out, until, told)
    for ladder in options.only or FOLDERS:
        run.climb(ladder)
    print(f"wrote {run.stem}.json and .md")
    return 0 if run.complete(options.only or list(FOLDERS)) else 1


class Run:
    """The record, which takes up that of an earlier run on this device with these versions, and what fills it."""

    def __init__(self, device: str, out: Path, until: float, ready: dict[str, Any]) -> None:
        self.device, self.until = device, until
        name = ready["device"].lower().replace(" ", "-") if device == "cuda" else "dry-run"
        self.stem = out / f"ladders-{name}"
        head = {"device": ready["device"], "versions": ready["versions"]}
        path = self.stem.with_suffix(".json")
        earlier = json.loads(path.read_text()) if path.exists() else {}
        same = all(earlier.get(key) == value for key, value in head.items())
        self.record = earlier if same else {**head, "date": str(datetime.date.today()), "settings": {}}
        self.failed: dict[str, dict[str, str]] = {}  # setting to candidate to reason
        self.given_up: set[str] = set()

    def wanted(self, ladder: str) -> list[str]:
        """The settings that are missing, or were measured of other rungs."""
        had, digest = self.record["settings"], fingerprint(ladder)
        missing = [s.name for s in SETTINGS if s.ladder == ladder and had.get(s.name, {}).get("rungs") != digest]
        return [name for name in missing if name not in self.given_up]

    def climb(self, ladder: str) -> None:
        """Time a ladder, with a fresh process after each candidate that ends one."""
        while (names := self.wanted(ladder)) and time.monotonic() < self.until:
            excluded = {name: list(candidates) for name, candidates in self.failed.items()}
            process = start({"device": self.device, "settings": names, "excluded": excluded})
            trying: dict[str, Any] = {}
            for event in events(process):
                if event["event"] == "ended":
                    self.blame(trying, names, event["why"])
                elif event["event"] == "trying":
                    trying = event
                elif event["event"] == "failed":
                    self.fail(event["setting"], event["candidate"], event["why"])
                elif event["event"] == "timed":
                    self.keep(ladder, event)
                    if time.monotonic() > self.until:
                        break
            stop(process)

    def keep(self, ladder: str, event: dict[str, Any]) -> None:
        name = event["setting"]
        result = {key: event[key] for key in ("rows", "bytes", "flops", "limits")}
        setting = next(each for each in SETTINGS if each.name == name)
        if skipped := setting.skipped(self.device):
            result["skipped"] = skipped
        self.record["settings"][name] = {**result, "failed": self.failed.get(name, {}), "rungs": fingerprint(ladder)}
        write(self.record, self.stem)
        print(f"{name}: {len(result['rows'])} candidates", flush=True)
        for candidate, why in skipped.items():
            print(f"{name}: {candidate}: {why}", flush=True)

    def fail(self, setting: str, candidate: str, why: str) -> None:
        """Leave the candidate out at this size from now on."""
        if candidate not in self.failed.setdefault(setting, {}):
            self.failed[setting][candidate] = why
            print(f"{setting}: {candidate}: {why}", flush=True)

    def blame(self, trying: dict[str, Any], names: list[str], why: str) -> None:
        """Exclude the candidate that was being tried when its process ended; where there is none, the setting."""
        if trying.get("candidate") is not None:
            self.fail(trying["setting"], trying["candidate"], why)
            for name in set(names) - {trying["setting"]}:  # each try may cost a process and its silence
                self.fail(name, trying["candidate"], f"not tried: at {trying['setting']}, {why}")
            return
        lost = [trying["setting"]] if trying else names
        self.given_up |= set(lost)
        print(f"{', '.join(lost)}: given up: {why}", file=sys.stderr, flush=True)

    def complete(self, ladders: list[str]) -> bool:
        """Whether every setting is there, and every rung of it that can run here ran and was right."""
        for setting in (s for s in SETTINGS if s.ladder in ladders):
            result = self.record["settings"].get(setting.name)
            rows = result["rows"] if result else {}
            if any(rung.label not in rows or rows[rung.label]["wrong"] for rung in setting.rungs(self.device)):
                return False
        return True


def fingerprint(ladder: str) -> str:
    """Of the rungs' code alone: a comment may be mended without measuring again."""
    code = "\n".join(without_docstrings(rung.path.read_text(encoding="utf-8")) for rung in rungs(ladder))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def without_docstrings(source: str) -> str:
    """The code, without comments either, as Python writes it."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def start(job: dict[str, Any]) -> subprocess.Popen[str]:
    environment = {**os.environ, **({"TRITON_INTERPRET": "1"} if job["device"] == "cpu" else {})}
    # torch.compile would start processes that hold this one's stdout open when it is stopped
    environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.ladders.timed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.close()
    return process


def events(process: subprocess.Popen[str], silence: float = SILENCE) -> Iterator[dict[str, Any]]:
    """What the process says, as it comes. Last, where it hangs or fails: `ended` with the reason."""
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    patience = max(silence, START)
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            yield {"event": "ended", "why": f"no word for {patience:.0f} s: stopped"}
            return
        patience = silence
        if not line:
            code = process.wait()
            if code != 0:
                yield {"event": "ended", "why": f"its process ended with {code}"}
            return
        if line.startswith("{"):  # a rung may print
            yield json.loads(line)


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
