"""PyTorch's own built-in orders, read without processes or tensors, take as long as ours at unit times."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import Costs, Memory, build
from tests.support.in_turn import in_turn
from tests.support.later import later

schedules = later("torch.distributed.pipelining.schedules")

KINDS = {"F": F, "I": B, "W": W, "B": BW}
Rows = dict[int, list[Any]]


def unit(where: Placement, m: int) -> Problem:
    """Forward, backward and weight of one tick each; a full backward of two."""
    s = where.stages
    costs = Costs((1,) * s, (1,) * s, (1,) * s, (2,) * s, (0,) * s)
    return build(where, m, costs, Memory((1,) * s, (0,) * s, (None,) * where.devices))


def bare(name: str, **attributes: object) -> Any:
    """An object of torch's schedule class with only the attributes its order generator reads."""
    made = object.__new__(getattr(schedules, name))
    vars(made).update(attributes)
    return made


def slot(action: Any) -> Slot:
    """One action as a slot; an overlapped one holds its two as sub-actions."""
    passes = [
        Pass(KINDS[a.computation_type.value], a.stage_index, a.microbatch_index) for a in action.sub_actions or [action]
    ]
    return (passes[0], passes[1]) if len(passes) == 2 else (passes[0],)


def converted(rows: Rows, m: int) -> Schedule:
    """Torch's rows without its idle steps and its reduction of gradients, which are no passes."""
    computed = {
        rank: [a for a in row if a is not None and "REDUCE_GRAD" not in a.computation_type.value]
        for rank, row in rows.items()
    }
    orders = tuple(tuple(map(slot, computed[rank])) for rank in range(len(rows)))
    assert all(p.microbatch < m for order in orders for s in order for p in s)
    return Schedule(orders, "torch")


def single(name: str, p: int, m: int) -> Rows:
    """GPipe and 1F1B: one stage a rank."""
    rows: Rows = bare(name, _num_stages=p, _n_microbatches=m)._get_pipeline_order()
    return rows


