"""More freedom never gives less: a plan is there at once where one of a narrower restriction fits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event

import pytest

from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.errors import Deadlock
from pipesched.files.plan_file import plan_problem_from, read_plan
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.problem import Problem
from pipesched.results.plan import PlanCandidate
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.partitions.balance import balanced
from solver.planning.plan import plan
from solver.planning.search import first_plans
from solver.planning.search.choice_search import ChoiceSearch
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import partitions
from tests.support.plans_at_once import at_once

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "plans"


def layers_of(times: dict[str, tuple[int, ...]], count: int, keeps: float, extra: int) -> list[dict[str, object]]:
    """An embedding, so many blocks that may be recomputed in `extra`, and a head; a number for each of the three."""
    names = ("embedding", "block", "head")
    layers = [{"name": name} | {key: own[n] for key, own in times.items()} for n, name in enumerate(names)]
    layers[1] |= {"count": count, "recompute": [{"name": "full", "time": extra, "keeps": keeps}]}
    return layers


def first_plans_of(problem: PlanProblem, name: str) -> tuple[PlanCandidate | None, list[PlanCandidate]]:
    """The best first plan of a schedule on the first placement, and all that were found."""
    found, schedule = list[PlanCandidate](), schedule_named(name)
    search = ChoiceSearch(problem, problem.choices[0], Budget(counted(1), Event()), found.append)
    return first_plans.FirstPlans(search, name, schedule.order, schedule.same_for_all_costs).run(1), found


def least_of_all_partitions(problem: PlanProblem, name: str) -> Fraction:
    """The least makespan of a schedule on any partition with any recomputation that fits, in the file's unit."""
    values = []
    for partition in partitions(problem, problem.choices[0]):
        one = problem.problem(problem.choices[0], partition)
        timeline = simulate(one, schedule_named(name).order(one))
        if not validate(timeline):
            values.append(measure(timeline).makespan_ticks * problem.tick)
    return min(values)


def model(
    schedule: str, capacity: Fraction | float, placement: str = "v-shape", layers: int = 22, **more: object
) -> PlanProblem:
    full = [{"name": "full", "time": 2, "keeps": 0.1}]
    moe = {"name": "moe", "count": layers, "forward": 2, "backward": 2, "weight": 2, "memory": 1, "activation": 1}
    types = [
        {"name": "embedding", "forward": 1, "backward": 1, "memory": 2, "activation": 0.5},
        moe | {"recompute": full},
        {"name": "head", "forward": 3, "backward": 6, "memory": 2, "activation": 0.5},
    ]
    return plan_problem_from(
        {"devices": 4, "microbatches": 12, "layers": types, "placement": placement, "schedule": schedule}
        | {"memory": {"capacity": float(capacity)}, "transfer": 0.5, "objective": "makespan"}
        | more
    )


@pytest.mark.parametrize(("schedule", "capacity"), daily([("zbv", 14), ("dualpipe-v", 10), ("v-min", 8.5)], 3))
def test_free_recomputation_has_a_plan_where_all_recomputed_or_none_has(schedule: str, capacity: float) -> None:
    free = model(schedule, capacity, layers=5, devices=2, microbatches=4)
    for decide in (Decide.ALWAYS, Decide.FREE):
        assert plan(replace(free, recompute=decide), Limits(seconds=0)).best is not None
    values = {decide: at_once(replace(free, recompute=decide)).value for decide in Decide}
    assert values[Decide.ALWAYS] is not None
    known = [values[decide] for decide in (Decide.ALWAYS, Decide.NEVER)]
    assert values[Decide.FREE] is not None
    assert all(one is None or values[Decide.FREE] <= one for one in known)


# The loosest and the strictest rule on every placement, those between where plans are simple and where they are not.
RULES = [
    (placement, rule)
    for placement in ("linear", "interleaved", "v-shape", "wave", "bidirectional")
    for rule in RecomputeRule
    if rule in (RecomputeRule.ANY, RecomputeRule.ALL) or placement in ("linear", "interleaved")
]


