"""Pruning of dominated labels and merging of similar ones, state by state; compiled by Numba.

Dominated labels are pruned. Of the others the first ones stay, by sums, then in lexicographic order; each further one
is merged into the one that it makes earlier by the least. So a merged label is in no time later than the labels merged
into it.

To compare fewer times, each label has a number with a few digits for each time, which rank it roughly among the others:
a label that dominates another has no larger digit.
"""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.model import Labels, Numbers
from pipesched.compiled import compiled, inner

# Binary digits of a number in all; numbers that are compared before any of the times they rank are.
_DIGITS, _TOGETHER = 63, 32


@compiled
def prune_and_merge(labels: Labels, order: Numbers, at: Numbers, width: int) -> tuple[Numbers, Labels]:
    """Return the number of labels kept for each state, and all labels kept, state by state, at most `width` of each.

    The labels of state n are rows `order[at[n]:at[n + 1]]` of `labels`, in ticks, in ascending order of their sums.
    Dominated ones, which are in no time earlier than another, are pruned. Of the others the first `width` by sum stay,
    each further one merged into one of them by the earlier of each time.
    """
    kept, counts, total = np.empty_like(labels), np.zeros(len(at) - 1, np.int64), 0
    digits = np.empty(len(labels), np.int64)
    for state in range(len(at) - 1):
        rows, since = order[at[state] : at[state + 1]], total
        numbers, tops = _numbers(labels, rows)
        for one in range(len(rows)):
            if not _is_dominated(kept[since:total], digits[since:total], labels[rows[one]], numbers[one], tops):
                copy_times(labels[rows[one]], kept[total])
                digits[total] = numbers[one]
                total += 1
        if total - since > width:
            _sort_lexicographically(kept[since:total])
            _merge(kept[since:total], width)
            total = since + width
        counts[state] = total - since
    return counts, kept[:total].copy()


@inner
def copy_times(label: Labels, row: Labels) -> None:
    """Copy the times of `label` to `row`, one by one: Numba takes two seconds to compile a row set to another."""
    for place in range(len(label)):
        row[place] = label[place]


@compiled
def _numbers(labels: Labels, rows: Numbers) -> tuple[Numbers, int]:
    """Return for each label a number with a few binary digits a time, which rank it, and a mask of all top digits.

    The labels are those rows of `labels`. The top digit of each group stays 0, so that groups can be compared by one
    subtraction. Times that are equal in all labels get no digits, and where there are many times, the last ones get
    none.
    """
    size = labels.shape[1]
    low, high, which, many = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), 0
    for place in range(size):
        low[place] = high[place] = labels[rows[0], place]
        for one in rows:
            low[place], high[place] = min(low[place], labels[one, place]), max(high[place], labels[one, place])
        if low[place] < high[place] and many < _DIGITS // 2:
            which[many] = place
            many += 1
    digits, tops, found = min(20, _DIGITS // max(1, many)), 0, np.zeros(len(rows), np.int64)
    for number in range(many):
        place, shift = which[number], number * digits
        # A larger time never has a smaller product, also when rounded.
        per_tick = ((1 << (digits - 1)) - 0.5) / (high[place] - low[place])
        for one in range(len(rows)):
            found[one] |= np.int64((labels[rows[one], place] - low[place]) * per_tick) << shift
        tops |= 1 << (shift + digits - 1)
    return found, tops


@compiled
def _is_dominated(others: Labels, numbers: Numbers, label: Labels, number: int, tops: int) -> bool:
    """Return True if one of the labels already kept (`others`) is in no time later than `label`.

    `number` is the rank number of `label`, `numbers` has the rank numbers of `others`: a few binary digits for each
    time. `tops` is the mask of their top digits. A comparison of these digits excludes most kept labels before their
    times are compared.
    """
    for since in range(0, len(numbers), _TOGETHER):
        until, candidates = min(since + _TOGETHER, len(numbers)), 0
        for one in range(since, until):  # if no digit is larger, all the tops stay when the number is taken away
            candidates += ((number | tops) - numbers[one]) & tops == tops
        if candidates == 0:
            continue
        for one in range(since, until):
            if ((number | tops) - numbers[one]) & tops == tops and _no_later(others[one], label):
                return True
    return False


@inner
def _no_later(one: Labels, other: Labels) -> bool:
    for place in range(len(one)):  # noqa: SIM110 - Numba compiles no generator
        if one[place] > other[place]:
            return False
    return True


@compiled
def _merge(labels: Labels, width: int) -> None:
    """Merge all labels after the first `width` into these, in place.

    Each is merged into the one that it makes earlier by the least. A merged label has the earlier of each time.
    Differences count as the sum over all times. Afterwards none of the labels after the first `width`, which stay as
    they are, is earlier than the one it was merged into.
    """
    size, differ = labels.shape[1], np.empty(width, np.int64)
    stay = np.empty((size, width), np.int64)
    for n in range(width):
        for place in range(size):
            stay[place, n] = labels[n, place]
    for one in range(width, len(labels)):
        for n in range(width):
            differ[n] = 0
        for place in range(size):
            for n in range(width):
                differ[n] += max(0, stay[place, n] - labels[one, place])
        nearest = 0
        for n in range(width):
            if differ[n] < differ[nearest]:
                nearest = n
        for place in range(size):
            labels[nearest, place] = min(labels[nearest, place], labels[one, place])


@compiled
def _sort_lexicographically(labels: Labels) -> None:
    """Sort labels of equal sum, which are adjacent, lexicographically, in place.

    Labels are sorted by the sum of their times before, so that afterwards their order does not depend on that in which
    they were found.
    """
    size = labels.shape[1]
    sums, row = np.zeros(len(labels), np.int64), np.empty(size, labels.dtype)
    for one in range(len(labels)):
        for place in range(size):
            sums[one] += labels[one, place]
    for one in range(1, len(labels)):
        place = one
        copy_times(labels[one], row)
        while place > 0 and sums[place - 1] == sums[one] and _precedes(row, labels[place - 1]):
            copy_times(labels[place - 1], labels[place])
            place -= 1
        copy_times(row, labels[place])


@compiled
def _precedes(one: Labels, other: Labels) -> bool:
    for place in range(len(one)):
        if one[place] != other[place]:
            return bool(one[place] < other[place])
    return False