def multi(name: str, p: int, m: int, v: int = 2) -> Rows:
    """The schedules with v stages a rank; rounds as their constructors compute them."""
    rounds = max(1, m // p)
    made = bare(
        name, pp_group_size=p, _n_microbatches=m, _stages=[SimpleNamespace()] * v, n_local_stages=v, num_stages=v * p,
        _num_stages=v * p, number_of_rounds=rounds, microbatches_per_round=m // rounds,
    )  # fmt: skip
    return {rank: made._calculate_single_rank_operations(rank) for rank in range(p)}


def run(problem: Problem, schedule: Schedule) -> Metrics:
    timeline = simulate(problem, schedule)
    assert validate(timeline) == []
    return measure(timeline)


SIZES = [(p, m * p) for p, m in product((2, 4, 8), (1, 2, 4))]
every_size = pytest.mark.parametrize(("p", "m"), SIZES)
EQUAL = (
    ("ScheduleLoopedBFS", "looped-bfs"),
    ("ScheduleInterleaved1F1B", "interleaved-1f1b"),
    ("ScheduleInterleavedZeroBubble", "interleaved-zb"),
)


@every_size
@pytest.mark.parametrize(("theirs", "ours"), EQUAL)
def test_orders_of_several_chunks_are_torchs_pass_by_pass(theirs: str, ours: str, p: int, m: int) -> None:
    problem = unit(placement.interleaved(p, 2), m)
    schedule = HEURISTICS[ours].order(problem)
    torchs = converted(multi(theirs, p, m), m)
    assert torchs.orders == schedule.orders
    assert run(problem, torchs).makespan_ticks == run(problem, schedule).makespan


@in_turn(("theirs", "ours"), EQUAL)
@in_turn(("p", "m"), [(4, 1), (4, 3), (4, 6), (4, 10), (3, 4), (3, 5), (8, 12)])
@in_turn("v", (1, 2, 3, 4))
def test_also_where_the_devices_do_not_divide_the_microbatches(theirs: str, ours: str, p: int, m: int, v: int) -> None:
    """Torch allows these too: m // p rounds of equal size.

    With one stage a rank, torch's interleaved 1F1B still warms up two forwards a hop, as if there were chunks to run
    ahead; ours is then 1F1B with one. It takes as long and holds more.
    """
    problem = unit(placement.interleaved(p, v), m)
    schedule = HEURISTICS[ours].order(problem)
    torchs = converted(multi(theirs, p, m, v), m)
    if v == 1 and ours == "interleaved-1f1b" and m > 1:
        assert torchs.orders != schedule.orders
        found, known = run(problem, torchs), run(problem, schedule)
        assert found.makespan_ticks == known.makespan
        assert max(found.peak_quanta) == min(m, 2 * p - 1) > max(known.peak_memory) or m <= p
    else:
        assert torchs.orders == schedule.orders


@every_size
def test_gpipe_differs_in_the_order_of_backwards_only(p: int, m: int) -> None:
    """Torch runs them first to last, the paper's figure and ours last to first; forwards and times are the same."""
    problem = unit(placement.linear(p), m)
    schedule = HEURISTICS["gpipe"].order(problem)
    torchs = converted(single("ScheduleGPipe", p, m), m)
    assert run(problem, torchs).makespan_ticks == run(problem, schedule).makespan
    for order, known in zip(torchs.orders, schedule.orders, strict=True):
        assert order == (*known[:m], *reversed(known[m:]))


@every_size
def test_1f1b_but_for_a_slip_of_torch_on_its_last_rank(p: int, m: int) -> None:
    """Torch 2.13's description of 1F1B (what it draws; it runs another code) counts the last rank's forwards from 1.

    It runs F1 .. Fm there, of which the last does not exist, and never F0. Counted from 0 the orders are ours.
    """
    rows = single("Schedule1F1B", p, m)
    last = [a for a in rows[p - 1] if a is not None and a.computation_type.value == "F"]
    assert [a.microbatch_index for a in last] == list(range(1, m + 1))
    rows[p - 1] = [
        a._replace(microbatch_index=a.microbatch_index - 1) if a is not None and a in last else a for a in rows[p - 1]
    ]
    problem = unit(placement.linear(p), m)
    schedule = HEURISTICS["1f1b"].order(problem)
    assert converted(rows, m).orders == schedule.orders


@pytest.mark.parametrize(("p", "m"), [(p, m * p) for p in (2, 4, 8) for m in (2, 3, 4)])
def test_torchs_v_schedules_are_valid_and_as_good_as_published(p: int, m: int) -> None:
    """At unit times both end one ramp of forwards after the load: .0464 of p=8 m=24.

    ZB-V has no bubble of the span and holds 2p chunk activations; DualPipe-V holds one more and its devices end late.
    """
    problem, load = unit(placement.v_shape(p), m), 6 * m
    zbv = run(problem, converted(multi("ScheduleZBVZeroBubble", p, m), m))
    assert (zbv.makespan_ticks, zbv.span_ticks) == (load + p - 1, load)
    assert set(zbv.peak_quanta) == {2 * p}
    dual = run(problem, converted(multi("ScheduleDualPipeV", p, m), m))
    assert (dual.makespan_ticks, dual.span_ticks) == (load + p - 1, load + p - 1)
    assert set(dual.peak_quanta) == {2 * p + 1}
    if (p, m) == (8, 24):
        assert dual.bubbles["makespan"] == pytest.approx(0.0464, abs=5e-5)


@every_size
def test_torchs_zbv_is_torch_zbv_and_not_that_of_the_paper(p: int, m: int) -> None:
    """Also with fewer micro-batches than 2p - 1, of which torch leaves out those that there are not."""
    problem = unit(placement.v_shape(p), m)
    torchs = converted(multi("ScheduleZBVZeroBubble", p, m), m)
    assert torchs.orders == HEURISTICS["ZBVZeroBubble"].order(problem).orders
    if (p, m) == (4, 4):  # with as many micro-batches as devices torch's takes 11 % longer
        paper = run(problem, HEURISTICS["zbv"].order(problem))
        assert (run(problem, torchs).makespan_ticks, paper.makespan) == (30, 27)


def test_torchs_overlapped_action_becomes_one_slot() -> None:
    orders = converted(multi("ScheduleDualPipeV", 2, 4), 4).orders
    assert {len(s) for order in orders for s in order} == {1, 2}
    assert all(s[0].kind is F and s[-1].kind is BW for order in orders for s in order if len(s) == 2)