@pytest.mark.parametrize(("placement", "rule"), daily(RULES, 6))
def test_free_orders_have_a_plan_where_all_has_to_be_recomputed(placement: str, rule: RecomputeRule) -> None:
    """With room for one micro-batch whose layers are all recomputed, and for the layers."""
    room = 11 if placement == "bidirectional" else 5.5  # which holds every layer twice
    small = model("free", room, placement, layers=4, devices=2, microbatches=2)
    free = replace(small, recompute_rule=rule)
    found = at_once(free)
    assert found.best is not None, found.reason
    assert any(found.best.partition.recompute)


def test_the_best_first_plan_is_the_least_over_all_partitions() -> None:
    """Of a model small enough to try all 165; later ones are worse, and those of less load better."""
    times = {"forward": (1, 1, 1), "backward": (3, 3, 1), "memory": (0, 2, 0), "activation": (4, 2, 2)}
    document = {"devices": 2, "microbatches": 2, "memory": {"capacity": 40}, "layers": layers_of(times, 8, 0, 1)}
    one = plan_problem_from(document | {"objective": "makespan"})
    best, every = first_plans_of(one, "gpipe")
    assert best is not None and best.value == min(each.value for each in every) == least_of_all_partitions(one, "gpipe")
    assert max(each.value for each in every) > best.value


def test_the_room_that_a_partition_lacked_is_left_to_the_device_on_the_next_one() -> None:
    times = {"forward": (3, 3, 5), "backward": (1, 3, 5), "weight": (1, 3, 2)}
    times |= {"memory": (3, 2, 1), "activation": (2, 2, 4)}
    cluster = [{"devices": 1, "speed": 1, "memory": 16}, {"devices": 1, "speed": 0.5, "memory": 18}]
    document = {"cluster": cluster, "microbatches": 2, "placement": "v-shape", "layers": layers_of(times, 4, 0, 2)}
    best, _ = first_plans_of(plan_problem_from(document | {"objective": "makespan"}), "zbv")
    assert best is not None and validate(best.timeline) == []


def test_free_recomputation_makes_room_without_recomputing_too() -> None:
    """A plan that recomputes fits at once and another is better: one that recomputes nothing, where room was made."""
    times = {"forward": (3, 3, 2), "backward": (1, 1, 6), "weight": (2, 1, 2)}
    times |= {"memory": (2, 1, 0), "activation": (1, 2, 3)}
    document = {"devices": 2, "microbatches": 4, "placement": "v-shape", "memory": {"capacity": 13}}
    free = plan_problem_from(document | {"layers": layers_of(times, 4, 0.5, 3), "objective": "makespan"})
    values = {}
    for decide in Decide:
        best, _ = first_plans_of(replace(free, recompute=decide), "v-min")
        assert best is not None and validate(best.timeline) == []
        values[decide] = best.value
    assert values[Decide.FREE] <= values[Decide.NEVER] < values[Decide.ALWAYS]


def test_a_free_partition_is_no_worse_than_the_even_one() -> None:
    free = model("zbv", 100, layers=10, microbatches=8)
    even, found = at_once(replace(free, even=True)), at_once(free)
    assert even.value is not None and found.value is not None and found.value <= even.value


def test_a_schedule_that_fits_no_balanced_partition_is_not_said_to_be_infeasible() -> None:
    """Its own cap of memory leaves no room there; whether it has one elsewhere is not known yet."""
    tight = model("zb", Fraction(14), "linear")
    found = plan(tight, counted(0.5))
    assert found.status is not Status.INFEASIBLE and found.best is not None


