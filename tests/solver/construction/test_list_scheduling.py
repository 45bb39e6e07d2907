"""The list scheduler, and times for a given order: within memory wherever any schedule is, and never worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import count, pairwise
from random import Random

import pytest

from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.objective import objectives
from pipesched.problem.passes import PassKind
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.analytic.integral_warmup import warm_up_forwards
from solver.construction.list_scheduling import list_schedule, list_schedules, policies, sequential
from solver.construction.lists.tables import list_run, rules_of, schedule_of_run, shop_of
from solver.construction.policy import LISTS, Policy
from solver.construction.timing import best_times
from solver.construction.tuned_lists import TunedLists
from tests.support.columns import Costs, Memory, build
from tests.support.daily import daily
from tests.support.in_turn import in_turn
from tests.support.makers import PLACEMENTS
from tests.support.makers import problem as problem_of
from tests.support.tiny_problem import tiny_problem

SEEDS = range(25)
several = in_turn("seed", SEEDS)


def drawn_placement(rng: Random) -> Placement:
    p, v = rng.randint(1, 4), rng.randint(1, 3)
    devices = [*range(p), *rng.choices(range(p), k=rng.randint(0, 4))]
    rng.shuffle(devices)
    named = (placement.linear(p), placement.v_shape(p), placement.bidirectional(p))
    more = (placement.interleaved(p, v), placement.wave(p, v), placement.explicit(p, devices))
    return rng.choice([*named, *more])


def feasible_problem(seed: int) -> Problem:
    """Any placement, times with zeros, and at least the memory that one micro-batch needs."""
    rng = Random(seed)
    where = drawn_placement(rng)

    def each(low: int, high: int) -> tuple[int, ...]:
        """Few or many of them the least, as drawn."""
        least = rng.random() / 2
        return tuple(low if rng.random() < least else rng.randint(low, high) for _ in range(where.stages))

    m = rng.randint(1, 5)
    forward, backward, weight, fused, transfer = each(0, 9), each(0, 9), each(0, 5), each(0, 14), each(0, 4)
    split, overlapped = rng.random() < 0.5, each(0, 20) if rng.random() < 0.5 else None
    costs = Costs(forward, backward if split else fused, weight if split else None, fused, transfer, overlapped)
    activation = each(0, 3)
    least_freed = rng.choice((-2, 0))  # 0: no B takes memory
    freed = tuple(rng.randint(least_freed, a) for a in activation)
    capacity: list[int | None] = []
    for device in range(where.devices):
        needed = max(sum(activation[s] for s in c if where.stage_device[s] == device) for c in where.chains)
        capacity.append(rng.randint(needed, 3 * needed + 1) if rng.random() < 0.5 else None)
    objective = rng.choice((Objective.MAKESPAN, Objective.SPAN))
    return build(where, m, costs, Memory(activation, freed, tuple(capacity)), objective)


@several
def test_every_schedule_is_valid_and_within_memory(seed: int) -> None:
    problem = feasible_problem(seed)
    assert why_infeasible(problem) is None
    some = list(policies(problem))[problem.microbatches % 3 :: 3]
    found = [list_schedule(problem, policy) for policy in some]
    for schedule in (sequential(problem), *(one for one in found if one is not None)):
        assert validate(simulate(problem, schedule)) == []
        assert validate(best_times(problem, schedule)) == []


def never_locks(problem: Problem) -> bool:
    return len(problem.placement.chains) == 1 and not problem.network.backward_takes_memory


def test_memory_never_locks_in_problems_with_and_without_w() -> None:
    drawn = [one for one in map(feasible_problem, SEEDS) if never_locks(one)]
    assert min(Counter(one.splittable for one in drawn)[splits] for splits in (False, True)) >= 3


@several
def test_memory_never_locks_on_one_chain_where_b_takes_none(seed: int) -> None:
    """Then every policy gives a schedule, split and fused."""
    problem = feasible_problem(seed)
    if never_locks(problem):
        found = list(policies(problem))
        assert len(list(list_schedules(problem))) == len(found)
        plain = [one for one in found if one.blocks is None and not (one.shares or one.warm_up)]
        assert len(plain) == (4 * len(LISTS.waits) + 4 if problem.splittable else 4)


@several
def test_compiled_or_not_the_same_passes_go_in_turn(seed: int) -> None:
    """On every placement, with little memory and much, and where memory locks."""
    problem = feasible_problem(seed)
    for policy in list(policies(problem))[problem.microbatches % 3 :: 3]:
        split = policy.split and problem.splittable
        shop = shop_of(problem, split)
        rules = rules_of(problem, policy, shop)
        found, plain = list_run(shop, rules), list_run(shop, rules, compiled=False)
        if found is None or plain is None:
            assert plain is found is None
            continue
        assert found.put.tolist() == plain.put.tolist() and found[1:] == plain[1:]
        schedule = schedule_of_run(problem, found, split)
        assert measure(simulate(problem, schedule)).makespan_ticks <= found.makespan
        assert measure(best_times(problem, schedule)).span_ticks <= found.span


def test_numbers_of_more_than_64_bits_are_run_uncompiled() -> None:
    """Times and memory as many times as large give the same order."""
    one = problem_of(4, 6, placement="bidirectional", times=BLOCKS, memory={"capacity": 5})
    many = 10**20
    grown = replace(
        one,
        stages=tuple(
            replace(
                stage, forward=many * stage.forward, backward=many * stage.backward, weight=many * (stage.weight or 0),
                fused=many * stage.fused, blocks=Blocks(many * (stage.blocks.ticks or 0)), activation=many * stage.activation,
            )
            for stage in one.stages
        ),
    ).with_room([many * (room or 0) for room in one.room])  # fmt: skip
    orders = [schedule.orders for schedule in list_schedules(one)]
    assert [schedule.orders for schedule in list_schedules(grown, compiled=True)] == orders


@in_turn("seed", range(20))
def test_a_fixed_number_of_forwards_before_the_first_backward(seed: int) -> None:
    """Where each device has one stage; within memory, exactly so many, and fewer and fewer."""
    random = Random(seed)
    stages, m = random.randint(1, 5), random.randint(1, 12)

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(random.randint(low, high) for _ in range(stages))

    costs = Costs(each(1, 9), each(1, 9), each(0, 9), each(2, 18), each(0, 4))
    activation = each(1, 3)
    memory = Memory(activation, tuple(random.randint(0, a) for a in activation), each(3, 24))
    problem = build(placement.linear(stages), m, costs, memory, random.choice(objectives()))
    forwards = warm_up_forwards(problem)
    assert all(one >= other >= 1 for one, other in pairwise(forwards[s] for s in range(stages)))
    for policy in (Policy(True, patience, True, False, warm_up=True) for patience in (0, 50, 100)):
        schedule = list_schedule(problem, policy)
        assert schedule is not None
        assert validate(best_times(problem, schedule)) == []
        for stage, order in enumerate(schedule.orders):
            kinds = [slot[0].kind for slot in order]
            assert kinds.index(PassKind.B) == forwards[stage]


def test_rules_that_are_searched_for_reach_the_bound_at_one_activation_a_stage() -> None:
    """Little's law says how many micro-batches each stage needs; no policy of the list scheduler gets there."""
    costs = Costs((18,) * 8, (18,) * 8, (9,) * 8, (27,) * 8, (1,) * 8)
    problem = build(placement.linear(8), 32, costs, Memory((1,) * 8, (0,) * 8, (8,) * 8), Objective.SPAN)
    tuned = TunedLists(problem, True, 1, 0)
    tuned.descend(lambda: False)
    descended = tuned.value
    tuned.vary(lambda: False, 50)
    schedule = tuned.schedule()
    assert schedule is not None and descended is not None and tuned.value is not None
    assert tuned.value <= descended
    best = best_times(problem, schedule)
    assert validate(best) == []
    plain = min(measure(best_times(problem, one)).span_ticks for one in list_schedules(problem))
    assert measure(best).span_ticks <= tuned.value < plain
    longer = replace(problem, microbatches=100)
    again = tuned.schedule(longer)
    assert again is not None and validate(best_times(longer, again)) == []


