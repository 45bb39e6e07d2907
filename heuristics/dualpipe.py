"""DualPipe: micro-batches enter at both ends; forwards of one direction overlap backwards of the other.

Every device has two stages, one of each direction. The eight steps that make up its order are here; DualPipeV runs the
same ones on half the devices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from heuristics.building.requirements import chunk_peaks, equal_costs, split_backward, two_directions
from heuristics.building.task_interleaving import interleaved
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.deadline import SHORT, asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.schedule.schedule import Schedule, overlapped


class Direction(NamedTuple):
    """One of a device's two stages, and the micro-batches that traverse it."""

    stage: StageId
    microbatches: range


def dualpipe(problem: Problem) -> Schedule:
    """Return DualPipe's order; a device's direction 0 enters at the nearer end, from which ranks count.

    Raises `DoesNotApply` unless backwards split, each stage is on two devices, one chain in each direction, and the
    number of micro-batches is even and at least 2p.
    """
    split_backward(problem)
    half, microbatches_of = _pairs_of_microbatches(problem) // 2, problem.microbatches_of
    orders: list[tuple[Slot, ...]] = []
    for d, (down, up) in asking(enumerate(problem.placement.stages_of)):
        near, far = (down, up) if d < half else (up, down)
        rank = min(d, 2 * half - 1 - d)
        orders.append(
            tuple(eight_steps(Direction(near, microbatches_of[near]), Direction(far, microbatches_of[far]), rank, half))
        )
    return interleaved(problem, Schedule(tuple(orders), "dualpipe"))


def _pairs_of_microbatches(problem: Problem) -> int:
    """Return the number of devices, which is the least number of pairs of micro-batches.

    Raises `DoesNotApply` unless placement and micro-batches are those of DualPipe.
    """
    p, m = two_directions(problem), problem.microbatches
    if m % 2 or m < 2 * p:
        raise DoesNotApply(f"needs an even number of micro-batches, at least {2 * p} (two a device); found {m}")
    return p


def eight_steps(near: Direction, far: Direction, rank: int, half: int) -> Iterator[Slot]:
    """Yield the slots of a device in order, in DualPipe's eight steps.

    `rank` (from 0) of `half` devices counts from the end at which micro-batches of `near` enter. Each direction has at
    least 2 `half` micro-batches. A step is a number of rounds, written as text: 0 and 1 are the directions `near` and
    `far`, B is the split backward, BW the full one, and W the oldest weight pass that was postponed.
    """
    inner, outer = rank + 1, half - 1 - rank
    main = len(near.microbatches) - 2 * half + inner
    # The innermost device's first pair is not overlapped: apart, its forward is sent on sooner.
    opening = "F0 BW1 F1&BW0" if outer == 0 else "F0&BW1 F1&BW0"
    backwards = [f"{kind}{1 - turn % 2}" for turn, kind in enumerate(["BW"] * inner + ["B"] * inner)]
    steps = [
        (2 * outer, "F0"),  # step 1
        (inner, "F0 F1"),  # step 2
        (outer, "B1 W F1"),  # step 3
        (1, opening),  # step 4, the main one
        (main - 1, "F0&BW1 F1&BW0"),
        (outer, "BW1 F1&BW0"),  # step 5
        (1, " ".join(backwards)),  # step 6: directions 1 and 0 in turn, the second half of the backwards split
        (outer, "W B0"),  # step 7
        (inner, "W"),  # step 8
    ]
    return _slots((near, far), (slot for rounds, text in steps for slot in rounds * text.split()))


def _slots(directions: tuple[Direction, Direction], texts: Iterable[str]) -> Iterator[Slot]:
    """Yield the slots of texts like `F0&BW1` (kind and direction), with each direction's next micro-batch.

    `W` is the oldest weight pass of the split backwards so far.
    """
    forwards, backwards = ([iter(direction.microbatches) for direction in directions] for _ in range(2))
    put_off: deque[Pass] = deque()

    def next_pass(text: str) -> Pass:
        if text == "W":
            return put_off.popleft()
        kind, direction = PassKind(text[:-1]), int(text[-1])
        microbatch = next((forwards if kind is F else backwards)[direction])
        if kind is B:
            put_off.append(Pass(W, directions[direction].stage, microbatch))
        return Pass(kind, directions[direction].stage, microbatch)

    for text in asking(texts, SHORT):
        forward, _, backward = text.partition("&")
        first = next_pass(forward)
        yield overlapped(first, next_pass(backward)) if backward else (first,)


def eight_steps_form(problem: Problem, half: int) -> ClosedForm | None:
    """Return makespan, span and peaks of the eight steps for equal stages with W <= B <= F and blocks >= F+W.

    None otherwise, if BW is not B+W or blocks differ, and without blocks unless F = B. `half` is the number of ranks:
    half of the devices in DualPipe, all in DualPipeV. The paper's formula is the idle time of the innermost devices,
    which overlap the most pairs: all but 2 half + 1. It takes F and B to be equal; where B < F, F replaces B in it.
    Without blocks the passes of a pair run one after the other, and with F = B a forward is sent on before the backward
    overlapped with it.
    """
    cost, given = equal_costs(problem), {*problem.pipeline.blocks.values()}
    if cost is None or len(given) > 1 or cost.BW != cost.B + cost.W or not cost.W <= cost.B <= cost.F:
        return None
    pairs, pair = sum(map(len, problem.microbatches_of)) // problem.devices, cost.F + cost.BW
    if given:
        (block,) = given
        if block < cost.F + cost.W:
            return None
        work = (2 * half + 1) * pair + (pairs - 2 * half - 1) * block
        makespan = work + (half - 1) * (block + cost.F - 2 * cost.W)
    elif cost.F == cost.B:
        makespan = pairs * pair + (half - 1) * (cost.F + cost.B - cost.W)
    else:
        return None
    peak = chunk_peaks(problem, [2 * half + 1] * problem.devices) if not problem.network.backward_takes_memory else None
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


def _closed_form(problem: Problem) -> ClosedForm | None:
    return eight_steps_form(problem, _pairs_of_microbatches(problem) // 2)


HEURISTICS.register(
    Heuristic(
        name="dualpipe",
        reference="DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, section 3.2.1; code: deepseek-ai/DualPipe",
        needs="bidirectional placement, an even number of devices, an even number of "
        "micro-batches, at least two a device; a backward that splits",
        bubble="(p/2-1)(F&B + BW-3W) on the innermost devices, if F = B >= W, BW = B+W and F&B >= BW; "
        "(p/2-1)(F+B-W) without F&B",
        peak="p+1 on every device",
        order=dualpipe,
        closed_form=_closed_form,
        same_for_all_costs=True,
    )
)
