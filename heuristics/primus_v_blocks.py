"""V-Half and V-Min as AMD's Primus runs them (`v-half`, `v-min`): the paper's blocks with Primus' own compaction.

The paper's generator (arXiv 2405.15362; here `v-half`, `v-min`) compacts warm-up and cool-down device by device. Primus
goes through all slots in order, moves every pass of a slot to the first free slot on its device within the peak memory
of the block, and repeats that for the passes after the last forward, there ignoring memory and with weight passes last.
Slots have one length: orders do not depend on times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import count
from typing import NamedTuple

from heuristics.building.drawing_together import TimeSlot
from heuristics.building.requirements import chunk_peaks, equal_costs, split_backward, v_of_stages
from heuristics.building.v_blocks import B_UP, F_UP, LEGS, PERIOD, V_HALF, V_MIN, Offsets, block, on_leg
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.deadline import asking
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule, schedule_of

_TAKEN = {F: 1, B: 0, W: -1}  # activations of a chunk


def primus_v(problem: Problem, name: str, offsets: Offsets) -> Schedule:
    """Return the order of every device, for a block of these offsets; equal to Primus' own from two devices on.

    `offsets` are the slots from one device to the next on the legs down, and on the legs up. Raises `DoesNotApply`
    unless backwards split and device d has stages d and 2p-1-d.
    """
    split_backward(problem)
    return schedule_of(_orders(v_of_stages(problem), problem.microbatches, offsets), name)


@lru_cache(maxsize=512)
def _orders(p: int, m: int, offsets: Offsets) -> tuple[tuple[Pass, ...], ...]:
    slots = _SlotTable(p, m, offsets)
    slots.add_weight_passes()
    slots.draw_together()
    slots.draw_cool_down_together()
    return tuple(tuple(q for _, q in sorted(row.items())) for row in slots.rows)


class _SlotTable:
    """Table of slots of equal length: `rows[d]` has each pass of device d by its slot, `at` the slot of each pass.

    Slots count from 0. `cool_down` are the passes after a device's last forward on the leg up. `live[d][t]` is the
    number of activations of one chunk on device d after slot t.
    """

    def __init__(self, p: int, m: int, offsets: Offsets) -> None:
        self.p, self.m = p, m
        self.rows: list[dict[int, Pass]] = [
            {slots[leg] + PERIOD * j: on_leg(p, leg, device, j) for leg in LEGS for j in range(m)}
            for device, slots in asking(enumerate(block(p, *offsets)))
        ]
        self.at = {q: slot for row in self.rows for slot, q in row.items()}
        self.live: list[list[int]] = []
        self.cool_down: set[Pass] = set()

    def add_weight_passes(self) -> None:
        """Put each W into the first free slot after its B, and set `live` and `cool_down`.

        The cool-down are the passes after a device's last forward on the leg up.
        """
        for device, row in asking(enumerate(self.rows)):
            waiting: deque[Pass] = deque()
            cooling, level, levels = False, 0, list[int]()
            first, last = on_leg(self.p, B_UP, device, 0), on_leg(self.p, F_UP, device, self.m - 1)
            slot, end = 0, max(row) + 2
            while slot <= end or waiting:
                if slot not in row and waiting:
                    self._put(device, slot, waiting.popleft())
                q = row.get(slot)
                if q is not None:
                    level += _TAKEN[q.kind]
                    if cooling:
                        self.cool_down.add(q)
                    if q.kind is B:
                        waiting.append(q._replace(kind=W))
                    # With few micro-batches the first backward up follows the last forward, and is not yet cool-down.
                    cooling = (cooling or q == last) and q != first
                levels.append(level)
                slot += 1
            self.live.append(levels)

    def draw_together(self) -> None:
        """Move each pass, in order of slots, to the first free slot that keeps to the block's memory peak.

        The peak is the largest number of activations that any device has before the moves.
        """
        most = max(map(max, self.live))
        for slot, device, q in self._by_slot():
            level, taken = self.live[device], _TAKEN[q.kind]
            fits = (new for new in self._free(device, q) if taken <= 0 or max(level[new:slot], default=0) < most)
            new = min(next(fits), slot)
            level[new:slot] = [one + taken for one in level[new:slot]]
            self._move(device, q, slot, new)

    def draw_cool_down_together(self) -> None:
        """Move each F and B of the cool-down to its first free slot, then each W; memory does not count here."""
        weights: list[tuple[int, Pass]] = []
        for slot, device, q in self._by_slot():
            if q not in self.cool_down:
                continue
            if q.kind is W:
                weights.append((device, q))
                del self.rows[device][slot]
            else:
                self._move(device, q, slot, min(next(self._free(device, q)), slot))
        for device, q in weights:
            self._put(device, next(self._free(device, q)), q)

    def _by_slot(self) -> Iterator[tuple[TimeSlot, DeviceId, Pass]]:
        """Yield (slot, device, pass) in ascending order of slots, then devices.

        The caller may move passes to earlier slots meanwhile.
        """
        for slot in asking(range(1 + max(map(max, self.rows)))):
            for device, row in enumerate(self.rows):
                if slot in row:
                    yield slot, device, row[slot]

    def _free(self, device: DeviceId, q: Pass) -> Iterator[TimeSlot]:
        """Yield the free slots of a device after all predecessors of pass `q`, in order and without end."""
        return (slot for slot in count(self._earliest(q)) if slot not in self.rows[device])

    def _earliest(self, q: Pass) -> TimeSlot:
        """Return the first slot after all predecessors of pass `q` and the previous micro-batch's pass.

        It is 1 without any.
        """
        needed = [q._replace(microbatch=q.microbatch - 1)] if q.microbatch else []
        if q.kind is F and q.stage:
            needed.append(q._replace(stage=q.stage - 1))
        if q.kind is B:
            last = q.stage == 2 * self.p - 1
            needed.append(q._replace(kind=F) if last else q._replace(stage=q.stage + 1))
        if q.kind is W:
            needed.append(q._replace(kind=B))
        return 1 + max((self.at[one] for one in needed), default=0)

    def _move(self, device: DeviceId, q: Pass, slot: TimeSlot, new: TimeSlot) -> None:
        if new != slot:
            del self.rows[device][slot]
            self._put(device, new, q)

    def _put(self, device: DeviceId, slot: TimeSlot, q: Pass) -> None:
        self.rows[device][slot] = q
        self.at[q] = slot


def _half_beyond(p: int) -> TimeSlot:
    """Return the slots of V-Half's span beyond the work: the paper's rate of about p/2m, exact for this order."""
    return max(0, 3 * p - (4 if p % 2 else 7))


def _min_beyond(p: int) -> TimeSlot:
    """Return the slots of V-Min's span beyond the work: the paper's bubble rate of about 2p/3m, exact for this order.

    One slot less than the paper's own order where p mod 3 is 2.
    """
    return max(0, 4 * p - (7, 5, 6)[p % 3])


def _closed_form(problem: Problem, beyond: Callable[[int], TimeSlot], live: Callable[[int], int]) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m <= 2 * p or any(problem.network.freed_by_backward):
        return None
    peak = chunk_peaks(problem, (live(p),) * p)
    if not cost.F == cost.B == cost.W:
        return ClosedForm(peak=peak)
    work, idle = PERIOD * m, beyond(p)
    return ClosedForm(makespan=(work + max(idle, p - 1)) * cost.F, span=(work + idle) * cost.F, peak=peak)


def _half_live(p: int) -> int:
    return 2 * ((p + 2) // 2)


def _min_live(p: int) -> int:
    return 2 * ((p + 4) // 3)


class _Block(NamedTuple):
    name: str
    offsets: Offsets
    beyond: Callable[[int], TimeSlot]
    live: Callable[[int], int]
    bubble: str
    peak: str


_BLOCKS = (
    _Block(
        "v-half",
        V_HALF,
        _half_beyond,
        _half_live,
        "(3p-7)F for even p > 2, (3p-4)F for odd p > 1, if F = B = W and m > 2p",
        "2*floor((p+2)/2) chunk activations",
    ),
    _Block(
        "v-min",
        V_MIN,
        _min_beyond,
        _min_live,
        "(4p-7)F, (4p-5)F or (4p-6)F where p mod 3 is 0, 1 or 2, if F = B = W and m > 2p",
        "2*floor((p+4)/3) chunk activations",
    ),
)
for _one in _BLOCKS:
    HEURISTICS.register(
        Heuristic(
            name=f"primus-{_one.name}",
            reference=f"AMD Primus, {_one.name}; blocks of Qi et al., Controllable Memory, arXiv 2405.15362",
            needs="v-shape placement; a backward that splits",
            bubble=_one.bubble,
            peak=_one.peak,
            order=partial(primus_v, name=f"primus-{_one.name}", offsets=_one.offsets),
            closed_form=partial(_closed_form, beyond=_one.beyond, live=_one.live),
            same_for_all_costs=True,
        )
    )
