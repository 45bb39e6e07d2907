"""The HTML report of `layouts`: recommendation, table of all layouts, and the recommended layout's plan."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence

from commands.reports.html.plan import Around, plan_report
from commands.reports.plans.layouts import notes, sheet, verdict, without
from plots.html.parts import Paragraph, Part, Points, Section, Table
from plots.html.report import capitalised
from solver.planning.progress import PlanProgress
from targets.layout_answer import LayoutAnswer


def layouts_report(
    answer: LayoutAnswer, settings: Mapping[str, tuple[list[str], str]], moments: Sequence[PlanProgress],
    args: Namespace, source: str,
) -> str:  # fmt: skip
    """Return the HTML page: the table of layouts, then the report on the recommended layout's plan.

    `source` names the plan file of that layout; `settings` are, by runtime, notes and the text of its settings;
    `moments` are the search's progress.
    """
    found, plan = answer.layouts, answer.plan
    assert plan is not None
    title, columns, rows, strong = sheet(found, args.target, len(found.rows))
    heads = [(column.header.replace("\n", " "), column.numeric) for column in columns]
    parts: list[Part] = [Table(heads, rows, capitalised(title), strong), Points(notes(found))]
    parts += [Paragraph(f"{len(names)} {reason}: {', '.join(names)}.") for reason, names in without(found).items()]
    around = Around(
        f"{found.gpus} x {found.hardware}, {found.sequences} sequences of {found.sequence} tokens a step",
        capitalised(verdict(found, answer.capacity, args.target)) + ".",
        [Section("Layouts side by side", parts)],
    )
    return plan_report(plan.found, [], settings, moments, args, source, answer.text, plan.narrowed, around)