def test_a_search_for_rules_is_ended_from_another_thread() -> None:
    problem = problem_of(4, 8, objective="span")
    tuned = TunedLists(problem, True, 2, 0)
    tuned.descend(lambda: True)
    calls = count()
    tuned.vary(lambda: next(calls) > 20)
    assert tuned.value is not None and not tuned.halt[0]


def test_a_micro_batch_that_has_given_everything_back_takes_nothing_more() -> None:
    """Stage 0 holds nothing, and its backward runs after stage 5, on the same device, has given back all it held."""
    none = (0,) * 6
    problem = build(
        placement.v_shape(3), 2, Costs(none, none, None, none, none), Memory((*none[1:], 1), none, (1, None, None))
    )
    assert len(list(list_schedules(problem))) == len(list(policies(problem)))


@several
def test_best_times_end_no_device_later_and_are_no_worse(seed: int) -> None:
    problem, rng = feasible_problem(seed), Random(seed)
    for schedule in (sequential(problem), *list_schedules(problem, compiled=True)):
        if rng.random() < 0.85:
            continue
        soon, best = simulate(problem, schedule), best_times(problem, schedule)
        assert all(late <= early for late, early in zip(ends(best), ends(soon), strict=True))
        assert measure(best).value_ticks(problem.objective) <= measure(soon).value_ticks(problem.objective)


