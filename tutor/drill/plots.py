"""The scorecard's plots."""

from __future__ import annotations

from tutor.drill.clock import time_taken
from tutor.drill.scorecard import Scorecard
from tutor.html_page import BLUE, GREY, ORANGE, looks, svg

SHOWN_MOCKS = 11  # before this one: more labels would lie over each other


def skills_plot(card: Scorecard) -> str:
    """Bars from 1 to 5, beside the floors of the plan."""
    import pygal

    shown = [skill for skill in card.skills if skill.score is not None]
    chart = pygal.HorizontalBar(
        **looks([BLUE, ORANGE], 120 + 60 * len(shown)), range=(0, 5), y_labels=range(6), title="Skills, 1 to 5"
    )
    chart.x_labels = [skill.words.replace(" (self-scored)", "*") for skill in reversed(shown)]
    chart.add("score", [skill.score for skill in reversed(shown)])
    if any(skill.floor for skill in shown):
        chart.add("floor of this plan", [skill.floor for skill in reversed(shown)])
    return svg(chart)


def time_plot(card: Scorecard) -> str:
    """Minutes used and planned, by phase."""
    import pygal

    chart = pygal.Bar(**looks([BLUE, GREY], 320), title="Time by phase, minutes")
    chart.value_formatter = lambda minutes: time_taken(60 * minutes)
    chart.x_labels = [phase.name for phase in card.phases]
    chart.add("used", [phase.seconds / 60 for phase in card.phases])
    chart.add("planned", [phase.planned_seconds / 60 for phase in card.phases])
    return svg(chart)


def history_plot(card: Scorecard) -> str:
    """The overall score of the last dozen mocks, this one last."""
    import pygal

    chart = pygal.Line(
        **looks([BLUE], 320, bars=False),
        range=(0, 5),
        y_labels=range(6),
        title="Overall, earlier mocks and this one",
        dots_size=5,
    )
    chart.show_legend = False
    runs = [(entry.started, entry.plan, entry.overall) for entry in card.earlier[-SHOWN_MOCKS:]]
    runs.append((card.started, card.plan, card.overall))
    chart.x_labels = [f"{started[5:10]} {plan}" for started, plan, _ in runs]
    chart.x_label_rotation = 25
    chart.add("overall", [overall for _, _, overall in runs])
    return svg(chart)
