"""Times of a problem file as whole ticks: a column for each quantity, with an entry for each stage."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd
from typing import Any

from pipesched.files.features.tasks import Tasks
from pipesched.files.fields.blocks_field import Saves
from pipesched.files.fields.link_times import latency_of, links_of
from pipesched.files.fields.stage_placement import per
from pipesched.files.problems.pass_tasks import KEYS
from pipesched.files.problems.schema import Times
from pipesched.files.rounding import MOST_STEPS, step_of
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import Ticks

# A list of numbers for each quantity, one a stage. That of a task is its kind of pass and its place in the file's list.
Columns = dict[Any, Any]


def times_in_ticks(
    times: Times,
    tasks: Tasks | None,
    where: Placement,
    microbatches: int,
    others: Iterable[tuple[Any, Fraction | list[Fraction]]] = (),
    most_steps: int = MOST_STEPS,
) -> tuple[Columns, tuple[tuple[Ticks, ...], ...], Fraction, list[str]]:
    """Return (columns, links, tick, notes): the times of a file as whole numbers of the tick.

    `columns` have a list by stage for each quantity given: by key of `times` (`block_saves` for what blocks save), and
    for tasks by (kind, place in the list); `fused` is always there, and `weight` is None if the file gives no such
    times. `links` have a row of times for each sending device; they are empty where transfers are by stage. `tick` is
    its length in the file's unit. A note says if times were rounded, to the nearest tick; they are if all passes of
    `microbatches` micro-batches would add up to more than `most_steps` ticks. `others` are further times, as pairs of a
    column's name and one number or a list by stage.
    """
    transfer, stages = latency_of(times.transfer), where.stages
    links = links_of(transfer)
    plain = {key: value for key, value in times if value is not None and key != "transfer"}
    if isinstance(plain.get("overlapped"), Saves):
        plain["block_saves"] = plain.pop("overlapped").ticks
    given: Columns = {key: per(value, stages) for key, value in plain.items()}
    if transfer is not None and not links:
        given["transfer"] = per(transfer, stages)  # type: ignore[arg-type]
    given |= {key: per(value, stages) for key, value in others}
    most_layers = 1
    if tasks is not None:
        given |= _task_times(tasks, stages)
        most_layers = max(layers_of(tasks, stages))
    numbers = [number for values in (*given.values(), *links) for number in values]
    chosen = step_of(numbers, microbatches * most_layers * sum(numbers, Fraction(0)), most_steps=most_steps)
    step = chosen.size
    ticks = {key: [round(number / step) for number in values] for key, values in given.items()}
    lags = [[round(number / step) for number in row] for row in links]
    whole = ticks.get("backward", [])
    if "weight" in ticks:
        whole = [b + w for b, w in zip(whole, ticks["weight"], strict=True)]
    fused = ticks.get("fused", whole)
    if "fused" in ticks:
        # Rounding must not make a fused backward cheaper than its two parts where it is not.
        exact = zip(given["fused"], given["backward"], given["weight"], strict=True)
        longer = [one >= b + w for one, b, w in exact]
        fused = [max(one, w) if long else one for one, w, long in zip(fused, whole, longer, strict=True)]
    if "block_saves" in ticks:
        # Nor must it make a block shorter than one of its passes.
        ticks["block_saves"] = [min(one) for one in zip(ticks["block_saves"], ticks["forward"], fused, strict=True)]
    # The rounded numbers may have a larger step in common.
    all_ticks = [*fused, *(number for values in (*ticks.values(), *lags) for number in values)]
    tick = step * (gcd(*all_ticks) or 1)

    def in_ticks(values: list[int]) -> tuple[int, ...]:
        return tuple(int(number * step / tick) for number in values)

    columns = {"weight": None} | {key: in_ticks(values) for key, values in (ticks | {"fused": fused}).items()}
    return columns, tuple(map(in_ticks, lags)), tick, chosen.note("times")


def _task_times(tasks: Tasks, stages: int) -> Columns:
    """Return the times of all tasks of one layer, in the file's unit, by (kind, place in the list) and stage."""
    lists = {kind: getattr(tasks, key) or () for kind, key in KEYS.items()}
    return {(kind, n): per(task.time, stages) for kind, own in lists.items() for n, task in enumerate(own)}


def layers_of(tasks: Tasks, stages: int) -> list[int]:
    """Return the number of layers of each stage by the key `tasks.layers`: a number for all, or a list; default 1.

    A list of half as many entries, for one direction of a bidirectional placement, is repeated for the other; the
    length of a list must have been checked before.
    """
    layers = tasks.layers or 1
    return layers * (stages // len(layers)) if isinstance(layers, list) else [layers] * stages
