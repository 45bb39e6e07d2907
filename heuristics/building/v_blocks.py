"""The V family: one block of passes repeated every period over a V of stages; its offsets trade memory for time.

Sections 3 and 4 of arXiv 2405.15362. A micro-batch traverses four legs over the devices: forward down and up, backward
down and up. Every pass takes one slot of equal length: orders do not depend on times, as in the authors' generator.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TypeAlias

from heuristics.building.drawing_together import Row, TimeSlot, draw_together, most_live
from heuristics.building.requirements import split_backward, v_of_stages
from pipesched.deadline import SHORT, asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.placement import v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MicrobatchId
from pipesched.problem.stage_columns import stages_of
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.simulation.simulator import simulate

# A leg: an index in `LEGS`.
Leg: TypeAlias = int
LEGS = F_DOWN, F_UP, B_DOWN, B_UP = range(4)
PERIOD = 6  # slots: F, B and W of two chunks

Offsets = tuple[TimeSlot, TimeSlot]  # slots from one device to the next, on the legs down and on the legs up

# Memory as a share of 1F1B's: 1 (zero bubble), 2/3, 1/2 and 1/3 (the least). It depends on the sum of the offsets; from
# p = 4 on no sum is 5.
V_ZB, V_TWO_THIRDS, V_HALF, V_MIN = (4, 2), (3, 1), (2, 1), (1, 1)


def on_leg(devices: int, leg: Leg, device: DeviceId, microbatch: MicrobatchId) -> Pass:
    """Return the pass (F or B) of a micro-batch on a device and leg; stages run down the devices and up again.

    A leg is `F_DOWN` (0), `F_UP`, `B_DOWN` or `B_UP`; backwards go down the stages that forwards went up.
    """
    stage = device if leg in (F_DOWN, B_UP) else 2 * devices - 1 - device
    return Pass(F if leg in (F_DOWN, F_UP) else B, stage, microbatch)


def v_block(problem: Problem, name: str, offsets: Offsets) -> Schedule:
    """Return the order of a block with these offsets, repeated for every micro-batch, weight passes in the gaps.

    `offsets` are the slots from one device to the next on the legs down, and on the legs up. Warm-up and cool-down are
    compacted within the memory peak of the repeated block. Raises `DoesNotApply` unless backwards split and device d
    has stages d and 2p-1-d.
    """
    split_backward(problem)
    return schedule_of(_orders(v_of_stages(problem), problem.microbatches, offsets), name)


@lru_cache(maxsize=512)
def _orders(p: int, m: int, offsets: Offsets) -> tuple[tuple[Pass, ...], ...]:
    """Return the order of every device for p devices and m micro-batches; cached, as nothing else matters.

    Raises `DoesNotApply` if passes of a block would always meet on a device.
    """
    problem = _unit_problem(p, m)
    starts = block(p, *offsets)
    rows = [_with_weights(row) for row in _repeated(starts, m)]
    begin, end = _steady(problem, rows)  # warm-up and cool-down first, every weight pass where the block has it ...
    draw_together(problem, rows, lambda at: at < begin or at > end, displace_weights=False)
    rows = _squeezed(problem, rows)
    begin, end = _steady(problem, rows)  # ... then the cool-down, where weight passes give up their slots
    draw_together(problem, rows, lambda at: at > max(begin, end), displace_weights=True)
    return tuple(tuple(q for q in _with_weights(row) if q is not None) for row in asking(rows))


def _unit_problem(p: int, m: int) -> Problem:
    """Return the problem of a V of stages whose passes all take one tick, with free transfers.

    `p` is the number of devices, `m` that of micro-batches.
    """
    one = (1,) * (2 * p)
    return Problem(v_shape(p), m, stages_of(one, one, one, one))


def roomiest(problem: Problem, name: str) -> Schedule:
    """Return the order of the block with the most activations in flight that fits the capacity; V-Min if none fits.

    Raises `DoesNotApply` unless backwards split and device d has stages d and 2p-1-d.
    """
    schedule = v_block(problem, name, V_ZB)
    for offsets in (V_TWO_THIRDS, V_HALF, V_MIN):
        if _fits(problem, schedule):
            break
        schedule = v_block(problem, name, offsets)
    return schedule


def _fits(problem: Problem, schedule: Schedule) -> bool:
    """True if every device's order fits its memory; passes of a device run one by one, so no times are needed."""
    for device, capacity in enumerate(problem.room):
        level = 0
        for p in schedule.passes_on(device):
            taken, returned = problem.network.change[p.kind, p.stage]
            level += taken
            if capacity is not None and level > capacity:
                return False
            level += returned
    return True


