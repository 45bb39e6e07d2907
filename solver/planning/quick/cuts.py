"""Division of a model into stages of even load within the memory, by a greedy method."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solver.parameters import tunable, tuned
from solver.planning.quick.order_ends import WholeArray


@dataclass(frozen=True)
@tunable
class CutParams:
    """Precision of the greedy cuts of a model into stages."""

    precision: float = tuned(0.002, "of the longest stage, to which the least longest stage is searched", 1e-6, 0.1)


_PARAMS = CutParams()


class Cutter:
    """Divides a model into `stages` stages of at least one layer, at allowed positions.

    `cuts` are the layer numbers before which a stage may begin, ascending from 0 to the number of layers.
    """

    def __init__(self, cuts: Sequence[int], stages: int) -> None:
        self._cuts, self._stages = cuts, stages

    def by_load(
        self,
        load: WholeArray,
        memory: WholeArray,
        activation: WholeArray,
        in_flight: Sequence[float],
        room: Sequence[float | None],
    ) -> tuple[int, ...] | None:
        """Return the number of layers of each stage, with the longest stage as short as a greedy cut finds.

        None if none fits. `load`, `memory` and `activation` have at index n the sum over the first n layers. Stage k
        needs the `memory` of its layers plus `in_flight[k]` times their activation, and has `room[k]` (None:
        unlimited).
        """
        at = np.array(self._cuts)
        loads = load[at].tolist()
        fits: list[tuple[list[float], float] | None] = [
            None if limit is None else ((memory[at] + many * activation[at]).tolist(), limit)
            for many, limit in zip(in_flight, room, strict=True)
        ]
        low, high = loads[-1] / self._stages, float(loads[-1])
        found = self._greedy(loads, fits, high)
        while found is not None and high - low > _PARAMS.precision * low:
            middle = (low + high) / 2
            better = self._greedy(loads, fits, middle)
            low, high, found = (middle, high, found) if better is None else (low, middle, better)
        return found

    def _greedy(
        self, loads: list[int], fits: list[tuple[list[float], float] | None], most: float
    ) -> tuple[int, ...] | None:
        """Return the number of layers of each stage if each takes as many as load `most` and memory allow.

        `loads` are sums over the layers before each position where a stage may begin; `fits` has for each stage such
        sums of its memory needs, and its memory (None: unlimited). None if layers remain or a stage gets none. Each
        stage leaves at least one cut position for every stage after it.
        """
        begin, last, found = 0, len(loads) - 1, list[int]()
        for stage, fit in enumerate(fits):
            end = bisect_right(loads, loads[begin] + most) - 1
            if fit is not None:
                memory, limit = fit
                end = min(end, bisect_right(memory, memory[begin] + limit) - 1)
            end = min(end, last - (self._stages - 1 - stage))
            if end <= begin:
                return None
            found.append(self._cuts[end] - self._cuts[begin])
            begin = end
        return tuple(found) if begin == last else None