@in_turn("seed", range(50))
def test_sequential_fits_whenever_any_schedule_does(seed: int) -> None:
    problem = tiny_problem(Random(seed))
    fits = validate(simulate(problem, sequential(problem))) == []
    assert fits == (why_infeasible(problem) is None)


def ends(timeline: Timeline) -> list[int]:
    devices = range(timeline.problem.devices)
    return [max(map(timeline.end, timeline.schedule.passes_on(device))) for device in devices]


BLOCKS = {"forward": 10, "backward": 10, "weight": 10, "fused": 20, "overlapped": 24}


def least_makespan(problem: Problem, chosen: Iterable[Policy]) -> tuple[int | Fraction, int]:
    """In the file's unit, with the number of overlapped blocks of that schedule."""
    found = []
    for policy in chosen:
        schedule = list_schedule(problem, policy, compiled=True)
        if schedule is not None:
            timeline = simulate(problem, schedule)
            assert validate(timeline) == []
            blocks = sum(len(slot) == 2 for order in schedule.orders for slot in order)
            found.append((measure(timeline).makespan_ticks * problem.tick, blocks))
    return min(found)


@pytest.mark.parametrize("name", daily([*PLACEMENTS], 2))
@pytest.mark.parametrize("held", (None, 4))
def test_blocks_gain_on_every_placement(name: str, held: int | None) -> None:
    """Blocks of .6 of their passes, in any memory and in that of four activations a stage."""
    where = PLACEMENTS[name](3)
    chunks = len(problem_of(3, 1, **where).placement.stages_of[0])
    memory = {} if held is None else {"memory": {"capacity": held * chunks}}
    one = problem_of(3, 8, **where, times=BLOCKS | {"overlapped": 18}, **memory)
    with_blocks, without = ([p for p in policies(one) if (p.blocks is not None) is way] for way in (True, False))
    value, blocks = least_makespan(one, [p for p in with_blocks if p.deepest_first])
    least, none = least_makespan(one, without[::2])
    assert value < least
    assert blocks > 0 == none


@pytest.mark.parametrize("fused", (14, 20))
def test_stages_that_share_memory_do_not_lock_chains_that_run_against_each_other(fused: int) -> None:
    """Where forwards of one chain fill the memory that the other needs, every other policy locks."""
    times = BLOCKS | {"overlapped": None, "fused": fused}
    one = problem_of(4, 8, placement="bidirectional", times=times, memory={"capacity": 3})
    assert all(list_schedule(one, policy) is None for policy in policies(one) if not policy.shares)
    found = list(list_schedules(one))
    assert len(found) > 0
    assert all(validate(simulate(one, schedule)) == [] for schedule in found)


def test_memory_kept_for_a_block_is_used_where_nothing_else_can_run() -> None:
    """One activation: no block is ever possible."""
    one = problem_of(2, 3, times=BLOCKS, memory={"capacity": 1})
    for policy in policies(one):
        schedule = list_schedule(one, policy)
        assert schedule is not None
        assert all(len(slot) == 1 for order in schedule.orders for slot in order)


def test_rules_are_searched_with_blocks_too() -> None:
    """V with blocks of .6 of their passes: no worse than the best policy, which rules without blocks are."""
    where = PLACEMENTS["v-shape"](4)
    one = problem_of(4, 8, **where, times=BLOCKS | {"overlapped": 18}, memory={"capacity": 8}, objective="span")
    values = []
    for problem in (one, one.without_blocks()):
        tuned = TunedLists(problem, True, 1, 0)
        tuned.descend(lambda: False)
        tuned.vary(lambda: False, 300)
        schedule = tuned.schedule()
        assert schedule is not None and tuned.value is not None
        timeline = best_times(problem, schedule)
        assert validate(timeline) == []
        assert measure(timeline).span_ticks <= tuned.value
        values.append(tuned.value)
    policies_best = min(measure(best_times(one, schedule)).span_ticks for schedule in list_schedules(one))
    assert values[0] <= policies_best < values[1]
