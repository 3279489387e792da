"""The scorecard's three files: Markdown to read, JSON for programs, one HTML page that needs nothing else."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tutor.course.course import Course
from tutor.drill.clock import time_taken
from tutor.drill.scorecard import Earlier, Scorecard, scorecard
from tutor.drill.sitting import Sitting
from tutor.html_page import html_page, left_out_words
from tutor.whole_files import write_atomically

SIGNS = {"right": "✓", "partly": "◐", "wrong": "✗", "not answered": "–", "not graded": "?", "not scored": "?"}
KINDS = {"open": "answer", "talk": "talk", "optimise": "optimise", "exercise": "kernel"}


@dataclass(frozen=True)
class Report:
    card: Scorecard
    course: Course
    folder: Path
    files: tuple[Path, ...]
    left_out: str = ""  # which file was not written, and why


def write_report(sitting: Sitting) -> Report:
    """Scores the drill, writes the files and closes its books. Raises OSError when they cannot be written."""
    folder = sitting.folder
    card = scorecard(sitting, earlier_mocks(sitting.workspace, before=sitting.state.id))
    files, missing = [], ""

    def keep(name: str, text: str) -> None:
        write_atomically(folder / name, text.encode())
        files.append(folder / name)

    keep("scorecard.md", markdown(card))
    keep("scorecard.json", msgspec.json.format(msgspec.json.encode(card), indent=1).decode() + "\n")
    try:
        keep("scorecard.html", page(card))
    except ImportError as error:  # of the plots: the score does not hang on it
        missing = left_out_words("scorecard.html", error)
    if sitting.state.stage != "finished":
        sitting.close_books()
    return Report(card, sitting.course, folder, tuple(files), missing)


def earlier_mocks(workspace: Path, before: str = "") -> tuple[Earlier, ...]:
    """From the scorecards in the workspace, oldest first; what cannot be read is left out."""
    found = []
    for file in (workspace / "drills").glob("*/scorecard.json"):
        try:
            card = msgspec.json.decode(file.read_bytes(), type=Scorecard)
        except (OSError, msgspec.MsgspecError):
            continue
        if not before or card.id < before:
            skills = {skill.skill: skill.score for skill in card.skills if skill.score is not None}
            found.append(
                Earlier(
                    id=card.id,
                    plan=card.plan,
                    started=card.started,
                    overall=card.overall,
                    signal=card.signal,
                    skills=skills,
                )
            )
    return tuple(sorted(found, key=lambda entry: entry.id))


def facts(card: Scorecard) -> list[tuple[str, str]]:
    seed = f"{card.seed}" + ("" if card.shared_seed else " (drawn for you, by what you are weak in)")
    rows = [("Started", card.started.replace("T", " ")), ("Seed", seed), ("Course", card.course_version)]
    if card.module:
        rows.append(("Module", card.module))
    elif card.modules:
        rows.append(("Drawn from the modules begun", ", ".join(card.modules)))
    rows.append(("Strict", "yes" if card.strict else "no"))
    rows.append(("Time", f"{time_taken(card.seconds)} of {time_taken(card.planned_seconds)}"))
    return rows


def markdown(card: Scorecard, *, for_terminal: bool = False) -> str:
    """`for_terminal` leaves out the backslashes that keep a Markdown reader from taking brackets for links."""
    safe = _one_line if for_terminal else _code_safe
    overall = "–" if card.overall is None else f"{card.overall:.1f}"
    out = [f"# {card.title}: {card.signal}, {overall} of 5", ""]
    out += [f"- {name}: {value}" for name, value in facts(card)]
    out += ["", "## Why", "", *[f"- {reason}" for reason in (*card.reasons, *card.notes)]]
    out += ["", "## Skills", "", "| skill | score | weight | floor | tasks |", "|---|---|---|---|---|"]
    for skill in card.skills:
        score = "not shown" if skill.score is None else f"{skill.score:.1f}"
        floor = "–" if skill.floor is None else f"{skill.floor:.1f}"
        out.append(f"| {skill.words} | {score} | {skill.weight:g} | {floor} | {skill.tasks} |")
    out += [
        "",
        "## Phases",
        "",
        "| phase | used | planned | ended by | grading runs | scores |",
        "|---|---|---|---|---|---|",
    ]
    for phase in card.phases:
        scores = ", ".join(f"{name.replace('_', ' ')} {score:.1f}" for name, score in phase.skills.items())
        used, planned = time_taken(phase.seconds), time_taken(phase.planned_seconds)
        out.append(f"| {phase.name} | {used} | {planned} | {phase.how} | {phase.grading_runs} | {scores or '–'} |")
    out += ["", "## What was asked", ""]
    for task in card.tasks:
        flag = " (flagged)" if task.flagged else ""
        hints = f" ({task.hints} hints)" if task.hints else ""
        name = f"`{task.item}`" if task.item else task.kind
        out.append(
            f"- {SIGNS[task.result]} **{safe(task.title)}** {name}, {KINDS.get(task.kind, task.kind)}, "
            f"{task.result}, {time_taken(task.seconds)}{flag}{hints}"
        )
        if task.note:
            out.append(f"  {safe(task.note)}")
        if task.look_up and task.result != "right":
            out.append(f"  Look it up: `{task.look_up}`")
    if card.earlier:
        out += ["", "## Earlier mocks", "", "| started | plan | overall | signal |", "|---|---|---|---|"]
        for entry in card.earlier:
            score = "–" if entry.overall is None else f"{entry.overall:.1f}"
            out.append(f"| {entry.started.replace('T', ' ')} | {entry.plan} | {score} | {entry.signal} |")
        out += ["", trend(card)]
    return "\n".join(out) + "\n"


def trend(card: Scorecard) -> str:
    """Against the last mock of the same plan, in words."""
    before = [entry for entry in card.earlier if entry.plan == card.plan and entry.overall is not None]
    if not before or card.overall is None:
        return "The first mock of this plan: nothing to compare with yet."
    last = before[-1].overall or 0.0
    change = card.overall - last
    word = "as before" if abs(change) < 0.05 else f"{abs(change):.1f} {'above' if change > 0 else 'below'} it"
    return f"The last {card.plan} had {last:.1f}; this one is {word}."


def page(card: Scorecard) -> str:
    from tutor.drill import plots

    overall = "–" if card.overall is None else f"{card.overall:.1f}"
    esc = html.escape
    rows = "".join(f"<dt>{esc(name)}</dt><dd>{esc(value)}</dd>" for name, value in facts(card))
    reasons = "".join(f"<li>{esc(reason)}</li>" for reason in (*card.reasons, *card.notes))
    skills = "".join(
        f"<tr><td>{esc(skill.words)}</td><td>{'not shown' if skill.score is None else f'{skill.score:.1f}'}</td>"
        f"<td>{skill.weight:g}</td><td>{'–' if skill.floor is None else f'{skill.floor:.1f}'}</td></tr>"
        for skill in card.skills
    )
    drawn = [plots.skills_plot(card)] if any(skill.score is not None for skill in card.skills) else []
    drawn += [plots.time_plot(card), plots.history_plot(card)]
    figures = "".join(f"<figure>{svg}</figure>" for svg in drawn)
    body = BODY.format(
        head=esc(card.title),
        signal=esc(card.signal),
        overall=overall,
        facts=rows,
        reasons=reasons,
        skills=skills,
        figures=figures,
        trend=esc(trend(card)),
        tasks="".join(_task_html(card, index) for index in range(len(card.tasks))),
    )
    return html_page(f"{card.title}: {card.signal}", STYLE, body)


def _task_html(card: Scorecard, index: int) -> str:
    task, esc = card.tasks[index], html.escape
    extra = [task.phase, KINDS.get(task.kind, task.kind), time_taken(task.seconds)]
    extra += ["flagged"] if task.flagged else []
    extra += [f"{task.hints} hints"] if task.hints else []
    look_up = f"<p>Look it up: <code>{esc(task.look_up)}</code></p>" if task.look_up and task.result != "right" else ""
    return (
        f'<article id="{esc(task.task)}"><h3>{SIGNS[task.result]} {_ticks(task.title)} '
        f"<small>{esc(task.result)}</small></h3>"
        f"<p><small><code>{esc(task.item)}</code> {esc(', '.join(extra))}</small></p>"
        f"<p>{_ticks(task.note)}</p>{look_up}</article>"
    )


def _ticks(text: str) -> str:
    """`code` in the text as code; anything else as written."""
    parts = html.escape(text).split("`")
    if len(parts) % 2 == 0:
        return html.escape(text)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _code_safe(text: str) -> str:
    """One line of Markdown in which brackets and stars outside of `code` stay what they are."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    for index in range(0, len(parts), 2):
        for sign in "[]*_<>|":
            parts[index] = parts[index].replace(sign, f"\\{sign}")
    return "`".join(parts)


STYLE = """\
body { max-width: 760px; }
h1 { margin-bottom: 0; } small { color: #555; font-weight: normal; }
.signal { font-size: 1.4rem; margin-top: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; } dd { margin: 0; } dt { color: #555; }
td, th { padding: .2rem 1rem .2rem 0; }
code { background: #f2f2f2; padding: 0 .2em; }
figure { margin: 1.5rem 0; } figure svg { width: 100%; height: auto; }
article { border-top: 1px solid #ddd; } article h3 { margin-bottom: 0; } article p { margin: .3rem 0; }
"""
BODY = """\
<h1>{head}</h1>
<p class="signal"><strong>{signal}</strong>, {overall} of 5</p>
<dl>{facts}</dl>
<h2>Why</h2><ul>{reasons}</ul>
<h2>Skills</h2>
<table><thead><tr><th>skill</th><th>score</th><th>weight</th><th>floor</th></tr></thead><tbody>{skills}</tbody></table>
{figures}
<p>{trend}</p>
<h2>What was asked</h2>
{tasks}"""
