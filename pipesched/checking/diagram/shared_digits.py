"""Keys of states in which one digit says how many micro-batches have last run each of several steps of a chain.

Each of these steps has a weight. The digit is the sum of the weights of the micro-batches, of which so few are in
flight that no two choices of them have the same sum: that is tried for all of them.
"""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.model import Numbers
from pipesched.int64_arrays import int64_array

# Steps that share a digit, and choices of micro-batches that are tried.
_LONGEST, _MOST = 12, 3_000


def shared_digits(admitted: int, steps: int, most_states: int) -> Numbers | None:
    """Return a table: how many micro-batches have last run each step that shares a digit (column), by its value (row).

    At most `admitted` micro-batches are in flight, each of which has run one of `steps` steps last. As few steps share
    a digit as give keys of at most `most_states`. Rows of values that no state has are 0. None if there are no such
    digits, or too many choices to try.
    """
    choices, weights = np.arange(admitted + 1)[:, None], [1]
    while len(weights) < _LONGEST:
        left = admitted - choices.sum(axis=1)
        if (left + 1).sum() > _MOST:
            return None
        more = np.concatenate([np.arange(one + 1) for one in left.tolist()])
        choices = np.repeat(choices, left + 1, axis=0)
        before, weight = choices @ int64_array(weights), weights[-1] + 1
        while _repeat(values := before + more * weight):
            weight += 1
        choices, weights = np.column_stack([choices, more]), [*weights, weight]
        base = int(values.max()) + 1
        if base ** -(-steps // len(weights)) <= most_states:
            found = np.zeros((base, len(weights)), np.int64)
            found[values] = choices
            return found
    return None


def _repeat(values: Numbers) -> bool:
    """Return True if two of the values are equal."""
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def weights_in_digits(crowds: Numbers, steps: int) -> Numbers:
    """Return by step what a micro-batch that has run it last adds to a key, for `steps` steps.

    `crowds` is the table that `shared_digits` returns.
    """
    alone = np.flatnonzero(crowds.sum(axis=1) == 1)
    own = alone[crowds[alone].argmax(axis=1).argsort()]
    turn = np.arange(steps)
    found: Numbers = own[turn % len(own)] * len(crowds) ** (turn // len(own))
    return found


def crowds_of(keys: Numbers, crowds: Numbers, steps: int) -> Numbers:
    """Return by key and step, of the first `steps`, the number of micro-batches that have last run it.

    `crowds` has by value of a digit these numbers for the steps that share it (`Steps.crowds`).
    """
    parts, left = list[Numbers](), keys
    for _ in range(-(-steps // crowds.shape[1])):
        parts.append(crowds[left % len(crowds)])
        left = left // len(crowds)
    return np.concatenate(parts, axis=1)[:, :steps]
