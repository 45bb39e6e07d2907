"""`plan`, `compare` and `sweep` on a tiny plan file with options, each answer against all partitions and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

from benchmarks.matrix.exact.model import Exact
from benchmarks.proofs.options import by_hand
from benchmarks.proofs.options.claim import cells_hold, exact, holds, number, same
from benchmarks.proofs.options.drawn import Asked, answer_of
from commands.shared.partition_settings import with_partition
from heuristics.catalogue import schedule_named
from pipesched.errors import Deadlock, DoesNotApply
from pipesched.files.plan_file import read_plan
from pipesched.files.problems.document import problem_document
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.sweeps.cells import Cell, read_sweep
from pipesched.validation.validator import validate
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.construction.timing import best_times
from solver.planning.schedule_comparison import FREE, orders_of
from solver.planning.sensitivity import changed_problems
from tests.support.plan_brute_force import partitions

Seen = Sequence[str]
_MOST_PARTITIONS = 30
_SMALL = Fraction(1, 10**6)


def best_of(asked: Asked) -> Exact | None:
    """Return between what the least value of all plans of a file lies, from its numbers alone where it is plain."""
    return by_hand.best_plan(asked.plain) or best_plan(read_plan(asked.path))


def best_plan(plan: PlanProblem) -> Exact | None:
    """Return between what the least value of all plans lies; None where they are too many, or of a kind not tried.

    The problem of a partition is the tool's own.
    """
    if plan.variants:
        return _least([best_plan(each) for each in plan.variants.values()])
    if plan.modules or plan.even or plan.objective.repeats or plan.leaves is not None:
        return None
    if any("rounded" in note for note in plan.notes) or not all(choice.whole for choice in plan.choices):
        return None
    found = list[Exact | None]()
    for choice in plan.choices:
        values = _of_choice(plan, choice)
        if values is None:
            return None
        found += values
    return _least(found)


def _of_choice(plan: PlanProblem, choice: Choice) -> list[Exact | None] | None:
    stages = len(choice.on(plan.cluster.devices).chains[0])
    if stages > len(plan.model.sequence) and not plan.model.empty_stages:
        return []
    every = list(islice(partitions(plan, choice), _MOST_PARTITIONS + 1))
    if len(every) > _MOST_PARTITIONS:
        return None
    problems = (plan.problem(choice, partition) for partition in every)
    if not plan.schedules:
        return [exact(problem_document(problem)) for problem in problems]
    return [_simulated(problem, name) for problem in problems for name in plan.schedules]


def _simulated(problem: Problem, name: str) -> Exact:
    """Return the value of a published order; nothing where it does not apply or does not fit."""
    try:
        timeline = best_times(problem, schedule_named(name).order(problem))
    except (DoesNotApply, Deadlock):
        return Exact(None, None)
    if validate(timeline):
        return Exact(None, None)
    value = value_of(problem, timeline) * problem.tick
    return Exact(value, value)


def _least(found: Sequence[Exact | None]) -> Exact | None:
    """Return the least of several optima; None if one of them is not known."""
    if None in found:
        return None
    known = [one for one in found if one is not None]
    least = min((one.least for one in known if one.least is not None), default=None)
    return Exact(least, min((one.most for one in known if one.most is not None), default=None))


def settings(asked: Asked) -> Seen:
    """`plan --gap --settings -o`, with `check` on the plan file written."""
    out, seen = asked.folder / "out", list[str]()
    answer = asked.answer("plan", "--gap", asked.random.choice(("0", "10%")), "-o", str(out), "--settings", "all")
    if (out / "plan.json").exists():
        for command, name in (("check", "plan.json"), ("check", "schedule.json"), ("validate", "schedule.json")):
            assert answer_of(command, str(out / name), "--json")["code"] == 0, f"{command} refuses our own {name}"
        seen += same("plan", answer["value"], by_hand.value_of_schedule(out / "schedule.json"))
    return [*seen, *holds("plan", answer, best_of(asked))]


def explain(asked: Asked) -> Seen:
    """`plan --explain`: every change against its own optimum."""
    answer = asked.answer("plan", "--explain")
    plan = read_plan(asked.path)
    best = best_of(asked)
    seen, known = [*holds("plan --explain", answer, best)], {one.text: one.problem for one in changed_problems(plan)}
    for row in answer.get("changes", ()):
        after = best_plan(known[row["change"]])
        seen += holds(f"plan --explain: {row['change']}", row, after)
        if row["between"]:
            _brings(row, best, after)
    return seen


def _brings(row: Mapping[str, Any], before: Exact | None, after: Exact | None) -> None:
    """Assert that the relative change of the optimum lies within what is claimed of it."""
    if before is None or after is None or not before.least or not before.most:
        return
    least, most = (Fraction(share) for share in row["between"])
    if after.most is not None and after.least is not None:
        assert least <= after.most / before.least - 1 + _SMALL, f"{row['change']}: {float(least)} at least"
        assert most >= after.least / before.most - 1 - _SMALL, f"{row['change']}: {float(most)} at most"


def runtime(asked: Asked) -> Seen:
    """`plan --for`: the best of what the runtime runs, and the best of all."""
    name = asked.random.choice(sorted(PARTITION_FORMATS.names()))
    answer = asked.answer("plan", "--for", name)
    plan = read_plan(asked.path)
    whole = best_of(asked)
    seen = [name, *holds(f"plan --for {name}: free", answer["free"], whole)]
    if whole is not None and whole.least is not None and answer["value"] is not None:
        assert answer["value"] >= whole.least * (1 - _SMALL), f"plan --for {name}: below the best of all"
    left, _ = restricted(plan, name, PARTITION_FORMATS[name].limits)
    return [*seen, *holds(f"plan --for {name}", answer, best_plan(left))]


def partition(asked: Asked) -> Seen:
    """`plan --partition`."""
    plan = read_plan(asked.path)
    stages, layers = len(plan.choices[0].on(plan.cluster.devices).chains[0]), max(0, len(plan.model.sequence) - 2)
    cuts = sorted(asked.random.choices(range(layers + 1), k=stages - 1))
    counts = [b - a for a, b in zip([0, *cuts], [*cuts, layers], strict=True)]
    setting = f"{asked.random.choice(('vllm', 'sglang'))}={','.join(map(str, counts))}"
    answer = asked.answer("plan", "--partition", setting)
    own = with_partition(plan, setting)
    return [*holds("--partition: free", answer["free"], best_of(asked)), *holds(setting, answer, best_plan(own))]


def compare(asked: Asked) -> Seen:
    """`compare PLAN --schedules --no-optimal`: each row against all plans of its schedule."""
    names = asked.random.sample(("1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "zbv", "dualpipe"), 2)
    words, plan = ["--schedules", ",".join(names)], read_plan(asked.path)
    if asked.random.random() < 0.5:
        words.append("--no-optimal")
    answer = asked.answer("compare", *words)
    seen = list[str]()
    for row in answer["rows"]:
        if row["schedule"] == FREE:
            best = best_of(asked)
            bound_alone = row["placement"] not in (None, *(choice.placement for choice in plan.choices))
            seen += holds("compare: free", row | ({"value": None, "status": None} if bound_alone else {}), best)
        elif row["status"] != "not applicable":
            seen += _of_schedule(plan, row)
    fits, decided = any(row["fits"] for row in answer["rows"]), {row["status"] for row in answer["rows"]}
    assert (answer["code"] == 0) == fits, f"compare: exit code {answer['code']}"
    assert answer["code"] != 1 or decided <= {"infeasible", "not applicable"}, f"compare: exit code 1 of {decided}"
    return seen


def _of_schedule(plan: PlanProblem, row: Mapping[str, Any]) -> Iterator[str]:
    """Compare a row with the plans of its schedule; the value of what does not fit is no claim."""
    own = [one for one in plan.choices if row["placement"] in (None, one.placement)]
    if not own:
        return
    narrowed = replace(plan, schedules=tuple(orders_of(plan, row["schedule"])), choices=tuple(plan.choices))
    best = best_plan(narrowed)
    value, bound = number(row["value"] if row["fits"] else None), number(row["lower_bound"])
    if best is None:
        return
    if value is not None and best.least is not None:
        assert value >= best.least * (1 - _SMALL), f"{row['schedule']}: {value} below {float(best.least)}"
    if bound is not None and best.most is not None:
        assert row["status"] != "infeasible", f"{row['schedule']}: infeasible, where {float(best.most)} is possible"
        assert bound <= best.most * (1 + _SMALL), f"{row['schedule']}: bound {float(bound)} above {float(best.most)}"
        if row["status"] == "optimal":
            assert value is not None and value <= best.most * (1 + _SMALL), f"{row['schedule']}: {value} not optimal"
    yield "compared"


def sweep(asked: Asked) -> Seen:
    """`sweep PLAN --set --objective`: every cell against the optimum of its own plan problem."""
    axes = {
        "microbatches": "1,2",
        "memory.capacity": "5,7",
        "transfer": "0,1",
        "placement": "linear,v-shape",
        "chunks": "1,2",
        "objective": "makespan,span",
        "decide.recompute": "never,free",
    }
    chosen = asked.random.sample(sorted(axes), asked.random.choice((1, 1, 2)))
    words = [word for one in chosen for word in ("--set", f"{one}={axes[one]}")]
    answer = asked.answer("sweep", *words, "--store", str(asked.folder / "cells.sqlite"), "--jobs", "1")

    def best(cell: Cell) -> Exact | None:
        assert isinstance(cell.problem, PlanProblem)
        return best_plan(cell.problem)

    return cells_hold(words, read_sweep(asked.path, words[1::2]).cells, answer["cells"], best)


OPTIONS: Mapping[str, Callable[[Asked], Seen]] = {
    "plan --settings": settings,
    "plan --explain": explain,
    "plan --for": runtime,
    "plan --partition": partition,
    "compare PLAN": compare,
    "sweep PLAN": sweep,
}
