"""The runner's answers about the map of its last call: a summary, then the map in parts that fit into a message."""

from __future__ import annotations

import json
from typing import Any

from grader.access_map.recorder import MapRecorder

PART = 400_000  # characters; a message holds 1 MiB
MOST_PARTS = 40


def part(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    """`part` None: what the map would show. Else that part of its JSON text, and how many there are."""
    recorder = getattr(runner.watch, "map", None)
    if recorder is None:
        return {"event": "map", "text": "", "parts": 0}
    if message.get("part") is None:
        return {"event": "map", **_summary(recorder)}
    if not runner.map_text:
        from grader.access_map.facts import recorded

        found = recorded(recorder, runner.spec["parameters"], runner.arguments, runner.returned)
        runner.map_text = json.dumps(found, separators=(",", ":"))
    text, number = runner.map_text, int(message["part"])
    return {"event": "map", "text": text[number * PART : (number + 1) * PART], "parts": -(-len(text) // PART)}


def _summary(recorder: MapRecorder) -> dict[str, Any]:
    programs, plane = 1, False
    for _, grid in recorder.launches:
        count = 1
        for n in grid:
            count *= n
        programs = max(programs, count)
        plane |= sum(n > 1 for n in grid) > 1
    masked = any(not lanes.active.all() for visits in recorder.places.values() for lanes in visits)
    return {
        "programs": programs,
        "plane": plane,
        "masked": masked,
        "bad": recorder.bad is not None,
        "visits": recorder.visits,
    }
