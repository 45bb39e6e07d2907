"""Jobs that the tests of running execute, for two, three and four processes, each group started once for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import product
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.problem.passes import Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.simulation.simulator import simulate
from runtime.execution.program import Program
from runtime.exporters.catalogue import EXPORTERS
from runtime.pytorch.processes import launch
from runtime.running.job import Job, ModelSpec, Outcome, job_for
from runtime.running.torch_version import csv_version
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import DAY
from tests.support.makers import problem, random_order, schedule
from tests.support.saving_orders import LOOP, MEMORY, RECOMPUTED, TIMELINES
from tests.support.torch_forks import supervisor

SPLITS = ("autograd", "store")
# Published schedules that are run, others every day; PIPESCHED_JOBS_SEED draws those of another day, "all" runs all.
DRAWN = 6
SEED = os.environ.get("PIPESCHED_JOBS_SEED") or datetime.now(UTC).strftime("%Y%m%d")
TIMES = {"forward": 2, "backward": 2, "weight": 1, "transfer": 1}
SHAPES: dict[str, dict[str, object]] = {
    "linear": {},
    "interleaved": {"placement": "interleaved", "chunks": 2},
    "v-shape": {"placement": "v-shape"},
    "wave": {"placement": "wave", "chunks": 3},
    "bidirectional": {"placement": "bidirectional"},
}
SAVING: dict[str, dict[str, object]] = {
    "linear, with copies": {"memory": MEMORY},
    "interleaved, with copies": {"memory": MEMORY, **LOOP},
    "linear, recomputed": {"memory": RECOMPUTED},
}

TINY = ModelSpec("gpt", {"hidden": 16, "heads": 2, "sequence": 6, "vocabulary": 24, "microbatch_size": 1})


def job(one: Problem, order: Schedule, name: str = "", **options: object) -> Job:
    """Return a job that compares two steps of a tiny GPT in float64, unless `options` say otherwise."""
    made = job_for(simulate(one, order), Job("", one, order, (), model=TINY))
    return replace(made, name=name or made.name, **options)  # type: ignore[arg-type]


def with_comms(one: Problem, order: Schedule) -> list[list[str]]:
    """Return the cells of the CSV with sends and receives, a list a device."""
    text = EXPORTERS["torch-csv-comms"].export(simulate(one, order), {"torch": csv_version()})
    (csv,) = (value for suffix, value in text.items() if suffix.endswith(".csv"))
    return [line.split(",") for line in csv.splitlines()]


def from_rows(like: Job, rows: list[list[str]], name: str, comms: bool = True) -> Job:
    """Return the job with other cells for PyTorch's runtime to load."""
    return replace(like, name=name, rows="".join(",".join(row) + "\n" for row in rows), comms=comms)


def solved(one: Problem) -> Schedule:
    """Return the schedule that the solver finds with little, counted work."""
    timeline = solve(one, counted(0.05)).timeline
    assert timeline is not None
    return timeline.schedule


def both_splits(one: Problem, order: Schedule, name: str) -> Iterator[Job]:
    for split in SPLITS:
        yield job(one, order, f"{name}, {split}", split=split)


@cache
def on_two_devices() -> Sequence[Job]:
    """Return jobs of random orders with random kinds of backward on every placement, and of solved ones on half of them.

    The method that splits backwards alternates from job to job and from day to day.
    """
    return (*_on_two_devices(),)


