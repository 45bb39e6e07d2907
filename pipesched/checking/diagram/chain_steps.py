"""Model of the orders of some stages' steps, including blocks of a forward and a gradient; compiled by Numba.

Where rounds repeat, in each of which every step runs once, the orders of many further rounds are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from pipesched.checking.diagram.completion import FOREVER
from pipesched.checking.diagram.labels import copy_times
from pipesched.checking.diagram.model import Labels, Layer, Numbers, Reached, Successors
from pipesched.checking.diagram.moves import moves_from, raise_times, run_move, waiting
from pipesched.checking.diagram.projected_completion import SmallerBounds, clear_excluded
from pipesched.checking.diagram.walk import NONE, Steps, Walk, runs_of
from pipesched.compiled import compiled

_LATE = 2**60
# Rounds, in each of which every step runs once, until repetitions are looked for, and of how many rounds.
_ROUNDS, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)


class ChainSteps:
    """The `Model` of the orders of a walk's steps, without those that completion bounds of fewer stages exclude.

    A layer is a number of steps run; a block of two steps leads two layers further.
    """

    most = 150_000_000  # labels beyond which the check would take minutes

    def __init__(self, walk: Walk, bounds: Sequence[SmallerBounds] = ()) -> None:
        steps = self._steps = walk.steps
        self._bounds, self._rounds = bounds, list[Layer]()
        label = np.zeros((1, steps.columns + 2 * len(steps.room)), np.int32 if walk.longest < FOREVER else np.int64)
        label[:, steps.columns :] = steps.past
        self.root = Layer(np.zeros(1, np.int64), np.array([0, 1]), label)
        # What ran before a later step's time 0 is not repeated.
        one_chain, from_start = steps.last[0] + 1 == len(steps.ticks), steps.owner in (NONE, steps.device[0])
        self._repeats = not bounds and one_chain and from_start and bool((steps.together < 0).all())

    def successors(self, layer: Layer, done: int, threshold: int) -> Iterator[Successors]:
        """Yield the labels of a layer after each single step, then after each block, which is two layers further.

        Labels with a micro-batch that is done at `threshold` ticks or later are left out. `done` is the number of steps
        run before the layer.
        """
        run = runs_of(layer.keys, done, self._steps)
        moves = moves_from(layer.keys, run, self._steps)
        blocks = moves[:, 2] >= 0
        for n, of_layer in enumerate((moves[~blocks], moves[blocks])):
            if len(of_layer):
                keys, labels, end, tried = expand(run, layer, of_layer, self._steps, threshold)
                nothing = Reached(keys[:0], labels[:0])
                yield Successors((*[nothing] * n, Reached(keys, labels)), tried, end)

    def admitted(self, found: Layer, order: Numbers, done: int, threshold: int) -> Labels | None:
        """Return an array with True for each label that every smaller diagram can complete before the threshold.

        Without smaller diagrams the result is None. The labels of state n in `found` are
        `found.labels[order[found.at[n]:found.at[n + 1]]]`; the result has an entry for each row of these labels. `done`
        is the number of steps run.
        """
        if not self._bounds:
            return None
        run, stay = runs_of(found.keys, done, self._steps), np.ones(len(order), np.bool_)
        for bound in self._bounds:
            clear_excluded(run, found.at, order, found.labels, stay, threshold, self._steps, bound)
        return stay

    def repeated(self, layer: Layer, done: int) -> tuple[Layer, int]:
        """Return the layer after skipping rounds that only repeat earlier ones, and the number of layers skipped.

        In a round every step runs once. Rounds are skipped for a single chain without completion bounds, once enough of
        them are known; else the number is 0. Layers after whole rounds are kept for this, so that each is to be passed
        once, in order. `done` is the number of steps run before the layer.
        """
        size = len(self._steps.ticks)
        if not self._repeats or done % size or len(self._rounds) == _ROUNDS:
            return layer, 0
        self._rounds.append(layer)
        if len(self._rounds) < _ROUNDS:
            return layer, 0
        skipped, later = _repeated(self._rounds, done, self._steps)
        return layer._replace(labels=layer.labels + later), skipped * size


@compiled
def expand(
    run: Numbers, reached: Layer, moves: Numbers, steps: Steps, threshold: int
) -> tuple[Numbers, Labels, int, int]:
    """Return keys and labels after `moves`, the least end in ticks of completed orders, and the number of labels tried.

    `run` has by state of the layer `reached` and by step how often the step has run. A move is a row: state, step,
    gradient in a block with it or -1, ticks of weight work that may be pending, 1 if the order is over, key of the next
    state, and ticks after the last step of a micro-batch. Labels are omitted if a micro-batch that has finished its
    chain is done no sooner than `threshold` ticks; the least end is `_LATE` if no order is completed. Compiled, as
    millions of labels are tried.
    """
    at, labels, found, looked, least = reached.at, reached.labels, 0, 0, _LATE
    keys, new = np.empty(2 * len(labels) + 1, np.int64), np.empty((2 * len(labels) + 1, labels.shape[1]), labels.dtype)
    after, looks = np.empty(run.shape[1], np.int64), np.empty((2, labels.shape[1]), np.int64)
    for one, n, g, may, over, key, tail in moves:
        for step in range(len(after)):
            after[step] = run[one, step] + (1 if step in (n, g) else 0)
        in_flight = waiting(after, looks, steps)
        for k in range(at[one], at[one + 1]):
            if found == len(keys):
                keys, new = np.concatenate((keys, keys)), np.concatenate((new, new))
            looked, keys[found] = looked + 1, key
            copy_times(labels[k], new[found])
            done = run_move(new[found], n, g, run[one], may, steps) + tail
            if over:
                for device in steps.counted:
                    done = max(done, np.int64(new[found, steps.columns + len(steps.room) + device]))
                least = min(least, max(0, done))
            elif done < threshold:
                raise_times(new[found], after, looks, in_flight, steps)
                found += 1
    return keys[:found].copy(), new[:found].copy(), least, looked


def _repeated(rounds: list[Layer], done: int, steps: Steps) -> tuple[int, int]:
    """Return the number of rounds to skip, and the ticks by which all times are later after them.

    Moves are monotone in times. So if all labels of each state are later by some time than labels that the state had
    some rounds before, they are later by the same time again after as many further rounds. `rounds` are the layers
    after each round so far; `done` is the number of steps run. (0, 0) if nothing repeats.
    """
    best, most = (Fraction(0), 0, 0, 0), int(steps.number[0] - done // len(steps.ticks) - steps.admitted[0] - 1)
    run = runs_of(rounds[-1].keys, done, steps)
    for back in (back for back in _LOOK_BACK if back <= min(most, len(rounds) - 1)):
        later = _later(rounds[-1 - back], rounds[-1], run[:, 0] - run[:, -1], steps.columns)
        repeats = most // back
        best = max(best, (Fraction(later, back), -back, repeats * back, repeats * later))
    return best[2:] if best[0] > 0 else (0, 0)


def _later(before: Layer, after: Layer, in_flight: Numbers, columns: int) -> int:
    """Return the least ticks by which each label of `after` is later than some label of the same state in `before`.

    0 if a state had none. Only times of micro-batches under way and of devices count. `in_flight` is by state of
    `after` the number of micro-batches under way, whose times are the first columns of a label; times of devices are
    those from `columns` on.
    """
    found = list[int]()
    for n, key in enumerate(after.keys):
        at = int(np.searchsorted(before.keys, key))
        if at == len(before.keys) or before.keys[at] != key:
            return 0
        counted = [*range(in_flight[n]), *range(columns, after.labels.shape[1])]
        old = before.labels[before.at[at] : before.at[at + 1], counted]
        new = after.labels[after.at[n] : after.at[n + 1], counted]
        found.append(min(max(int((row - one).min()) for one in old) for row in new))
    return min(found)
