"""JUnit XML, as continuous-integration servers read it: a testsuite a learner, a testcase a case."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from tutor.homework.results.told import Told, ToldCase

# what XML 1.0 cannot hold at all
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(learner: str, told: list[Told]) -> str:
    suite = ET.Element("testsuite", name=_clean(learner))
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    total = 0.0
    for one in told:
        for case in one.cases or (_whole(one),):
            counts["tests"] += 1
            total += case.seconds or 0.0
            row = ET.SubElement(suite, "testcase", classname=one.exercise, name=_clean(case.name))
            row.set("time", f"{case.seconds or 0:.3f}")
            if case.status == "skipped":
                counts["skipped"] += 1
                ET.SubElement(row, "skipped", message=_clean(case.message))
            elif case.status != "passed":
                error = one.points is None
                counts["errors" if error else "failures"] += 1
                failure = ET.SubElement(row, "error" if error else "failure", message=_clean(case.message[:500]))
                failure.set("type", case.kind)
                failure.text = (
                    _clean("\n".join(line.text for line in one.lines)) if case.name != "hidden cases" else None
                )
        if one.remark:
            ET.SubElement(row, "system-out").text = _clean("\n".join(line.text for line in one.remark))
        if one.cases and one.status != "passed" and all(case.status != "failed" for case in one.cases):
            counts["tests"] += 1  # every case held, and yet it is not passed: not_triton, say
            counts["failures"] += 1
            row = ET.SubElement(suite, "testcase", classname=one.exercise, name="the whole", time="0.000")
            failure = ET.SubElement(row, "failure", message=_clean(one.words), type=one.status)
            failure.text = _clean("\n".join(line.text for line in one.lines))
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{total:.3f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _whole(one: Told) -> ToldCase:
    """An exercise without cases: nothing was handed in, or it could not be imported."""
    return ToldCase("the whole", "passed" if one.status == "passed" else "failed", one.status, one.words)


def _clean(text: str) -> str:
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
