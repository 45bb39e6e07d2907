"""V-Half, V-Min and the block of most memory that fits (`v-block`): schedules of the V family, with closed forms.

Sections 3 and 4 of arXiv 2405.15362; `heuristics/building/v_blocks.py` makes their orders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from heuristics.building.drawing_together import TimeSlot
from heuristics.building.requirements import equal_costs
from heuristics.building.v_blocks import PERIOD, V_HALF, V_MIN, roomiest, v_block
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


class _ClosedFormSlots(NamedTuple):
    """Numbers of a closed form, for passes that all take one slot.

    `makespan` and `span` are the slots of each in which the busiest device computes nothing, `live[d]` the most
    activations of a chunk in memory of device d.
    """

    makespan: TimeSlot
    span: TimeSlot
    live: tuple[int, ...]


def _zb_slots(p: int) -> _ClosedFormSlots:
    return _ClosedFormSlots(p - 1, 0, (2 * p,) * p)


def _half_slots(p: int) -> _ClosedFormSlots:
    """Return idle slots and activations of V-Half: the paper's bubble rate of about p/2m, exact for its order."""
    bubble = max(p - 1, 3 * p - (4 if p % 2 else 7))
    return _ClosedFormSlots(bubble, bubble, (2 * ((p + 2) // 2),) * p)


def _min_slots(p: int) -> _ClosedFormSlots:
    """Return idle slots and activations of V-Min: the paper's bubble rate of about 2p/3m, exact for its order.

    Device 0 may have one activation less.
    """
    bubble, most = 4 * p - (5 if p % 3 else 7) if p > 1 else 0, 2 * ((p + 4) // 3)
    return _ClosedFormSlots(bubble, bubble, (most - (p % 3 == 2), *(most,) * (p - 1)))


def _closed_form(problem: Problem, slots: Callable[[int], _ClosedFormSlots], unlimited: bool) -> ClosedForm | None:
    cost, m, network = equal_costs(problem), problem.microbatches, problem.network
    if cost is None or not cost.F == cost.B == cost.W or m <= 2 * problem.devices:
        return None
    if unlimited and any(capacity is not None for capacity in problem.room):
        return None
    beyond, work = slots(problem.devices), PERIOD * m
    alike = len(set(network.memory_in_flight)) == 1 and not any(network.freed_by_backward)
    peak = tuple(chunks * network.memory_in_flight[0] for chunks in beyond.live) if alike else None
    return ClosedForm((work + beyond.makespan) * cost.F, (work + beyond.span) * cost.F, peak)


_BLOCKS: tuple[
    tuple[str, Callable[[Problem], Schedule], Callable[[int], _ClosedFormSlots], str, str, Callable[[int, int], int]],
    ...,
] = (
    (
        "v-half",
        partial(v_block, name="v-half", offsets=V_HALF),
        _half_slots,
        "(3p-7)F for even p > 2, (3p-4)F for odd p > 1, if F = B = W and m > 2p",
        "2*floor((p+2)/2) chunk activations",
        lambda p, _: 2 * ((p + 2) // 2),
    ),
    (
        "v-min",
        partial(v_block, name="v-min", offsets=V_MIN),
        _min_slots,
        "(4p-7)F where 3 divides p, else (4p-5)F for p > 1, if F = B = W and m > 2p",
        "2*floor((p+4)/3) chunk activations",
        lambda p, _: 2 * ((p + 4) // 3),
    ),
    (
        "v-block",
        partial(roomiest, name="v-block"),
        _zb_slots,
        "0 of span, (p-1)F of makespan, if F = B = W, m > 2p and memory is unlimited",
        "the file's capacity where a block fits it, 2p chunk activations at most",
        lambda p, _: 2 * p,
    ),
)
for _name, _order, _slots, _bubble, _peak, _most in _BLOCKS:
    HEURISTICS.register(
        Heuristic(
            name=_name,
            reference="Qi et al., Controllable Memory, arXiv 2405.15362",
            needs="v-shape placement; a backward that splits",
            bubble=_bubble,
            peak=_peak,
            order=_order,
            closed_form=partial(_closed_form, slots=_slots, unlimited=_name == "v-block"),
            ceiling=_most,
            priorities=Priorities(long_problems={"v-half": 3, "v-min": 4}.get(_name)),
        )
    )
