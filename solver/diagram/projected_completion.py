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
    """A diagram over few stages: its steps (`kept`), and its states' completion rows (`layers`), by steps done."""

    kept: ModelledSteps
    layers: Sequence[CompletionRows]


class ProjectedCompletions(NamedTuple):
    """Completion rows of smaller diagrams, and how states of a larger one map to theirs.

    A row has the cost-to-go of each time of a label.

    Arrays have a row for each smaller diagram, and a column for each step or device of the larger one. By step: its
    addition to the `key` of the smaller state, and 1 if it is a step there too (`own`); for micro-batches that did this
    step last, the place of their times in a row (`slot`, -1 if they are not between steps of the smaller diagram), the
    chain's `last` step there, and the ticks from the end of the last own step to the end of this one (`gone`). By
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
    rows: Short
    most: int


_BY_STEP, _BY_DEVICE = ("key", "own", "slot", "last", "gone"), ("free", "whole", "late")


def _column(name: str, mappings: Sequence[dict[str, list[int]]], many: int) -> Numbers:
    """Return the entry `name` of each mapping as an array with a row of `many` numbers for each smaller diagram."""
    return int64_array([mapping[name] for mapping in mappings], LARGEST_KEY if name == "key" else LARGEST).reshape(
        len(mappings), many
    )


def projected_completions(
    problem: Problem, kept: ModelledSteps, smaller: Sequence[SmallerDiagram], most: int = 1
) -> ProjectedCompletions:
    """Return the completion bounds for the larger diagram `kept` from smaller ones over some of its stages.

    `most` is the greatest number of rows of a state in them. An empty `smaller` gives bounds that exclude nothing.
    """
    mappings = [_by_step(kept, one.kept) | _by_device(problem, kept, one.kept) for one in smaller]
    wide = {name: len(kept.passes) for name in _BY_STEP} | {name: len(kept.steps.room) for name in _BY_DEVICE}
    layers = [layer for one in smaller for layer in one.layers]
    size = max((layer.rows.shape[1] for layer in layers), default=0)
    rows = [np.pad(layer.rows, ((0, 0), (0, size - layer.rows.shape[1]))) for layer in layers]
    begin = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    firsts = [layer.first[:-1] + at for layer, at in zip(layers, begin[:-1], strict=True)]
    return ProjectedCompletions(
        **{name: _column(name, mappings, many) for name, many in wide.items()},
        all=int64_array([one.kept.steps.microbatches.sum() for one in smaller]),
        since=np.cumsum([0, *(len(one.layers) for one in smaller)], dtype=np.int64),
        layer=np.cumsum([0, *(len(layer.keys) for layer in layers)], dtype=np.int64),
        keys=np.concatenate([np.empty(0, np.int64), *(layer.keys for layer in layers)]),
        first=np.concatenate([*firsts, begin[-1:]]),
        rows=np.concatenate([np.empty((0, size), np.int32), *rows]),
        most=most,
    )


def _by_step(kept: ModelledSteps, fewer: ModelledSteps) -> dict[str, list[int]]:
    """Return how each step of the larger diagram `kept` maps to a smaller one, `fewer`.

    The lists have an entry for each step. They are `key`, what the step adds to the key of the smaller state; `own`, 1
    if it is a step there too; and for micro-batches that did this step last `slot`, the place of their times in a
    completion row, `last`, their chain's last step there, and `gone`, the ticks since their last own step.
    """
    steps, smaller_steps = kept.steps, fewer.steps
    numbers = {kept.passes.index(one): number for number, one in enumerate(fewer.passes)}
    found: dict[str, list[int]] = {name: [] for name in _BY_STEP}
    for step in range(len(kept.passes)):
        chain = [n for n in numbers if steps.first[n] == steps.first[step]]
        done = [n for n in chain if n <= step]
        between = 0 < len(done) < len(chain)
        found["own"].append(int(step in numbers))
        found["key"].append(int(smaller_steps.raises[numbers[step]]) if step in numbers else 0)
        found["slot"].append(int(smaller_steps.slot[numbers[chain[0]]]) if between else NONE)
        found["last"].append(chain[-1] if between else NONE)
        found["gone"].append(int(kept.ends[step] - kept.ends[done[-1]]) if between else 0)
    return found


def _by_device(problem: Problem, kept: ModelledSteps, fewer: ModelledSteps) -> dict[str, list[int]]:
    """Return how each device of the larger diagram `kept` maps to a smaller one, `fewer`.

    The lists have an entry for each device. They are the place in a completion row of its earliest start (`free`, or
    -1), and of its time with all work done (`whole`, or -1 if other stages of the device are modelled there: then
    `late` has that time).
    """
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
    projected: Numbers, until: Numbers, follows: Numbers, ran: Numbers, completions: ProjectedCompletions, steps: Steps
) -> bool:
    """Fill `projected` with the completion rows of the state `ran` in each smaller diagram.

    They are converted to the label's times. `ran` has by step the micro-batches that have done it. Rows of diagram n
    are those from `until[n - 1]` (0 for the first) to `until[n]`, none for a diagram whose steps have all run, which
    gives no bound, since a later step of other stages may start after the end that it counts. `follows` becomes, by
    time, the maximum over the diagrams of the minimum over their rows, `NOTHING` without any. All are cost-to-go in
    ticks. Returns False if a smaller diagram has no such state, or no row for it: on its stages no order that memory
    admits gets there and to an end in time.
    """
    found, size = 0, len(follows)
    for time in range(size):
        follows[time] = NOTHING
    for diagram in range(len(completions.all)):
        key, done, since = 0, 0, found
        for step in range(len(ran)):
            key += ran[step] * completions.key[diagram, step]
            done += ran[step] * completions.own[diagram, step]
        if done < completions.all[diagram]:
            layer = completions.since[diagram] + done
            if layer >= completions.since[diagram + 1]:
                return False
            end = completions.layer[layer + 1]
            low = place_of(key, completions.keys, completions.layer[layer], end)
            if low == end or completions.keys[low] != key or completions.first[low] == completions.first[low + 1]:
                return False
            for row in range(completions.first[low], completions.first[low + 1]):
                _fill_in(projected[found], completions.rows[row], diagram, ran, completions, steps)
                found += 1
            for time in range(size):
                least = NEVER
                for place in range(since, found):
                    least = min(least, projected[place, time])
                follows[time] = max(follows[time], least)
        until[diagram] = found
    return True


@inlined
def _fill_in(
    projected: Numbers, row: Short, diagram: int, ran: Numbers, completions: ProjectedCompletions, steps: Steps
) -> None:
    """Fill `projected` with the cost-to-go of each time of the larger label.

    It is from a `row` of smaller diagram number `diagram`. Times that the smaller diagram does not know get `NOTHING`;
    `ran` has by step the micro-batches that have done it.
    """
    devices = len(steps.room)
    for time in range(len(projected)):
        projected[time] = NOTHING
    for step in range(len(ran)):
        if completions.slot[diagram, step] == NONE:
            continue
        slot = steps.slot[step] - ran[steps.last[step]]
        own = completions.slot[diagram, step] - ran[completions.last[diagram, step]]
        for one in range(ran[step + 1], ran[step]):
            projected[slot + one] = np.int64(row[own + one]) - completions.gone[diagram, step]
    for device in range(devices):
        free = steps.slots + device
        if completions.free[diagram, device] != NONE:
            projected[free] = row[completions.free[diagram, device]]
        if completions.late[diagram, device] != NONE:
            projected[free] = max(projected[free], np.int64(row[completions.late[diagram, device]]))
        if completions.whole[diagram, device] != NONE:
            projected[free + devices] = row[completions.whole[diagram, device]]


@inlined
def fits(label: Numbers, projected: Numbers, until: Numbers, value: int) -> bool:
    """True if each smaller diagram has a row with which the label may end before the threshold `value`, in ticks.

    `projected` and `until` are filled by `look_ahead`: rows of cost-to-go by time of the label, and where each
    diagram's rows end. A diagram without rows there excludes nothing.
    """
    since = 0
    for diagram in range(len(until)):
        found = since == until[diagram]
        for place in range(since, until[diagram]):
            if may_end_before(label, projected[place], value):
                found = True
                break
        if not found:
            return False
        since = until[diagram]
    return True


@inlined
def may_end_before(label: Numbers, follows: Numbers, value: int) -> bool:
    """True if no time of the label plus its cost-to-go in `follows` reaches the threshold `value`; all in ticks."""
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] + follows[time] >= value:
            return False
    return True
