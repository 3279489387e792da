"""One learner's feedback to read: Markdown and a page of HTML, the same words in both."""

from __future__ import annotations

import html
import re

from tutor.homework.marking import MISSING
from tutor.homework.results.told import Told
from tutor.html_page import html_page

STYLE = """\
body { max-width: 60rem; } td, th { padding: .25rem .75rem; }
.number { text-align: right; } .good { color: #00694d; } .bad { color: #a33a00; } .dim { color: #666; }
.head { font-weight: 600; margin-top: .6rem; }
.line { white-space: pre-wrap; } .code { font-family: ui-monospace, monospace; }
.bar { background: #999; height: 1rem; display: inline-block; vertical-align: middle; } .mine { background: #0072b2; }
"""
BAR = 40  # characters of the longest


def markdown(heading: list[str], told: list[Told]) -> str:
    out = [f"# {_plain(heading[0])}", "", *[f"- {_plain(line)}" for line in heading[1:]], ""]
    out += ["| exercise | points | of | result |", "|---|---:|---:|---|"]
    out += [f"| {one.exercise} | {_points(one)} | {one.most:g} | {one.words} |" for one in told]
    for one in _handed_in(told):
        out += ["", f"## {one.exercise}: {one.words}", ""]
        # in a fence that nothing in it can close: a message may hold what the learner's file says
        text = "\n".join(line.text for line in one.lines)
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        out += [fence + "text", text, fence]
    if any(one.times for one in told):
        out += ["", "## Times", "", "```text"]
        for one in told:
            longest = max((time for _, time in one.times), default=0.0)
            out += [one.exercise] if one.times else []
            out += [
                f"  {name:18} {time:10.1f} µs  {'█' * max(1, round(BAR * time / longest))}" for name, time in one.times
            ]
        out.append("```")
    return "\n".join(out) + "\n"


def page(heading: list[str], told: list[Told]) -> str:
    out = [f"<h1>{html.escape(heading[0])}</h1>", "<ul>"]
    out += [f"<li>{html.escape(line)}</li>" for line in heading[1:]]
    out += ["</ul>", "<table><tr><th>exercise</th><th>points</th><th>of</th><th>result</th></tr>"]
    for one in told:
        tone = "good" if one.status == "passed" else "bad"
        cells = f'<td>{html.escape(one.exercise)}</td><td class="number">{_points(one)}</td>'
        cells += f'<td class="number">{one.most:g}</td>'
        out.append(f'<tr>{cells}<td class="{tone}">{html.escape(one.words)}</td></tr>')
    out.append("</table>")
    for one in _handed_in(told):
        out.append(f"<h2>{html.escape(one.exercise)}: {html.escape(one.words)}</h2>")
        out += [f'<div class="line {line.tone}">{html.escape(line.text) or "&nbsp;"}</div>' for line in one.lines]
    if any(one.times for one in told):
        out.append('<section class="times"><h2>Times</h2>')
        for one in told:
            out += _bars(one)
        out.append("</section>")
    return html_page(heading[0], STYLE, "\n".join(out))


def _handed_in(told: list[Told]) -> list[Told]:
    """Of the others the table says all there is."""
    return [one for one in told if one.status != MISSING]


def _bars(one: Told) -> list[str]:
    if not one.times:
        return []
    longest = max(time for _, time in one.times)
    rows = []
    for number, (name, time) in enumerate(one.times):
        kind = "bar" if number else "bar mine"
        bar = f'<span class="{kind}" style="width:{30 * time / longest:.1f}rem"></span>'
        rows.append(f'<tr><td>{html.escape(name)}</td><td class="number">{time:.1f} µs</td><td>{bar}</td></tr>')
    return [f"<h3>{html.escape(one.exercise)}</h3><table>", *rows, "</table>"]


def _points(one: Told) -> str:
    return "?" if one.points is None else f"{one.points:g}"


def _plain(text: str) -> str:
    """Markdown's own signs, in names that learners chose, stand for themselves."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", " ".join(text.split()))