def _on_two_devices() -> Iterator[Job]:
    shapes = SHAPES | {"explicit": {"placement": [1, 0, 0, 1, 1]}}
    for number, (shape, keys) in enumerate(shapes.items()):
        one = problem(2, 4, times=TIMES, **keys)
        today, other = SPLITS[(number + DAY) % 2], SPLITS[(number + DAY + 1) % 2]
        yield job(one, random_order(one, Random(shape), pairs=0.3), f"random {shape}, {today}", split=today)
        if shape == "wave":
            continue
        if (number + DAY // 2) % 2:
            small = problem(2, 3, times=TIMES, **keys)
            yield job(small, solved(small), f"solved {shape}", split=other)
    one = problem(2, 4)
    yield job(one, random_order(one, Random(1)), "random linear, float32", dtype="float32")
    for name in ("mixed", "in a V"):
        order = TIMELINES[name]
        yield from both_splits(order.problem, order.schedule, f"saving, {name}")


def on_three_devices() -> Iterator[Job]:
    """Yield jobs with an odd number of devices, where the middle one holds both replicas of a stage; uneven placements
    too."""
    shapes: dict[str, object] = {"bidirectional": "bidirectional", "uneven": [2, 0, 0, 1, 2, 0]}
    for name, placement in shapes.items():
        one = problem(3, 5, placement=placement)
        yield from both_splits(one, random_order(one, Random(5)), f"random {name}")
    alone = problem(3, 1, placement="bidirectional")
    yield job(alone, random_order(alone, Random(2)), "one micro-batch: replicas that see none")


@cache
def on_four_devices() -> Sequence[Job]:
    """Return a job of every published schedule on the first placement where it applies, of 6 micro-batches, else 8; one
    step."""
    return (*_on_four_devices(),)


def _on_four_devices() -> Iterator[Job]:
    for number, heuristic in enumerate(HEURISTICS):
        for microbatches, (shape, keys) in product((6, 8), (SHAPES | SAVING).items()):
            one = problem(4, microbatches, **keys)
            try:
                made = job(
                    one,
                    heuristic.order(one),
                    f"{heuristic.name} on {shape}",
                    split=SPLITS[number % 2],
                    steps=1,
                    compared=1,
                )
            except (DoesNotApply, BadInput):
                continue
            yield made
            break


def of_the_day() -> list[Job]:
    """Return the jobs of the published schedules that today's seed draws."""
    every = on_four_devices()
    return [*every] if SEED == "all" else Random(SEED).sample(every, DRAWN)


def doctored() -> Iterator[Job]:
    """Yield jobs with one fault each that a runtime does not report, or refuses, and the faultless ones for
    comparison."""
    one = problem(2, 3)
    order = schedule("F0.0 F0.1 F0.2 B0.0 W0.0 B0.1 W0.1 B0.2 W0.2", "F1.0 B1.0 W1.0 F1.1 B1.1 W1.1 F1.2 B1.2 W1.2")
    plain = job(one, order, "plain")
    rows = with_comms(one, order)
    yield from_rows(plain, rows, "right with comms")
    yield from_rows(plain, _received_in_another_order(rows), "swapped receive")
    yield from_rows(plain, [[cell for cell in row if "REDUCE_GRAD" not in cell] for row in rows], "no REDUCE_GRAD")
    yield from_rows(plain, _last_stage_out_of_order(), "last stage out of order", comms=False)
    assert plain.rows is not None
    yield replace(plain, name="W removed", rows=plain.rows.replace(",0W1", ""))
    bidirectional = problem(2, 4, placement="bidirectional")
    right = random_order(bidirectional, Random(8))
    assert any(p.kind is W for p in right.passes())
    yield job(bidirectional, right, "right both ways")
    without = job(bidirectional, right, "W removed both ways")
    victim = next(p for p in right.passes() if p.kind is W)
    yield replace(without, program=_without(without.program, str(victim)))
    mixed = TIMELINES["mixed"]
    whole = job(mixed.problem, mixed.schedule, "W removed beside copies")
    yield replace(whole, program=_without(whole.program, "W0.1"))


def _received_in_another_order(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows with device 1's first two receives posted first of all, and in the wrong order."""
    first, second = "1RECV_F0", "1RECV_F1"
    assert {first, second} <= set(rows[1])
    return [rows[0], [second, first, *(cell for cell in rows[1] if cell not in (first, second))]]


def _last_stage_out_of_order() -> list[list[str]]:
    """Return rows that run without an error and give wrong losses.

    torch looks losses up by micro-batch number in a list that has them in order of execution.
    """
    return [
        ["0F2", "0F0", "0F1", "0B2", "0B0", "0B1"],
        ["1F2", "1F0", "1F1", "1B2", "1B0", "1B1"],
    ]


def _without(program: Program | None, word: str) -> Program:
    assert program is not None
    rows = tuple(tuple(step for step in row if step.name != word or step.transfer) for row in program.rows)
    return program._replace(rows=rows)


UNIT = 0.004  # seconds of one unit of time of sleeping stages


def asleep() -> Iterator[Job]:
    """Yield jobs of three schedules on stages of exact duration, and one with autograd's split, with another first
    stage."""
    one = problem(3, 6, times={"forward": 2, "backward": 2, "weight": 2})
    orders = {name: HEURISTICS[name].order(one) for name in ("1f1b", "zb-h1")} | {"solved": solved(one)}
    orders["late W"] = schedule_of([_late_weights(orders["zb-h1"], device) for device in range(3)])
    for name, split in (("1f1b", "store"), ("zb-h1", "store"), ("solved", "store"), ("late W", "autograd")):
        yield job(
            one, orders[name], f"asleep {name}, {split}", model=ModelSpec("sleep"), split=split, steps=2,
            seconds_per_tick=UNIT * float(one.tick),
        )  # fmt: skip


def _late_weights(order: Schedule, device: int) -> list[Pass]:
    """Return a device's passes with every W after all others."""
    return sorted(order.passes_on(device), key=lambda p: p.kind is W)


GROUPS = {
    2: lambda: [*on_two_devices(), *doctored()],
    3: lambda: [*on_three_devices(), *asleep()],
    4: of_the_day,
}

Ran = dict[str, tuple[Job, Outcome]]


def run_all(jobs: list[Job]) -> Ran:
    """Run jobs in one group of processes; return each with its outcome, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_start", supervisor)
        outcomes = launch.launch(jobs, timeout=300, device="cpu")
    assert len({one.name for one in jobs}) == len(jobs)
    return {one.name: (one, outcome) for one, outcome in zip(jobs, outcomes, strict=True)}


@cache
def ran(devices: int) -> Ran:
    """Return the jobs of the group for so many devices with their outcomes, by name; they run the first time it is
    asked for."""
    return run_all(GROUPS[devices]())
