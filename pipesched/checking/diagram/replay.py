"""The replay of a decision diagram of any model, layer by layer: expand, exclude, prune, merge.

All moves of all labels are made. Labels that a completion bound excludes end at the threshold or later. Of each state
dominated labels are pruned, and beyond the width the others merged to the earliest of each time (`labels.py`). So the
least end is no more than that of any order, or the threshold if that is less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from pipesched.checking.diagram.labels import prune_and_merge
from pipesched.checking.diagram.model import Labels, Layer, Model, Numbers, Reached
from pipesched.checking.finding import NotCoveredError
from pipesched.deadline import ask
from pipesched.problem.quantities import Ticks

# Labels at once, which have gigabytes; more than any end.
_MOST_AT_ONCE, _LATE = 4_000_000, 2**60
# A width that no state has.
_NO_WIDTH = 2**40


def least_end(model: Model, width: int | None, threshold: Ticks | None, layers: list[Layer] | None = None) -> Ticks:
    """Return the least end, in ticks, of all orders that end before `threshold` (None: all), or it if none does.

    At most `width` labels of a state are kept, and the others are merged into them, so that the result may be less than
    that; with None no labels are merged. If `layers` is a list, all layers that are not skipped as repetitions are
    appended to it. Raises `NotCoveredError` if there are too many labels.
    """
    least = limit = _LATE if threshold is None else threshold
    reached, ahead, done, tried = model.root, deque[list[Reached]](), 0, 0
    while len(reached.keys) or ahead:
        ask()
        if layers is not None:
            layers.append(reached)
        for part in model.successors(reached, done, limit):
            tried += part.tried
            least = least if part.end is None else min(least, part.end)
            for further, found in enumerate(part.ahead):
                if len(found.keys):
                    while len(ahead) <= further:
                        ahead.append([])
                    ahead[further].append(found)
            if tried > model.most or sum(len(one.keys) for later in ahead for one in later) > _MOST_AT_ONCE:
                raise NotCoveredError("too many orders to try them all")
        done += 1
        reached = _reduced(model, _joined(ahead.popleft() if ahead else ()), done, width or _NO_WIDTH, limit)
        reached, skipped = model.repeated(reached, done)
        done += skipped
    return least


def _reduced(model: Model, found: Reached, done: int, width: int, limit: Ticks) -> Layer:
    """Return the layer of the labels that completion bounds admit, after pruning and merging to `width` labels a state.

    `done` is the number of steps run, `limit` the ticks before which an order has to end.
    """
    keys, labels = found
    order = np.lexsort((labels.sum(axis=1), keys))
    since = _starts(keys[order])
    admitted = model.admitted(Layer(keys[order[since]], np.append(since, len(keys)), labels), order, done, limit)
    if admitted is not None:
        order = order[admitted[order]]
        since = _starts(keys[order])
    counts, kept = prune_and_merge(labels, order, np.append(since, len(order)), width)
    return Layer(keys[order[since]], np.append(0, np.cumsum(counts)), kept)


def _starts(keys: Numbers) -> Numbers:
    """Return the index at which each distinct value of the sorted keys starts."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _joined(parts: Sequence[Reached]) -> Reached:
    """Return all parts joined; shorter rows end with zeros."""
    if not parts:
        return Reached(np.zeros(0, np.int64), np.zeros((0, 0), np.int32))
    columns = max(part.labels.shape[1] for part in parts)
    return Reached(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([_widened(part.labels, columns) for part in parts]),
    )


def _widened(labels: Labels, columns: int) -> Labels:
    """Return the labels with zeros appended up to `columns` columns."""
    lacking = columns - labels.shape[1]
    return np.pad(labels, ((0, 0), (0, lacking))) if lacking else labels
