"""Labels that are first compared by words: the same stay as where each is compared with each."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipesched.checking.diagram.labels import prune_and_merge
from solver.diagram.reduction import reduced
from solver.diagram.steps import Numbers
from tests.support.in_turn import in_turn


@in_turn("seed", range(30))
def test_the_same_labels_stay_in_bound_and_check(seed: int) -> None:
    """Few times and many, far apart or equal, with labels merged or not."""
    random = Random(seed)
    size, count, span = (
        random.choice((1, 3, 14, 30, 70)),
        random.randint(1, 300),
        random.choice((1, 2, 5, 10**3, 10**7)),
    )
    keys = np.array([random.randint(0, 3) for _ in range(count)], np.int64)
    labels = np.array([[random.randint(0, span) for _ in range(size)] for _ in range(count)], np.int32)
    width, order = random.choice((1, 5, 1000)), np.lexsort((labels.sum(axis=1), keys))
    states, first, kept, merges = reduced(keys[order], labels[order], width)
    assert np.array_equal(states, np.unique(keys))
    every = reduced(keys[order], labels[order].astype(np.int64), 10**6)[1]
    assert merges == bool((np.diff(every) > width).any()) and np.array_equal(
        np.diff(first), np.diff(every).clip(max=width)
    )
    since = np.searchsorted(keys[order], np.append(states, 4))
    for each in (labels, labels.astype(np.int64)):
        counts, times = prune_and_merge(each, order, since, width)
        assert np.array_equal(np.diff(first), counts)
        assert _in_each_state(first, times) == _in_each_state(first, kept)


def _in_each_state(first: Numbers, labels: NDArray[Any]) -> list[list[list[int]]]:
    """Sorted, since the order of those with the same sum is left open."""
    return [sorted(labels[since:until].tolist()) for since, until in pairwise(first)]
