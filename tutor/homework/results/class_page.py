"""The class at a glance: one HTML page with plots, which needs nothing from elsewhere."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tutor.homework.assignment import Exercise
from tutor.homework.files import folder_name
from tutor.homework.marking import Result, percent_of_limit
from tutor.homework.results.feedback import STYLE
from tutor.homework.results.tables import attention, cause
from tutor.html_page import BLUE, GREEN, GREY, ORANGE, html_page, looks, svg

BINS = 10
MOST_CAUSES = 15
MOST_BARS = 40  # learners in the plot of times: with more, the slowest


def class_page(title: str, notes: Sequence[str], results: Sequence[Result], asked: Sequence[Exercise]) -> str:
    known = [result for result in results if result.points is not None]
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>{_counted(results, known)}</p>"]
    body += [f"<p>{html.escape(note)}</p>" for note in notes]
    waiting = [(result.learner, what) for result in results for what in attention(result)]
    if waiting:
        body += ["<h2>Needs your attention</h2>", "<ul>"]
        body += [f"<li>{html.escape(name)}: {html.escape(what)}</li>" for name, what in waiting] + ["</ul>"]
    if known:
        body += ["<h2>Scores</h2>", _scores(known)]
    if results and asked:
        body += ["<h2>Exercises</h2>", _exercises(results, asked)]
    causes = Counter(name for result in results for mark in result.counted.marks if (name := _mistake(mark)))
    if causes:
        body += ["<h2>Mistakes made most</h2>", _mistakes(causes)]
    body += ["<h2>Learners</h2>", _table(results)]
    body += ['<section class="times">', "<h2>Time by learner</h2>", *_times(results), "</section>"]
    return html_page(title, STYLE, "\n".join(body))


def _counted(results: Sequence[Result], known: Sequence[Result]) -> str:
    full = sum(result.all_passed for result in results)
    text = f"{len(results)} learners; {full} passed every exercise."
    if len(known) < len(results):
        text += f" {len(results) - len(known)} have no score yet."
    return text


def _mistake(mark: Any) -> str | None:
    if mark.passed or mark.points is None or mark.shown is None or mark.status == "not_started":
        return None
    name = cause(mark)
    return (mark.status if name in (None, "unknown") else str(name)).replace("_", " ")


def _scores(known: Sequence[Result]) -> str:
    import pygal

    counts = [0] * (BINS + 1)
    for result in known:
        share = (result.points or 0) / result.counted.most if result.counted.most else 0
        counts[min(BINS, int(BINS * share + 1e-9))] += 1
    chart = pygal.Bar(**looks([BLUE], 320), title="Learners by share of the points")
    chart.show_legend = False
    chart.x_labels = [f"{100 * n // BINS}–{100 * (n + 1) // BINS - 1} %" for n in range(BINS)] + ["100 %"]
    chart.x_label_rotation = 30
    chart.y_labels = _ticks(max(counts))
    chart.add("learners", [_count(count) for count in counts])
    return _drawn(chart, "scores")


def _exercises(results: Sequence[Result], asked: Sequence[Exercise]) -> str:
    import pygal

    rows: dict[str, Counter[str]] = {one.exercise: Counter() for one in asked}
    for result in results:
        for mark in result.counted.marks:
            kind = (
                "passed"
                if mark.passed
                else "not handed in"
                if mark.shown is None or mark.status == "not_started"
                else "fell short"
            )
            rows[mark.exercise][kind] += 1
    names = [one.exercise for one in reversed(asked)]
    chart = pygal.HorizontalStackedBar(
        **looks([GREEN, ORANGE, GREY], 160 + 34 * len(names)), title="Learners by exercise"
    )
    chart.x_labels = names
    for kind in ("passed", "fell short", "not handed in"):
        chart.add(kind, [_count(rows[name][kind]) for name in names])
    return _drawn(chart, "exercises")


def _mistakes(causes: Counter[str]) -> str:
    import pygal

    top = sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_CAUSES]
    chart = pygal.HorizontalBar(**looks([ORANGE], 120 + 34 * len(top)), title="Files by mistake")
    chart.show_legend = False
    chart.x_labels = [name for name, _ in reversed(top)]
    chart.y_labels = _ticks(top[0][1])
    chart.add("files", [count for _, count in reversed(top)])
    return _drawn(chart, "mistakes")


def _table(results: Sequence[Result]) -> str:
    rows = [
        "<table><tr><th>learner</th><th>score</th><th>of</th><th>handed in</th><th>exercises that fell short</th></tr>"
    ]
    for result in results:
        counted = result.counted
        score = "?" if counted.points is None else f"{counted.points:g}"
        link = f"learners/{quote(folder_name(result.learner))}/feedback.html"
        short = ", ".join(
            f"{mark.exercise} ({mark.status.replace('_', ' ')})" for mark in counted.marks if not mark.passed
        )
        late = " (late)" if counted.late_seconds else ""
        name = f'<a href="{html.escape(link)}">{html.escape(result.learner)}</a>'
        figures = f'<td class="number">{score}</td><td class="number">{counted.most:g}</td>'
        when = f"{counted.attempt.submitted.isoformat()}{late}"
        rows.append(f"<tr><td>{name}</td>{figures}<td>{when}</td><td>{html.escape(short)}</td></tr>")
    return "\n".join([*rows, "</table>"])


def _times(results: Sequence[Result]) -> list[str]:
    """Seconds that grading took; and, where kernels were timed, what share of the limit each reached."""
    import pygal

    spent = {result.learner: sum(mark.seconds for mark in result.counted.marks) for result in results}
    slowest = sorted(spent, key=lambda name: (-spent[name], name))[:MOST_BARS]
    chart = pygal.HorizontalBar(**looks([BLUE], 120 + 26 * len(slowest)), title="Seconds of grading")
    chart.show_legend = False
    chart.x_labels = list(reversed(slowest))
    chart.add("seconds", [round(spent[name], 1) for name in reversed(slowest)])
    found = [_drawn(chart, "seconds")]
    shares = [
        (mark.exercise, result.learner, share)
        for result in results
        for mark in result.counted.marks
        if mark.shown and (share := percent_of_limit(mark.shown)) is not None
    ]
    for slug in dict.fromkeys(slug for slug, _, _ in shares):
        rows = sorted(((share, name) for one, name, share in shares if one == slug), reverse=True)[:MOST_BARS]
        plot = pygal.HorizontalBar(
            **looks([BLUE], 120 + 26 * len(rows)), title=f"{slug}: percent of the limit", range=(0, 100)
        )
        plot.show_legend = False
        plot.x_labels = [name for _, name in reversed(rows)]
        plot.add("percent", [round(share, 1) for share, _ in reversed(rows)])
        found.append(_drawn(plot, f"limit-{slug}"))
    return found


def _count(number: int) -> Any:
    """Without a label where there is nothing to label."""
    return number if number else {"value": 0, "formatter": lambda _: ""}


def _ticks(most: int) -> list[int]:
    """Whole numbers, about ten of them."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, most) if most <= 10 * step)
    return list(range(0, most + step, step))


def _drawn(chart: Any, name: str) -> str:
    chart.uuid = name  # pygal draws a random one, and the page would differ from run to run
    return svg(chart)
