"""Pruning of a state's dominated labels, compiled; beyond a maximum number, similar labels are merged.

A merged label has the minimum of every time. Labels are first compared by words in which each of their times has a few
bits: a label that dominates another has a word that is nowhere larger. States are sorted by their keys and labels by
their sums, so that a layer does not depend on the order in which it was made.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, substituted
from solver.diagram.steps import Numbers

# Bits of a word; the top one stays 0.
_BITS = 63
# Number of words that are compared before the result is examined.
_AT_ONCE = 32


@compiled
def reduced(keys: Numbers, labels: Numbers, width: int) -> tuple[Numbers, Numbers, Numbers, bool]:
    """Return the non-dominated labels of all states.

    The result is keys, index of each state's first label, labels, and if any were merged. `keys` are sorted and may
    repeat; `labels` has a row of times for each. The index has one entry more than the keys returned, the number of
    labels. Of each state the first `width` labels stay, by sum and then lexicographically. Each other label is merged
    into the one that it lowers least, which gets the minimum of each time.
    """
    states, first = np.empty(len(keys), np.int64), np.zeros(len(keys) + 1, np.int64)
    kept, words = np.empty_like(labels), np.empty(len(keys), np.int64)
    found, total, since, merges = 0, 0, 0, False
    while since < len(keys):
        until, begin = since, total
        while until < len(keys) and keys[until] == keys[since]:
            until += 1
        states[found] = keys[since]
        total = append_reduced(labels[since:until], width, kept, total, words)
        if total - begin > width:
            total, merges = begin + width, True
        found, since = found + 1, until
        first[found] = total
    return states[:found].copy(), first[: found + 1].copy(), kept[:total].copy(), merges


@substituted  # compiled by itself as well, it would be optimized twice
def append_reduced(labels: Numbers, width: int, kept: Numbers, total: int, words: Numbers) -> int:
    """Append the non-dominated labels of one state to the rows of `kept` from `total` on; merge those beyond `width`.

    Returns the number of rows of `kept` in use, including those merged, which follow the first `width` and which the
    caller drops. `words` is working space, an integer for each row of `kept`.
    """
    begin, count = total, len(labels)
    if count == 1:
        _copy(labels[0], kept[total])
        return total + 1
    words_of_labels, sums, free = _words(labels)
    # Labels of the same sum do not dominate each other, unless they are equal.
    for number in _in_turn(sums):
        if not _is_dominated(
            labels[number], words_of_labels[number] | free, free, kept[begin:total], words[begin:total]
        ):
            _copy(labels[number], kept[total])
            words[total] = words_of_labels[number]
            total += 1
    if total - begin > width:
        some = kept[begin:total].copy()
        for place, number in enumerate(_sorted(some)):
            _copy(some[number], kept[begin + place])
        _merge(kept[begin:total], width)
    return total


@compiled
def _in_turn(sums: Numbers) -> Numbers:
    """Return the indices of labels in ascending order of their sums, ties in the order given.

    A merge sort: Numba takes seconds to compile NumPy's sorts.
    """
    count, size = len(sums), 1
    order, merged = np.empty(count, np.int64), np.empty(count, np.int64)
    for number in range(count):
        order[number] = number
    while size < count:
        for since in range(0, count, 2 * size):
            left, middle, until = since, min(since + size, count), min(since + 2 * size, count)
            right = middle
            for place in range(since, until):
                if left < middle and (right == until or sums[order[left]] <= sums[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged, size = merged, order, 2 * size
    return order


@compiled
def _copy(label: Numbers, place: Numbers) -> None:
    for time in range(len(label)):
        place[time] = label[time]


@compiled
def _words(labels: Numbers) -> tuple[Numbers, Numbers, int]:
    """Return a word and the sum of each label, and the bits that all words leave free, one above the bits of each time.

    A word is an integer with the rounded times of a label in a few bits each. Times that all labels share have no bits;
    where there are very many times, the last ones have none either.
    """
    count, size = labels.shape
    least, most, sums = labels[0].copy(), labels[0].copy(), np.zeros(count, np.int64)
    for label in range(count):
        for time in range(size):
            least[time] = min(least[time], labels[label, time])
            most[time] = max(most[time], labels[label, time])
            sums[label] += labels[label, time]
    times, scale, parts = np.empty(size, np.int64), np.empty(size, np.float64), 0
    for time in range(size):
        if most[time] > least[time] and parts < _BITS // 2:
            times[parts] = time
            parts += 1
    each = _BITS // max(1, parts)
    found, free = np.zeros(count, np.int64), 0
    for place in range(parts):
        # Rounding is monotone: a time that is no larger stays no larger.
        scale[place] = (min(1 << (each - 1), 1 << 20) - 0.5) / (most[times[place]] - least[times[place]])
        free |= 1 << ((place + 1) * each - 1)
    for label in range(count):
        word = np.int64(0)
        for place in range(parts):
            time = times[place]
            word |= np.int64((labels[label, time] - least[time]) * scale[place]) << (place * each)
        found[label] = word
    return found, sums, free


@compiled
def _is_dominated(label: Numbers, word: int, free: int, kept: Numbers, words: Numbers) -> bool:
    """True if one of the labels `kept` dominates `label`: is in no time later.

    `word` is the word of `label`, an integer with its rounded times in a few bits each, and with the bits `free` set;
    `words` are those of `kept` without these bits. Words rule out most labels before their times are compared.
    """
    for since in range(0, len(words), _AT_ONCE):
        until = min(len(words), since + _AT_ONCE)
        if _some_word_dominates(words[since:until], word, free):
            for other in range(since, until):
                if (word - words[other]) & free == free and nowhere_later(kept[other], label):
                    return True
    return False


@compiled
def _some_word_dominates(words: Numbers, word: int, free: int) -> bool:
    """True if some of `words` is in no time larger than `word`, whose bits `free` are set.

    A word has the rounded times of a label, a few bits each. The loop has no early exit, so that the processor compares
    several words at once.
    """
    found = 0
    for other in range(len(words)):
        found += (word - words[other]) & free == free
    return found > 0


@compiled
def _merge(kept: Numbers, width: int) -> None:
    """Merge each label after the first `width` of `kept` into the one of those that it lowers least, in place.

    That one gets the minimum of each time; lowering counts as the sum over its times, in ticks.
    """
    stay, lowered_by = np.empty((kept.shape[1], width), kept.dtype), np.empty(width, np.int64)
    for one in range(width):
        for time in range(kept.shape[1]):
            stay[time, one] = kept[one, time]
    for other in range(width, len(kept)):
        for one in range(width):
            lowered_by[one] = 0
        for time in range(kept.shape[1]):
            for one in range(width):  # innermost, so that several are compared at once
                lowered_by[one] += max(0, stay[time, one] - kept[other, time])
        nearest = 0
        for one in range(1, width):
            if lowered_by[one] < lowered_by[nearest]:
                nearest = one
        for time in range(kept.shape[1]):
            kept[nearest, time] = min(kept[nearest, time], kept[other, time])


@compiled
def _sorted(labels: Numbers) -> Numbers:
    """Return the indices of the labels sorted by sum, then lexicographically."""
    sums = np.zeros(len(labels), np.int64)
    for label in range(len(labels)):  # Numba takes seconds to compile a sum along an axis
        for time in range(labels.shape[1]):
            sums[label] += labels[label, time]
    order = _in_turn(sums)
    for place in range(1, len(order)):
        at = place
        while at > 0 and sums[order[at - 1]] == sums[order[at]] and _before(labels[order[at]], labels[order[at - 1]]):
            order[at - 1], order[at] = order[at], order[at - 1]
            at -= 1
    return order


@compiled
def nowhere_later(one: Numbers, other: Numbers) -> bool:
    """True if the first label dominates the second: no time of it is later.

    Both are rows of times of the same state.
    """
    for entry in range(len(one)):  # noqa: SIM110 - Numba compiles no generator
        if one[entry] > other[entry]:
            return False
    return True


@compiled
def _before(one: Numbers, other: Numbers) -> bool:
    for entry in range(len(one)):
        if one[entry] != other[entry]:
            return bool(one[entry] < other[entry])
    return False
