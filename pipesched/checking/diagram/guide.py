"""What completion bounds of some stages say of labels of the same or of more stages.

In an order of the steps of some stages there is an order of the steps of any fewer of them. What that takes at least
from where it has come, the whole order takes too. A micro-batch has gone on since its last step of the fewer stages: it
comes to the next of them as if that step had ended when it must have, had the micro-batch come to where it is now
without a wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.checking.diagram.completion import completions, key_weights
from pipesched.checking.diagram.moves import Labels
from pipesched.checking.diagram.walk import Numbers, Steps, Walk
from pipesched.compiled import compiled
from pipesched.problem.problem import Problem

NOTHING = -(2**60)


class Guide(NamedTuple):
    """Completion bounds of fewer stages, and how they are read by labels of more.

    `steps` are theirs among those of more stages, `weights` those of a key, `alone` the time from the end of the last
    of them to the end of each step of all, without a wait. `columns` are the times of devices that count, -1 for none.
    What follows is added to times that are earlier by `sooner`. Those with n steps run are from `at[n]` on.
    """

    steps: Numbers
    weights: Numbers
    alone: Numbers
    columns: Numbers
    admitted: int
    sooner: int
    at: Numbers
    keys: Numbers
    follows: Labels


def guide_of(problem: Problem, walk: Walk, fewer: Walk, stages: tuple[int, ...], kept: tuple[int, ...]) -> Guide:
    """Of the `kept` ones of the stages."""
    steps, layers = walk.steps, completions(fewer)
    own = np.array([n for n, stage in enumerate((*stages, *stages[::-1])) if stage in kept], np.int64)
    ends = walk.ends
    before = [own[own < n] for n in range(len(ends) + 1)]
    alone = [0] + [int(ends[n - 1] - ends[one[-1]]) if len(one) else 0 for n, one in enumerate(before) if n]
    return Guide(
        steps=own,
        weights=key_weights(fewer.steps),
        alone=np.array(alone, np.int64),
        columns=_columns(problem, walk, fewer, stages, kept),
        admitted=fewer.steps.admitted,
        sooner=int(steps.before[own[0]] + (ends[own[0] - 1] if own[0] else 0)) + walk.beside - fewer.beside,
        at=np.append(0, np.cumsum([len(one.keys) for one in layers])),
        keys=np.concatenate([one.keys for one in layers]),
        follows=np.concatenate([one.follows for one in layers]),
    )


def _columns(problem: Problem, walk: Walk, fewer: Walk, stages: tuple[int, ...], kept: tuple[int, ...]) -> Numbers:
    """For when each device of the fewer stages can start, and for when it has run all, the times of more stages.

    If other stages of the device are among these, what they would still run is not what the fewer would: then, that it
    can start no later.
    """
    where, admitted = problem.placement.stage_device, walk.steps.admitted
    free = [admitted + walk.devices.index(one) if one in walk.devices else -1 for one in fewer.devices]
    others = {where[stage] for stage in stages if stage not in kept}
    shared = [column < 0 or one in others for one, column in zip(fewer.devices, free, strict=True)]
    over = [column if more else column + len(walk.devices) for column, more in zip(free, shared, strict=True)]
    return np.array(free + over, np.int64)


def no_guide(steps: Steps) -> Guide:
    """One that says nothing."""
    none = np.zeros(0, np.int64)
    return Guide(none, none, none, none, steps.admitted, 0, none, none, np.zeros((0, 0), np.int32))


@compiled
def look_ahead(follows: Numbers, run: Numbers, comes: Numbers, steps: Steps, guide: Guide) -> bool:
    """Fill in what follows each time at least: nothing where the fewer stages have run all.

    False where no order of them that memory admits comes so far, and to an end.
    """
    follows[:] = NOTHING
    if not len(guide.steps):
        return True
    key, done, back = np.int64(0), np.int64(0), run[guide.steps[-1]]
    for place, n in enumerate(guide.steps):
        key += guide.weights[place] * (run[n] - back)
        done += run[n]
    if done == steps.microbatches * len(guide.steps):
        return True
    since, until = guide.at[done], guide.at[done + 1]
    row = since + np.searchsorted(guide.keys[since:until], key)
    if row == until or guide.keys[row] != key:
        return False
    gone = back - run[-1]
    for which in range(gone, min(len(comes), run[guide.steps[0]] - run[-1])):
        follows[which] = guide.follows[row, which - gone] - guide.alone[comes[which]] - guide.sooner
    for number, column in enumerate(guide.columns):
        if column >= 0:
            follows[column] = max(follows[column], guide.follows[row, guide.admitted + number] - guide.sooner)
    return True
