"""Cool-down bound: work left when a device's last forward ends must still run there, and on the devices upstream.

Memory limits the work that is left. The more of it are whole backwards, the longer they occupy an upstream device,
which cannot begin any of them before the gradients arrive; the less of it are whole backwards, the more of the device's
work came before. The bound is the least over the numbers of backwards that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipesched.deadline import asking
from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount, counted
from pipesched.problem.passes import W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.problem.view import PipelineView
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import ReturnTo
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.idle_time.busy_interval import BusyIntervals
from solver.bounds.analytic.idle_time.knapsack import most_value
from solver.bounds.analytic.modes.counts import Numbers
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class CoolDownParams:
    """Limits on the combinations that the cool-down bound enumerates."""

    most_pairs: int = tuned(
        2_000, "pairs of numbers of backwards left on a device; beyond that nothing is claimed, nor by the check",
        100, 10**5,
    )  # fmt: skip
    most_pairs_of_all: int = tuned(20_000, "pairs on all devices, a knapsack each: half a second", 100, 10**6)


_PARAMS = CoolDownParams()


_NAME = "cool-down"


class _Left(NamedTuple):
    """All combinations of backwards that may be left when a device's last forward ends; arrays with an entry for each.

    `first`: number of micro-batches whose gradient pass (B or BW) on the device's first stage is left; `last`: number
    of those among them whose gradient pass on the device's last stage, hence every backward on the device, is left.
    `work`: the most ticks of all passes left on the device, weight passes included.
    """

    first: Numbers
    last: Numbers
    work: Numbers


class _Returns(NamedTuple):
    """An upstream device `device` to which micro-batches return from the device D that the bound is about.

    `before` are its stages that micro-batches traverse before they reach D, `within` its stages between the first and
    last stage of D, in chain order. `head` is the least ticks from the start that counts (time 0, or the start of this
    device under the span) to D's first pass; the end that counts is that of the last backward on the stage `gate`.
    """

    device: DeviceId
    before: list[StageId]
    within: list[StageId]
    head: Ticks
    gate: StageId


def cool_down(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return the cool-down bound of each device that exactly one chain visits.

    It is by the work left at the end of its last forward. That work still has to run there and on the devices upstream;
    the certificate is the strongest over these devices. Empty where passes can overlap in blocks. There is none for the
    chain's first device, nor for a device with too many combinations. The problem must be plain.
    """
    paths, found = Paths(problem), list[Certificate]()
    if paths.view.blocks:
        return []
    for device, chains in visited(paths.view):
        if len(chains) == 1:
            certificates = _of_device(problem, paths, objective, device, chains[0])
            found += sorted(certificates, key=lambda certificate: -certificate.value_ticks)[:1]
    return found


def _of_device(
    problem: Problem, paths: Paths, objective: Objective, device: DeviceId, stages: list[StageId]
) -> Iterator[Certificate]:
    left = _left(paths.view, device, stages)
    if left is None:
        return
    busy = BusyIntervals(problem, paths, device, [stages])
    idle = (busy.idle if busy.apart else 0) + busy.forced_round_trips.trips * busy.forced_round_trips.gap.idle
    for back in asking(_returns(paths, objective, stages)):
        path, work = _path_back(paths, stages, back, left), _work_there(paths, stages, back, left)
        values = back.head + busy.work + idle - left.work + np.maximum(path, work)
        at = int(np.argmin(values))
        least = least_from(int(values[at]), largest_denominator(problem))
        text = f"{_begins(problem, back, device)} {_leaves(problem, busy.work, idle, stages, left, at)} "
        if path[at] >= work[at]:
            text += f"From there the way back of the last of them takes {amount(problem, int(path[at]))}"
        else:
            text += f"From there device {back.device} needs {amount(problem, int(work[at]))} for their backwards"
        text += f": {amount(problem, least)}, and no less with other numbers of them."
        yield Certificate(_NAME, least, text, device, ReturnTo(device, back.device))


