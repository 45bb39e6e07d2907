"""The interleaved family: VPP, breadth-first, zero bubble, overlapped, Kimi K2, generalised; by hand and by formula."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS, schedule_named
from heuristics.generalised_interleaved import default_group, generalised_interleaved
from pipesched.errors import BadInput, DoesNotApply
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import slot_text
from tests.heuristics.test_every_heuristic import alike, run, uneven
from tests.support.in_turn import in_turn
from tests.support.makers import measured

OVERLAPPED = ("1f1b-overlap", "interleaved-1f1b-overlap", "kimi-k2")


def chunks(p: int, v: int, m: int, f: int = 1, b: int = 1, w: int | None = 1, block: int | None = None) -> Problem:
    """Equal chunks on an interleaved placement, with overlapped blocks if `block` is given."""
    one = alike(placement.interleaved(p, v), m, f, b, w)
    return one if block is None else one.with_stages(blocks=(Blocks(block),) * (p * v))


def line(p: int, m: int, f: int, b: int, block: int | None) -> Problem:
    one = alike(placement.linear(p), m, f, b, None)
    return one if block is None else one.with_stages(blocks=(Blocks(block),) * p)


def row(name: str, problem: Problem, device: int) -> str:
    return " ".join(map(slot_text, HEURISTICS[name].order(problem).orders[device]))


def test_orders_by_hand() -> None:
    two = chunks(2, 2, 2)
    assert row("looped-bfs", two, 0) == "F0.0 F0.1 F2.0 F2.1 BW2.1 BW2.0 BW0.1 BW0.0"
    assert row("interleaved-zb", two, 0) == "F0.0 F0.1 F2.0 F2.1 B2.0 W2.0 B2.1 W2.1 B0.0 W0.0 B0.1 W0.1"
    assert row("interleaved-zb", two, 1) == "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 W3.0 B1.0 W3.1 B1.1 W1.0 W1.1"
    four = chunks(2, 2, 4)
    steady = "F1.2&BW3.0 F1.3&BW3.1"
    assert row("interleaved-1f1b-overlap", four, 1).startswith("F1.0 F1.1 F3.0 F3.1&BW3.0 F1.2&BW3.1 F1.3&BW1.0")
    assert steady not in row("interleaved-1f1b-overlap", four, 1)
    assert row("interleaved-1f1b-overlap", four, 1).endswith("F3.3&BW3.2 BW3.3 BW1.2 BW1.3")
    assert row("kimi-k2", four, 1).endswith("F3.3&BW3.2 B3.3 W3.3 B1.2 W1.2 B1.3 W1.3")


def test_generalised_order_by_hand() -> None:
    """Groups of one on two devices run depth first; unsplit backwards stay whole."""
    assert row("generalised-interleaved", chunks(2, 2, 2), 1) == (
        "F1.0 F3.0 B3.0 W3.0 F1.1 B1.0 W1.0 F3.1 B3.1 W3.1 B1.1 W1.1"
    )
    whole = HEURISTICS["generalised-interleaved"].order(chunks(2, 2, 2, 1, 2, None))
    assert {p.kind for p in whole.passes()} == {F, BW}


@pytest.mark.parametrize("name", OVERLAPPED)
@pytest.mark.parametrize("p", (*range(1, 6), 8))
def test_paired_slots_hold_two_microbatches_and_blocks_of_any_length_run(name: str, p: int) -> None:
    random = Random(f"{name} {p}")
    for m, v in product(sorted({1, 2, p, p + 1, random.randint(1, 3 * p), 3 * p}), (1, 2, 3)):
        where = placement.linear(p) if name == "1f1b-overlap" else placement.interleaved(p, v)
        problem = uneven(where, m, random, split=random.random() < 0.5)
        blocks = tuple(random.randint(0, 20) for _ in range(where.stages))
        problem = problem.with_stages(blocks=[*map(Blocks, blocks)])
        schedule = HEURISTICS[name].order(problem)
        measured(problem, schedule)
        pairs = [slot for order in schedule.orders for slot in order if len(slot) == 2]
        assert all(slot[0].microbatch != slot[-1].microbatch for slot in pairs)
        assert pairs or m < 2 * p


@pytest.mark.parametrize("p", (*range(1, 6), 8))
def test_every_group_size_is_free_of_deadlock(p: int) -> None:
    random = Random(p)
    for m, v in product(sorted({1, p + 1, random.randint(1, 3 * p)}), (1, 2, 3)):
        problem = uneven(placement.interleaved(p, v), m, random, split=random.random() < 0.5)
        for g in range(-(-p // 2), p + 1):
            measured(problem, generalised_interleaved(problem, g))


def test_group_sizes_out_of_range_are_refused() -> None:
    for g in (0, 1, 2, 6):
        with pytest.raises(DoesNotApply, match=f"found {g}"):
            generalised_interleaved(chunks(5, 2, 10), g)


@pytest.mark.parametrize("name", OVERLAPPED)
def test_closed_forms_with_blocks_are_what_the_simulator_finds(name: str) -> None:
    random, held = Random(name), 0
    for p, v, rounds in product((1, 2, 3, 5), (1, 2, 3), (1, 2, 4)):
        f, b, w = (random.randint(0, 9) for _ in range(3))
        block = random.choice((max(f, b + w), b + 2 * w, f + b + w, random.randint(0, 30)))
        problem = chunks(p, v, rounds * p, f, b, w if v > 1 else None, block)
        if name == "1f1b-overlap":
            problem = line(p, rounds * p + random.randint(0, 2), f, b, block)
        form, found = HEURISTICS[name].closed_form(problem), run(problem, name)
        if form is not None:
            held += 1
            assert (form.makespan, form.span, form.peak) == (found.makespan_ticks, found.span_ticks, found.peak_quanta)
    assert held > 15


@pytest.mark.parametrize("p", (2, 4, 8))
@pytest.mark.parametrize("v", (2, 3))
def test_bubbles_at_unit_times(p: int, v: int) -> None:
    """In chunk times: VPP and BFS (p-1)(F+BW) = 3(p-1), zero bubble (p-1)(F+B-W) = p-1, generalised in between."""
    problem, load = chunks(p, v, 4 * p), 4 * p * v * 3
    assert run(problem, "interleaved-1f1b").makespan_ticks == load + 3 * (p - 1)
    assert run(problem, "looped-bfs").makespan_ticks == load + 3 * (p - 1)
    assert run(problem, "interleaved-zb").makespan_ticks == load + p - 1
    for g in range(p // 2, p + 1):
        if (4 * p) % g == 0:
            found = measured(problem, generalised_interleaved(problem, g))
            assert found.makespan_ticks == load + 2 * (p - 1) + (v - 1) * (p - g)
            assert max(found.peak_quanta) == 4 * ((v - 1) * g + p)


@pytest.mark.parametrize(
    ("times", "group"),
    [((1, 1, 1), 4), ((1, 2, None), 6), ((1, 3, 1), 5), ((5, 1, 1), 6), ((1, 1, 0), 4), ((0, 1, 0), 8), ((0, 0, 0), 4)],
)
def test_default_group_covers_the_way_around(times: tuple[int, int, int | None], group: int) -> None:
    """g(F+B+W) >= 8F and 8B, with BW for B where it does not split; 4 to 8."""
    f, b, w = times
    assert default_group(chunks(8, 2, 8, f, b, w)) == group


# Four devices, two chunks, F 1, B 2, 16 micro-batches: the makespan by transfer and group, by another program.
GROUPS = {
    Fraction(1, 2): {4: 112, 6: 110, 8: 108, 16: 108},
    Fraction(1): {4: 119, 6: 117, 8: 111, 16: 111},
    Fraction(2): {4: 151, 6: 141, 8: 130, 16: 123},
}


@pytest.mark.parametrize("transfer", GROUPS)
def test_groups_of_microbatches_hide_transfers(transfer: Fraction) -> None:
    """Times in half ticks."""
    one = chunks(4, 2, 16, 2, 4, None)
    problem = one.with_stages(transfer=(int(2 * transfer),) * 8)
    for group, value in GROUPS[transfer].items():
        assert run(problem, f"interleaved-1f1b:{group}").makespan_ticks == 2 * value
    assert (
        schedule_named("interleaved-1f1b:4").order(problem).orders
        == HEURISTICS["interleaved-1f1b"].order(problem).orders
    )


def test_a_group_of_twice_the_devices_holds_more() -> None:
    problem = chunks(4, 2, 16, 1, 2, None)
    peaks = [run(problem, f"interleaved-1f1b:{group}").peak_quanta[0] for group in (4, 8, 16)]
    assert peaks == [each * problem.network.memory_in_flight[0] for each in (11, 15, 23)]


@in_turn("m", range(1, 15))
@in_turn("group", range(1, 16))
def test_groups_that_megatron_refuses_do_not_apply(m: int, group: int) -> None:
    """Its two errors: a group outside of p to m, and a rest of 1 to p - 1 micro-batches; all others run to their end."""
    problem = chunks(4, 2, m)
    refused = group > m or group < 4 or 0 < m % group < 4
    if refused:
        with pytest.raises(DoesNotApply):
            schedule_named(f"interleaved-1f1b:{group}").order(problem)
    else:
        assert run(problem, f"interleaved-1f1b:{group}").makespan_ticks > 0


@pytest.mark.parametrize("name", ["gpipe:4", "interleaved-1f1b:", "interleaved-1f1b:x", "interleaved-1f1b:0", "none:4"])
def test_a_parameter_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        schedule_named(name)
