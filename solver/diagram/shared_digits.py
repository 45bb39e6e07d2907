"""Keys of states in which one digit counts micro-batches at several steps, so that longer chains fit into 64 bits.

At most K micro-batches are in flight, so few of them are at each step. Numbers of which all sums of up to K differ
(B_K sequences; Mian and Chowla, 1944) tell in one digit how many are at each of several steps: of eight steps and four
micro-batches in 13 bits instead of 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from pipesched.int64_arrays import int64_array
from solver.diagram.steps import Numbers

# Steps that share a digit; sums that one may have.
_MOST_STEPS, _MOST_SUMS = 12, 3_000


def shared_digits(most: int, steps: int, largest: int) -> tuple[Numbers, Numbers, Numbers] | None:
    """Return the bases of the digits of a chain's keys, what each step adds to a key, and the steps by digit's value.

    `most` micro-batches are in flight at once, each of which has done one of `steps` steps last; one step more ends the
    chain. Row v of the third array has how many micro-batches are at each of the steps that share a digit of value v.
    As few steps share a digit as make keys of at most `largest`; None if there are none.
    """
    for together in range(2, _MOST_STEPS + 1):
        if comb(most + together, together) > _MOST_SUMS:
            return None
        weights = _weights(most, together)
        base, digits = most * weights[-1] + 1, -(-steps // together)
        if base**digits <= largest:
            break
    else:
        return None
    at = [weights[n % together] * base ** (n // together) for n in range(steps)]
    decoded = np.zeros((base, together), np.int64)
    for some in combinations_with_replacement(range(together + 1), most):
        value = sum(weights[n] for n in some if n < together)
        decoded[value] = np.bincount(some, minlength=together + 1)[:together]
    raises = [now - before for now, before in zip([*at, 0], [0, *at], strict=True)]
    return np.full(digits, base, np.int64), int64_array(raises, largest), decoded


@cache
def _weights(most: int, count: int) -> Sequence[int]:
    """Return the first `count` whole numbers from 1 on such that different choices of them have different sums.

    A choice has up to `most` of them, each taken any number of times.
    """
    found, sums, latest = list[int](), [{0} for _ in range(most + 1)], 0  # of exactly n of them and of zeros
    while len(found) < count:
        latest += 1
        if any(s + n * latest in sums[most] for n in range(1, most + 1) for s in sums[most - n]):
            continue
        more = [{s + n * latest for s in sums[most - n]} for n in range(1, most + 1)]
        if len(set[int]().union(*more)) < sum(map(len, more)):
            continue
        found.append(latest)
        sums = [{s + n * latest for n in range(k + 1) for s in sums[k - n]} for k in range(most + 1)]
    return tuple(found)