def _left(view: PipelineView, device: DeviceId, stages: Sequence[StageId]) -> _Left | None:
    """Return all combinations of backwards that may be left within the device's memory; None if there are too many.

    None also if the memory has no room for a single micro-batch on all of `stages`, the device's stages in chain order.
    """
    room, memory_in_flight = view.room[device], view.memory_in_flight
    microbatches = len(view.microbatches_of[stages[0]])
    later = sum(memory_in_flight[s] for s in stages[1:])
    pairs, most = list[tuple[int, int, int]](), min(_PARAMS.most_pairs, _PARAMS.most_pairs_of_all // view.devices)
    for first in asking(range(1, microbatches + 1)):
        # On a single stage `first` and `last` are equal.
        for last in range(1 if len(stages) > 1 else first, first + 1):
            free = None if room is None else room - first * memory_in_flight[stages[0]] - last * later
            if free is not None and free < 0:
                break
            if len(pairs) == most:
                return None
            pairs.append((first, last, _most_left(view, stages, first, last, free)))
    # Python's integers, so that sums may be of any size.
    return _Left(*(np.array(column, dtype=object) for column in zip(*pairs, strict=True))) if pairs else None


def _most_left(view: PipelineView, stages: Sequence[StageId], first: int, last: int, room: MemorySteps | None) -> Ticks:
    """Return the most ticks of work left on a device when `first` and `last` (see `_Left`) backwards are left.

    `room` is the memory beyond what these occupy (None: unlimited); backwards of the stages between the device's first
    and last, and weight passes, can be left in it.
    """
    microbatches, ticks = len(view.microbatches_of[stages[0]]), [view.least_backward(s) for s in stages]
    items = [
        (ticks[n], view.memory_in_flight[s], first - last) for n, s in enumerate(stages) if 0 < n < len(stages) - 1
    ]
    for s in stages if view.splits else ():
        waiting = microbatches - (first if s == stages[0] else last)
        items.append((view.ticks[W, s], view.memory_until_weight[s], waiting))
    return first * ticks[0] + last * sum(ticks[1:]) + most_value(items, room)


def _returns(paths: Paths, objective: Objective, stages: Sequence[StageId]) -> Iterator[_Returns]:
    """Yield the devices that hold a stage upstream of `stages`, and so get its gradients.

    `stages` are those of a device in chain order. For the makespan time counts from 0 to the end of the chain's first
    stage, for the span from the upstream device's own start to the backward on its first stage.
    """
    placement = paths.view.placement
    chain = placement.chains[placement.chain_index[stages[0]]]
    begin, end = chain.index(stages[0]), chain.index(stages[-1])
    for other in range(placement.devices):
        before = [s for s in chain[:begin] if placement.stage_device[s] == other]
        if not before:
            continue
        within = [s for s in chain[begin:end] if placement.stage_device[s] == other]
        makespan = not objective.by_device
        gate = chain[0] if makespan else before[0]
        yield _Returns(other, before, within, paths.head[stages[0]] - paths.head[gate], gate)


def _path_back(paths: Paths, stages: Sequence[StageId], back: _Returns, left: _Left) -> Numbers:
    """Return for each combination of `left` the least ticks from the device's last forward to the end that counts.

    `stages` are the device's in chain order. The device has to run the gradient passes that are left; the last of them
    then travels back to the stage `back.gate`.
    """
    first, last, gradient = stages[0], stages[-1], paths.gradient
    of_last = np.maximum(left.last * gradient[last], paths.round_trip[last] + gradient[last])
    of_all = left.first * gradient[first] + left.last * sum(gradient[s] for s in stages[1:])
    found: Numbers = np.maximum(
        of_last + paths.tail_until(last, back.gate), of_all + paths.tail_until(first, back.gate)
    )
    return found


def _work_there(paths: Paths, stages: Sequence[StageId], back: _Returns, left: _Left) -> Numbers:
    """Return the least ticks from the device's last forward to the end of the upstream device.

    They are for each combination of `left`. The upstream device must run its backwards of all micro-batches that are
    left, none before the gradient arrives. It has stages `back.before` and `back.within` on their path (`_Returns`). A
    gradient that has passed the device's last stage reaches `back.before` sooner than one that has not, and which
    passes `back.within` first.
    """
    first, last = stages[0], stages[-1]

    def arrives(start: int, there: Sequence[int]) -> int:
        return paths.gradient[start] + paths.back[start] - paths.back[there[-1]] - paths.gradient[there[-1]]

    before, within = (sum(paths.backward[s] for s in there) for there in (back.before, back.within))
    parts = [
        (arrives(first, back.before), (left.first - left.last) * before),
        (arrives(last, back.before), left.last * before),
    ]
    if back.within:
        parts.append((arrives(last, back.within), left.last * within))
    needs = [np.array(since + sum(work for arrival, work in parts if arrival >= since)) for since, _ in parts]
    found: Numbers = np.maximum.reduce(needs)
    return found


def _begins(problem: Problem, back: _Returns, device: DeviceId) -> str:
    since = f" after device {back.device} began" if problem.objective.by_device else ""
    return f"Device {device} cannot begin before {amount(problem, back.head)}{since}."


def _leaves(problem: Problem, work: Ticks, idle: Ticks, stages: Sequence[StageId], left: _Left, at: int) -> str:
    """Return a certificate's sentence on the work left when a device's last forward ends, and its backwards.

    Of the device's `work` at most `left.work[at]` ticks are left, for the combination at index `at`, and it idles
    `idle` ticks before.
    """
    first, last = int(left.first[at]), int(left.last[at])
    some = f" and {last} at stage {stages[-1]}" if len(stages) > 1 else ""
    idles = f", and it idles {amount(problem, idle)} before" if idle else ""
    most = amount(problem, int(left.work[at]))
    return (
        f"When its last forward ends with {counted(first, 'gradient')} at stage {stages[0]}{some} to come, memory "
        f"leaves at most {most} of its {amount(problem, work)} of work{idles}."
    )


BOUNDS.register(Bound(_NAME, cool_down, rank=7, reads_memory=True))