@pytest.mark.parametrize("schedule", ["free", "1f1b", "zbv-cost-aware", "v-half", "interleaved-1f1b"])
def test_without_any_time_a_plan_is_there_after_the_balanced_and_the_even_cut_of_each_placement(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[Timeline] = []

    def counted(problem: Problem, order: Schedule) -> Timeline:
        times.append(best_times(problem, order))
        return times[-1]

    monkeypatch.setattr(first_plans, "best_times", counted)
    found = plan(model(schedule, 60, "free"), Limits(seconds=0))
    assert found.best is not None and validate(found.best.timeline) == []
    assert len(times) <= 2 * sum(each.best is not None for each in found.choices)


def test_a_searched_order_is_looked_for_as_long_as_there_is_time() -> None:
    free = model("zbv", 60)
    problem = free.problem(free.choices[0], balanced(free, free.choices[0]))
    published, searched = (schedule_named(name).order for name in ("zbv", "zbv-cost-aware"))
    with patience():
        assert searched(problem).orders == published(problem).orders
    assert (
        measure(simulate(problem, searched(problem))).makespan_ticks
        <= measure(simulate(problem, published(problem))).makespan_ticks
    )


def test_a_schedule_whose_balanced_partitions_lack_memory_has_a_plan_at_once(tmp_path: Path) -> None:
    """Slow devices hold what their deferred weight passes need only with fewer layers than their speed would have."""
    text = (EXAMPLES / "mixed-devices.yaml").read_text()
    for large, small in (
        ("devices: 8", "devices: 2"),
        ("count: 46", "count: 10"),
        ("microbatches: 32", "microbatches: 8"),
    ):
        assert large in text
        text = text.replace(large, small)
    (tmp_path / "mixed.yaml").write_text(text)
    mixed = read_plan(tmp_path / "mixed.yaml")
    found = at_once(replace(mixed, schedules=("zbv",), choices=(Choice("v-shape", 2),)))
    assert found.value is not None and found.value < 104


def test_without_any_time_there_is_the_plan_that_needs_least_memory() -> None:
    """Neither the balanced nor the even partition fits; one that recomputes all, with the room that was lacking, does."""
    assert plan(model("zbv", 12, layers=7, devices=2, microbatches=4), Limits(seconds=0)).best is not None


def test_no_first_plan_takes_longer_than_the_cut_that_runtimes_take() -> None:
    """Of 13B parameters in Megatron (a log of 2021), whatever the time: an uneven cut took 23,870 instead."""
    layers = [
        {"name": "layer", "count": 40, "forward": 4.56, "backward": 12.72, "activation": 0.1},
        {"name": "head", "forward": 3.755, "backward": 6.289, "activation": 0.1},
    ]
    own = {"devices": 4, "microbatches": 128, "layers": layers, "memory": {"capacity": 20}, "placement": "interleaved"}
    free = plan_problem_from({**own, "chunks": 5, "schedule": "interleaved-1f1b"})
    found = plan(free, Limits(seconds=0))
    even = plan(plan_problem_from({**own, "chunks": 5, "schedule": "interleaved-1f1b", "partition": "even"}))
    assert found.value is not None and even.value == Fraction("23507.712")
    assert found.value <= even.value


def test_an_order_that_would_hang_is_no_first_plan() -> None:
    """A list schedule orders passes alone; where sends and receives occupy both devices it may wait for itself."""
    layer = {"forward": 1, "backward": 1, "activation": 1, "attention": 0.5, "attention_backward": 0.25}
    wanted = plan_problem_from({
        "devices": 2, "microbatches": 2, "placement": "linear",
        "layers": [{"name": name, **layer} for name in ("embedding", "block", "head")],
        "sequence_chunks": {"count": 2, "lengths": "equal"},
        "transfer": {"time": 1, "on": "compute", "both": True},
    })  # fmt: skip
    choice = ChoiceSearch(wanted, wanted.choices[0], Budget(counted(1), Event()), lambda _: True)
    partition = Partition((2, 1))
    problem = wanted.problem(choice.choice, partition)
    listed = next(list_schedules(problem))
    with pytest.raises(Deadlock):
        simulate(problem, listed)
    assert first_plans.timed(choice, partition, "listed", lambda _: listed) is None
