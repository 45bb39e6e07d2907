"""Schedule files as the store keeps them: compressed text, from which a cell's files can be written again."""

from __future__ import annotations

import zlib
from dataclasses import replace
from fractions import Fraction
from math import ceil

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.files.schedule_file import ScheduleFile, schedule_from, to_text
from pipesched.problem.attainable_spans import simplest
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_from
from pipesched.schedule.rescale import finer_timeline
from pipesched.sweeps.outcome import Outcome


def pack(file: ScheduleFile) -> bytes:
    """Return the text of a schedule file, compressed; ValueError if no problem file can express its problem."""
    return zlib.compress(to_text(file).encode(), 6)


def unpack(data: bytes) -> ScheduleFile:
    """Return the packed schedule file; `BadInput` if the data is damaged."""
    try:
        text = zlib.decompress(data).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"a schedule in the store is damaged: {error}") from None
    return schedule_from(read_json(text, "stored schedule"), "stored schedule")


def schedule_text(known: Outcome) -> str:
    """Return the text of a cell's schedule file, with the outcome's bound in place of the stored one.

    The stored bound stays if the outcome has none, and for a period. A bound over all plans is left out: the plan's
    answer file has it, with its evidence. `BadInput` if the outcome has no schedule, or a damaged one.
    """
    if known.schedule is None:
        raise BadInput("found a cell without a schedule; allowed: one with a schedule")
    file = unpack(known.schedule)
    if known.choice is not None:
        return to_text(file)
    evidence = None if known.evidence is None else evidence_from(known.evidence)
    return to_text(with_bound(file, known.lower_bound, Certificate(known.kind, 0, known.claim, None, evidence)))


def with_bound(file: ScheduleFile, bound: Fraction | None, argument: Certificate) -> ScheduleFile:
    """Return the file with another bound, in the file's unit, and its argument.

    Of `argument` the value is replaced by the bound. Except of spans, the bound is rounded up to a whole tick; a
    fraction of one makes the ticks finer. The file itself if `bound` is None or the bound that it has, and for a
    period.
    """
    problem = file.timeline.problem
    if bound is None or (file.lower_bound_ticks is not None and file.lower_bound_ticks * problem.tick == bound):
        return file
    if problem.objective.repeats:
        return file
    ticks = bound / problem.tick
    if not problem.objective.by_device:
        ticks = Fraction(ceil(ticks))  # there is no value between two ticks
    timeline = finer_timeline(file.timeline, ticks.denominator)
    whole = int(ticks * ticks.denominator)
    value = None if file.value_ticks is None else file.value_ticks * ticks.denominator
    return replace(
        file,
        timeline=timeline,
        lower_bound_ticks=whole,
        certificate=replace(argument, value_ticks=simplest(Fraction(whole))),
        value_ticks=value,
    )
