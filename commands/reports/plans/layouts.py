"""Layouts of a model side by side: the best plan found of each, and why others have none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from commands.shared.output import percent
from commands.shared.tables import Column, table
from pipesched.files.model_configs.layouts import Layout
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.problem.formatting import plain
from pipesched.results.gap import gap
from pipesched.results.plan_figures import step_time
from pipesched.schedule.metrics import IDLE, measure
from solver.planning.race import NO_TIME, Raced
from targets.layouts import LayoutRace

_FIGURES = [
    Column("step (ms)", True),
    Column("of it pipeline", True, 3),
    Column("pipeline's bound", True),
    Column("pipeline's gap", True, 2),
    Column("tokens/s", True),
    Column("MFU", True),
    Column(IDLE, True),
    Column("peak memory (GiB)", True),
    Column("recomputed layers", True, 1),
    Column("order", leave_out=4),
]
# Of layouts without a plan so many are named; `--json` has all.
_NAMED = 8


def show(race: LayoutRace, wanted: Wanted, gpus: int, target: str | None) -> None:
    """The best, the table with it in bold, and how times are meant; then the layouts without a plan, by the reason."""
    shown = [one for one in race.rows if one.step is not None]
    names = [name for name in Layout._fields if any(getattr(one.key, name) > 1 for one in shown) or name != "context"]
    columns = [*(Column(name, True) for name in names), Column("micro-batches", True, 1), *_FIGURES]
    runtime = "" if target is None else f", of plans that {target} runs"
    where = f"{race.rows[0].problem.name} on {gpus} x {wanted.hardware}"
    title = f"{where}, {_batch(race, wanted)}: the best found of each layout{runtime}"
    rows = [_cells(one, names, wanted, gpus) for one in shown]
    if rows:
        print(_verdict(race, target))
        table(title, columns, rows, bold=[0])
        print(
            "step: the pipeline from its first forward to its last backward, then gradients and weights exchanged "
            "among the replicas, and the optimizer's step; loading of data comes on top"
        )
    for reason, layouts in _without(race).items():
        print(f"{len(layouts)} {reason}: {', '.join(layouts[:_NAMED])}{', …' if layouts[_NAMED:] else ''}")


def _verdict(race: LayoutRace, target: str | None) -> str:
    """The best layout with its step and memory, and what no step of any layout is below."""
    best = race.rows[0]
    assert best.step is not None and best.plan is not None and best.plan.best is not None
    step, cluster = best.step.total, best.problem.cluster
    tried = " of those tried" if any(one.dropped == NO_TIME for one in race.rows) else ""
    room = min(cluster.capacity or (Fraction(),))
    held = f"{plain(round(max(measure(best.plan.best.timeline).peak_memory), 1))} of {plain(float(room))}"
    proved = f"no layout{'' if target is None else f' that {target} runs'} has a "
    if step == race.least:
        proved += "shorter step"
    else:
        proved += f"step below {plain(round(float(race.least), 3))} ms: a gap of {percent(gap(step, race.least))}"
    found = f"best layout{tried}: {best.key}: step {plain(round(float(step), 3))} ms"
    return f"{found}, peak memory {held} {cluster.memory_unit}; {proved}"


def lacking(race: LayoutRace) -> str:
    """Why there is no layout: how much its parameters take in the one of least, and how much there is."""

    def state(one: Raced[Layout]) -> Fraction:
        return sum((layer.memory for layer in one.problem.model.sequence), Fraction()) / one.problem.cluster.devices

    least = min(race.rows, key=state)
    room = min(least.problem.cluster.capacity or (Fraction(),))
    held = f"{plain(round(float(state(least)), 1))} of {plain(float(room))} {least.problem.cluster.memory_unit}"
    return (
        f"no layout {'found in the time limit ' if state(least) < room else ''}fits the memory: parameters, gradients "
        f"and optimizer state alone take {held} a device, spread as {least.key}; it takes more or larger GPUs"
        + (", or recomputes more in a longer search" if state(least) < room else "")
    )


def _batch(race: LayoutRace, wanted: Wanted) -> str:
    step = race.rows[0].problem.step
    assert step is not None
    return f"{wanted.microbatches} micro-batches of {step.microbatch_size} x {step.sequence} tokens a step"


def _cells(one: Raced[Layout], names: list[str], wanted: Wanted, gpus: int) -> list[str]:
    told = record(one, wanted, gpus)
    return [
        *(str(told[name]) for name in names),
        str(told["microbatches"]),
        plain(round(told["step"], 3)),
        plain(round(told["pipeline_time"], 3)),
        plain(round(told["lower_bound"], 3)),
        percent(told["gap"]),
        plain(round(told["tokens_per_second"])),
        percent(told["mfu"]),
        percent(told["idle"]),
        plain(round(max(told["peak_memory"]), 1)),
        str(told["recomputed_layers"]),
        f"{told['placement']}, {told['schedule']}",
    ]


def _without(race: LayoutRace) -> dict[str, list[str]]:
    """Layouts without a plan, by what they lack."""
    found: dict[str, list[str]] = {}
    best = race.rows[0].step
    for one in race.rows:
        if one.step is None and best is not None and one.least >= best.total:
            found.setdefault("no better, by the bound", []).append(str(one.key))
        elif one.step is None:
            known = {NO_TIME: f"{NO_TIME} (--time-limit)", "": "without a plan"}
            found.setdefault(known.get(one.dropped, "do not fit the memory"), []).append(str(one.key))
    for layout, reason in race.refused.items():
        found.setdefault(f"refused ({reason})", []).append(str(layout))
    return found


def record(one: Raced[Layout], wanted: Wanted, gpus: int) -> dict[str, Any]:
    """A row of `layouts --json`: times in ms, memory in GiB."""
    found: dict[str, Any] = {
        **one.key._asdict(), "microbatches": one.problem.microbatches, "lower_bound": float(one.bound),
        "step_lower_bound": float(one.least), "step": None, "fits": one.step is not None, "reason": one.dropped,
    }  # fmt: skip
    best = None if one.plan is None else one.plan.best
    if best is None or one.plan is None:
        return found
    time, training, metrics = step_time(one.problem, best), one.problem.step, measure(best.timeline)
    assert training is not None
    seconds, steps = float(time.total) / 1000, one.problem.microbatches * training.parallel.data
    peak = gpus * wanted.device.tflops * 1e12
    return found | {
        "step": float(time.total), "pipeline_time": float(time.pipeline), "gap": gap(time.pipeline, one.bound),
        "tokens_per_second": training.tokens(one.problem.microbatches) / seconds,
        "mfu": float(training.operations) * steps / (seconds * peak),
        "idle": metrics.idle(one.problem.objective), "peak_memory": metrics.peak_memory,
        "recomputed_layers": sum(sum(stage.values()) for stage in best.partition.recompute_counts()),
        "placement": str(best.choice), "partition": list(best.partition.counts), "schedule": best.schedule,
    }  # fmt: skip


def document(race: LayoutRace, wanted: Wanted, gpus: int) -> dict[str, Any]:
    """The object of `layouts --json`, without the plan of the best."""
    rows = [record(one, wanted, gpus) for one in race.rows]
    return {"gpus": gpus, "microbatches": wanted.microbatches, "step_lower_bound": float(race.least), "rows": rows,
            "refused": {str(layout): reason for layout, reason in race.refused.items()}}  # fmt: skip