def block(p: int, down: TimeSlot, up: TimeSlot) -> list[list[TimeSlot]]:
    """Return the time slot of each leg on each of `p` devices, `[device][leg]`, for micro-batch 0.

    `down` and `up` are the slots from one device to the next on legs down and up. Between legs a micro-batch waits 1 to
    6 slots, so that no two passes meet on a device, modulo the period. Of all such waits, those with the fewest live
    activations are chosen, then the shortest; these are the published ones. Raises `DoesNotApply` if passes always
    meet.
    """
    found: list[tuple[int, int, list[list[int]]]] = []
    for waits in asking(product(range(1, PERIOD + 1), repeat=3)):
        turns = [0]  # where each leg begins
        for leg, wait in enumerate(waits):
            turns.append(turns[-1] + (p - 1) * (down, up)[leg % 2] + wait)
        legs = [(turn, (down, up)[leg % 2], leg % 2) for leg, turn in enumerate(turns)]
        starts = [[turn + step * (p - 1 - d if back else d) for turn, step, back in legs] for d in range(p)]
        if all(len({slot % PERIOD for slot in slots}) == len(LEGS) for slots in starts):
            alive = starts[0][B_UP] // PERIOD + 2  # micro-batches until memory neither rises nor falls
            peak = max(most_live(slots[:B_DOWN], slots[B_DOWN:], PERIOD, alive) for slots in starts)
            found.append((peak, sum(waits), starts))
    if not found:
        raise DoesNotApply(f"offsets {down} and {up}: passes meet on a device, whatever the waits between the legs")
    return min(found)[2]


def _repeated(starts: list[list[TimeSlot]], m: int) -> list[Row]:
    """Return each device's passes by slot (None: a gap): the block once for each of `m` micro-batches, a period apart.

    `starts[d][leg]` are the slots of micro-batch 0. There are no weight passes.
    """
    p = len(starts)
    rows: list[Row] = [[None] * (max(slots) + PERIOD * m) for slots in starts]
    for d, leg, j in asking(product(range(p), LEGS, range(m)), SHORT):
        rows[d][starts[d][leg] + PERIOD * j] = on_leg(p, leg, d, j)
    return rows


def _with_weights(row: Row) -> Row:
    """Return a device's slots with every W in the first gap after its B, in the order of the Bs, or at the end."""
    filled: Row = []
    ready: list[Pass] = []  # the weight passes that may run, and how many of them did
    done = 0
    for p in asking(row, SHORT):
        if p is not None and p.kind is B:
            ready.append(Pass(W, p.stage, p.microbatch))
        elif p is None and done < len(ready):
            p, done = ready[done], done + 1  # noqa: PLW2901
        filled.append(p)
    return filled + ready[done:]


def _steady(problem: Problem, rows: list[Row]) -> tuple[tuple[TimeSlot, DeviceId], tuple[TimeSlot, DeviceId]]:
    """Return begin and end of the steady state as (slot, device), both on device 0.

    These are its first backward on the leg up, and the last micro-batch's first forward. `rows` has each device's
    passes by slot.
    """
    p, m = problem.devices, problem.microbatches
    return (rows[0].index(on_leg(p, B_UP, 0, 0)), 0), (rows[0].index(on_leg(p, F_DOWN, 0, m - 1)), 0)


def _squeezed(problem: Problem, rows: list[Row]) -> list[Row]:
    """Return the passes of `rows`, each device's by slot, as early as their order and predecessors allow, without W."""
    timeline = simulate(problem, schedule_of([p for p in row if p is not None] for row in asking(rows)))
    squeezed: list[Row] = []
    for d in range(problem.devices):
        kept = [p for p in asking(timeline.schedule.passes_on(d), SHORT) if p.kind is not W]
        row: Row = [None] * (timeline.start(kept[-1]) + 1)
        for p in asking(kept, SHORT):
            row[timeline.start(p)] = p
        squeezed.append(row)
    return squeezed
