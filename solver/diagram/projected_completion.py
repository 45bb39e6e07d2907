"""Completion bounds from smaller diagrams: cost-to-go over few stages, looked up for orders over more stages.

An order over more stages contains an order over fewer of them. The cost-to-go of the latter is also one of the whole
order: its micro-batches have done the same steps on the fewer stages, and the time that has passed since is subtracted.
A backward pass over many stages has millions of states; one over few of them prunes nearly as many labels. With several
smaller diagrams, each must admit an order for it to be continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipesched.compiled import inlined, inner
from pipesched.int64_arrays import LARGEST, int64_array
from pipesched.problem.problem import Problem
from solver.diagram.completion import CompletionRows, Short, place_of
from solver.diagram.modelled_stages import devices_of
from solver.diagram.modelled_steps import LARGEST_KEY
from solver.diagram.steps import NEVER, NONE, NOTHING, ModelledSteps, Numbers, Steps


class SmallerDiagram(NamedTuple):
    """Modelled stages, and the completion rows of each of their states, layer by layer."""

    kept: ModelledSteps
    rest: Sequence[CompletionRows]


class ProjectedCompletions(NamedTuple):
    """Completion rows of smaller diagrams, and the mapping of states of the larger diagram to their states.

    Arrays have a row for each smaller diagram, and a column for each step or device of the larger one. By step: its
    addition to the `key` of the smaller state, and 1 if it is a step there too (`own`); for micro-batches that did this
    step last, the place of their times in a row (`slot`, -1 if they are not between steps of the smaller diagram), the
    chain's `last` step there, and the time from the end of the last own step to the end of this one (`gone`). By
    device: the place in a row of its earliest start (`free`), or -1, and of its time with all work done (`whole`), or
    -1 if other stages of the device are modelled: then that time is in `late`, and the device can start no later.
    States of diagram n after m of its `all` steps are those from `layer[since[n] + m]` on, with at most `most` rows
    each from `first` on.
    """

    key: Numbers
    own: Numbers
    slot: Numbers
    last: Numbers
    gone: Numbers
    free: Numbers
    whole: Numbers
    late: Numbers
    all: Numbers
    since: Numbers
    layer: Numbers
    keys: Numbers
    first: Numbers
    rests: Short
    most: int


_BY_STEP, _BY_DEVICE = ("key", "own", "slot", "last", "gone"), ("free", "whole", "late")


def _column(name: str, ways: Sequence[dict[str, list[int]]], many: int) -> Numbers:
    """Return a named entry as an array with a row of `many` numbers for each smaller diagram."""
    return int64_array([way[name] for way in ways], LARGEST_KEY if name == "key" else LARGEST).reshape(len(ways), many)


def projected_completions(
    problem: Problem, kept: ModelledSteps, by: Sequence[SmallerDiagram], most: int = 1
) -> ProjectedCompletions:
    """Return the completion bounds for the larger diagram `kept` from smaller ones over some of its stages.

    At most `most` rows are used for each state. An empty `by` gives bounds that exclude nothing.
    """
    ways = [_by_step(kept, one.kept) | _by_device(problem, kept, one.kept) for one in by]
    wide = {name: len(kept.passes) for name in _BY_STEP} | {name: len(kept.steps.room) for name in _BY_DEVICE}
    layers = [layer for one in by for layer in one.rest]
    size = max((layer.rests.shape[1] for layer in layers), default=0)
    rows = [np.pad(layer.rests, ((0, 0), (0, size - layer.rests.shape[1]))) for layer in layers]
    begin = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    firsts = [layer.first[:-1] + at for layer, at in zip(layers, begin[:-1], strict=True)]
    return ProjectedCompletions(
        **{name: _column(name, ways, many) for name, many in wide.items()},
        all=int64_array([one.kept.steps.microbatches.sum() for one in by]),
        since=np.cumsum([0, *(len(one.rest) for one in by)], dtype=np.int64),
        layer=np.cumsum([0, *(len(layer.keys) for layer in layers)], dtype=np.int64),
        keys=np.concatenate([np.empty(0, np.int64), *(layer.keys for layer in layers)]),
        first=np.concatenate([*firsts, begin[-1:]]),
        rests=np.concatenate([np.empty((0, size), np.int32), *rows]),
        most=most,
    )


def _by_step(kept: ModelledSteps, fewer: ModelledSteps) -> dict[str, list[int]]:
    """Return the mapping of a larger diagram's steps to a smaller one's state and times."""
    steps, own = kept.steps, fewer.steps
    numbers = {kept.passes.index(one): number for number, one in enumerate(fewer.passes)}
    found: dict[str, list[int]] = {name: [] for name in _BY_STEP}
    for step in range(len(kept.passes)):
        chain = [n for n in numbers if steps.first[n] == steps.first[step]]
        done = [n for n in chain if n <= step]
        between = 0 < len(done) < len(chain)
        found["own"].append(int(step in numbers))
        found["key"].append(int(own.raises[numbers[step]]) if step in numbers else 0)
        found["slot"].append(int(own.slot[numbers[chain[0]]]) if between else NONE)
        found["last"].append(chain[-1] if between else NONE)
        found["gone"].append(int(kept.ends[step] - kept.ends[done[-1]]) if between else 0)
    return found


def _by_device(problem: Problem, kept: ModelledSteps, fewer: ModelledSteps) -> dict[str, list[int]]:
    """Return the mapping of a larger diagram's devices to a smaller one's times."""
    where, few, slots = problem.placement.stage_device, devices_of(problem, fewer.stages), fewer.steps.slots
    found: dict[str, list[int]] = {name: [] for name in _BY_DEVICE}
    for device in devices_of(problem, kept.stages):
        free = slots + few.index(device) if device in few else NONE
        whole = free + len(few) if device in few else NONE
        alike = all(stage in fewer.stages for stage in kept.stages if where[stage] == device)
        for name, place in (("free", free), ("whole", whole if alike else NONE), ("late", NONE if alike else whole)):
            found[name].append(place)
    return found


@inner
def look_ahead(
    ways: Numbers, until: Numbers, follows: Numbers, ran: Numbers, guides: ProjectedCompletions, steps: Steps
) -> bool:
    """Fill `ways` with the completion rows of a state, diagram by diagram; `until` has the end of each diagram's rows.

    `follows` becomes the maximum over the diagrams of the minimum over their rows. A diagram whose steps have all run
    gives no bound, since a later step of other stages may start after the end that it counts. Returns False if a
    smaller diagram has no such state, or no row for it: on its stages no order that memory admits gets there and to an
    end in time.
    """
    found, size = 0, len(follows)
    for time in range(size):
        follows[time] = NOTHING
    for guide in range(len(guides.all)):
        key, done, since = 0, 0, found
        for step in range(len(ran)):
            key += ran[step] * guides.key[guide, step]
            done += ran[step] * guides.own[guide, step]
        if done < guides.all[guide]:
            layer = guides.since[guide] + done
            if layer >= guides.since[guide + 1]:
                return False
            end = guides.layer[layer + 1]
            low = place_of(key, guides.keys, guides.layer[layer], end)
            if low == end or guides.keys[low] != key or guides.first[low] == guides.first[low + 1]:
                return False
            for row in range(guides.first[low], guides.first[low + 1]):
                _fill_in(ways[found], guides.rests[row], guide, ran, guides, steps)
                found += 1
            for time in range(size):
                least = NEVER
                for way in range(since, found):
                    least = min(least, ways[way, time])
                follows[time] = max(follows[time], least)
        until[guide] = found
    return True


@inlined
def _fill_in(way: Numbers, row: Short, guide: int, ran: Numbers, guides: ProjectedCompletions, steps: Steps) -> None:
    """Fill `way` with the completion of each time of the larger label, from a row of a smaller diagram."""
    devices = len(steps.room)
    for time in range(len(way)):
        way[time] = NOTHING
    for step in range(len(ran)):
        if guides.slot[guide, step] == NONE:
            continue
        slot = steps.slot[step] - ran[steps.last[step]]
        own = guides.slot[guide, step] - ran[guides.last[guide, step]]
        for one in range(ran[step + 1], ran[step]):
            way[slot + one] = np.int64(row[own + one]) - guides.gone[guide, step]
    for device in range(devices):
        free = steps.slots + device
        if guides.free[guide, device] != NONE:
            way[free] = row[guides.free[guide, device]]
        if guides.late[guide, device] != NONE:
            way[free] = max(way[free], np.int64(row[guides.late[guide, device]]))
        if guides.whole[guide, device] != NONE:
            way[free + devices] = row[guides.whole[guide, device]]


@inlined
def fits(label: Numbers, ways: Numbers, until: Numbers, value: int) -> bool:
    """True if each smaller diagram has a row with which the label may end before the threshold."""
    since = 0
    for guide in range(len(until)):
        found = since == until[guide]
        for way in range(since, until[guide]):
            if may_end_below(label, ways[way], value):
                found = True
                break
        if not found:
            return False
        since = until[guide]
    return True


@inlined
def may_end_below(label: Numbers, follows: Numbers, value: int) -> bool:
    """True if no time of the label plus its completion reaches the threshold."""
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] + follows[time] >= value:
            return False
    return True
