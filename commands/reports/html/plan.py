"""The HTML report of a plan: verdict, partition, placements, charts, bound, search, and input file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commands.reports.html.origin import file_section, reproduce_section
from commands.reports.plans.plan import sentences
from commands.reports.plans.plan_tables import (
    CHANGES,
    CHOICES,
    change_rows,
    choice_rows,
    memory_cells,
    memory_columns,
    stage_cells,
    stage_columns,
)
from commands.shared.tables import Column
from pipesched.problem.formatting import counted
from pipesched.problem.pass_names import microbatches_text
from pipesched.results.plan import Plan
from plots.html.parts import Code, Course, Moment, Paragraph, Part, Picture, Points, Schedules, Section, Table
from plots.html.report import capitalised, report
from plots.plan import render_plan
from solver.planning.progress import PlanProgress
from solver.planning.sensitivity import ChangeResult
from targets.plans import Narrowed, narrowed_sentences


class Around(NamedTuple):
    """Parts of a page that shows more than a plan.

    They are its subtitle and verdict, and sections that stand before the plan's own.
    """

    subtitle: str
    verdict: str
    sections: Sequence[Section]


def plan_report(
    plan: Plan, changes: Sequence[ChangeResult], settings: Mapping[str, tuple[list[str], str]],
    moments: Sequence[PlanProgress], args: Namespace, source: str, text: str | None, narrowed: Narrowed | None = None,
    around: Around | None = None, sizes: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the HTML page of a plan.

    `changes` are the best plans under changed numbers; `settings` are, by runtime, notes and the settings' text (empty
    if there is none); `moments` are the search's progress; `text` is the input file `source` as typed (None: not
    readable again). `narrowed` is the command's restriction of the plan. `around` is for pages with more than the plan;
    `sizes` are lines on other micro-batch sizes.
    """
    best = plan.best
    assert best is not None
    verdict, step, made_of, *others = sentences(plan, best, "" if narrowed is None else narrowed.scope)
    problem, unit = best.timeline.problem, plan.problem.cluster.memory_unit
    units = (("times", problem.time_unit), ("memory", unit))
    stages = f"Its stages ({', '.join(f'{what} in {one}' for what, one in units if one)})"
    own = [] if around is None else [f"of the plans of this layout: {verdict}"]
    sections = [
        Section(
            "The plan",
            [
                Points([*own, step, made_of]),
                _picture(plan),
                _table(stage_columns(plan), stage_cells(plan, best), stages),
            ],
        ),
        Section("Placements side by side", [_table(CHOICES, choice_rows(plan), "The best plan of each")]),
        Section("Passes and memory", [*_memory(plan, unit), _timelines(plan)]),
        Section("Why not better", list(map(Paragraph, others))),
    ]
    if narrowed is not None:
        paragraphs: list[Part] = [Paragraph(f"{capitalised(one)}.") for one in narrowed_sentences(plan, narrowed)]
        sections.insert(1, Section(f"For {narrowed.name or 'the partition given'}", paragraphs))
    if sizes:
        sections.insert(1, Section("Sizes of micro-batches", [Points(sizes)]))
    if changes:
        table = _table(CHANGES, change_rows(plan, changes), "Best plans under changed numbers")
        sections.append(Section("What changes would bring", [table]))
    if settings:
        parts: list[Part] = []
        for name, (notes, file) in settings.items():
            parts += [Paragraph(f"{name}:"), Points(notes), *([Code(file)] if file else [])]
        sections.insert(0, Section("Settings for runtimes", parts))
    sections += [
        Section("The search", [_course(plan, moments)]),
        file_section("The plan file", text, source),
        reproduce_section(args, plan.wall_seconds),
    ]
    devices = f"{counted(problem.devices, 'device')}, {microbatches_text(problem)}"
    subtitle = f"{devices}; best plan: {best.choice}; minimise {plan.problem.objective.name}"
    if around is not None:
        return report(plan.problem.name, around.subtitle, around.verdict, [*around.sections, *sections])
    return report(plan.problem.name, subtitle, capitalised(verdict) + ".", sections)


def _picture(plan: Plan) -> Picture:
    assert plan.best is not None
    counts = ", ".join(map(str, plan.best.partition.counts))
    shows = f"Layers on devices ({counts} layers a stage), memory of each device and time of a micro-batch"
    return Picture(render_plan(plan.problem, plan.best, "svg"), shows)


def _memory(plan: Plan, unit: str) -> list[Part]:
    assert plan.best is not None
    if plan.problem.cluster.capacity is None:
        return []
    return [_table(memory_columns(plan), memory_cells(plan, plan.best), f"Memory at the peak ({unit})")]


def _timelines(plan: Plan) -> Schedules:
    """Return the timeline of the best plan, then the best of every other placement, by value."""
    assert plan.best is not None
    others = [one.best for one in plan.choices if one.best is not None and one.best is not plan.best]
    others.sort(key=lambda one: one.value)
    return Schedules([(f"{one.choice}, {one.schedule}", one.timeline) for one in (plan.best, *others)])


def _course(plan: Plan, moments: Sequence[PlanProgress]) -> Course:
    points = [
        Moment(one.seconds, None if one.value is None else float(one.value), float(one.lower_bound), one.phase)
        for one in moments
    ]
    return Course(plan.problem.objective.name, plan.problem.time_unit, points, plan.wall_seconds)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], caption: str) -> Table:
    return Table([(column.header.replace("\n", " "), column.numeric) for column in columns], rows, caption)
