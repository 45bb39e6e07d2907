"""Threshold search (destructive lower bounds): only orders that may end before V are followed, by completion bounds.

A backward pass with one label per state gives completion bounds: over all modelled stages, or over some of them. A
label that cannot end before V is pruned; so fewer labels of a state have to be merged than without a threshold. Orders
that remain end at the least of their ends, and pruned ones at V or later: the lesser of the two is proved. V is chosen
between the proved bound and the value of a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.certificate import certificate_of
from solver.diagram.completion import Among, completion, numbers_of
from solver.diagram.layers import Labels, Least
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.models.chain_steps import least_end
from solver.diagram.params import DIAGRAMS
from solver.diagram.projected_completion import SmallerDiagram, projected_completions
from solver.diagram.steps import ModelledSteps
from solver.diagram.thresholds import refuted_thresholds

# Returns the bound proved so far, and the value of the best schedule known so far, in ticks.
Open = Callable[[], tuple[float, float]]


class ThresholdSearch:
    """Search of thresholds between the bound proved so far and the value of the best schedule.

    `paths` are the least times of `problem`. `open_ticks()` returns these two values in ticks; a schedule must be
    known, so that the second is finite. `width` is the most labels per state, `work` the number of labels that may
    still be looked at, which the methods take theirs off, `numbers` the number of integers that may be stored at once.
    The event `stop` ends the search. `ended` is the greatest bound in ticks that the last run of `certificates` proved,
    0 without one. Raises `ValueError` for unequal micro-batches.
    """

    def __init__(
        self,
        problem: Problem,
        stop: Event,
        open_ticks: Open,
        width: int = DIAGRAMS.width,
        work: int = DIAGRAMS.most_labels,
        numbers: int = DIAGRAMS.most_numbers,
    ) -> None:
        self.problem, self.stop, self.paths = problem, stop, Paths(problem)
        self.work, self.numbers, self._width = work, numbers, width
        self._open, self._best = open_ticks, 0
        self.ended = 0  # the bound proved last, which may be less than the best one

    @property
    def between(self) -> tuple[Ticks, Ticks]:
        """The bound proved so far, and the value of the best schedule known, in whole ticks, each rounded up."""
        proved, known = self._open()
        return max(self._best, ceil(proved)), ceil(known)

    @property
    def over(self) -> bool:
        """True if the bound is tight, the work is used up, or the search is stopped."""
        proved, known = self.between
        return self.work <= 0 or proved >= known or self.stop.is_set()

    def kept(self, stages: Sequence[StageId], owner: DeviceId | None) -> ModelledSteps | None:
        """Return the steps to model for these stages; None where numbers are too large or nothing fits the memory.

        `owner` is the device whose span counts, None for the makespan or from the first forward of the only chain.
        """
        return modelled_steps(self.problem, self.paths, stages, owner)

    def smaller_diagram(self, stages: Sequence[StageId], owner: DeviceId | None) -> SmallerDiagram | None:
        """Return the completion bounds of a backward pass over some stages, which also count in `work`.

        They prune orders over these and over more stages. `owner` is the device whose span counts, None for the
        makespan or from the first forward of the only chain. None if numbers are too large, nothing fits the memory,
        too many integers would be stored, or after a stop.
        """
        kept = self.kept(stages, owner)
        if kept is None or numbers_of(kept) > DIAGRAMS.completion_numbers * self.numbers:
            return None
        layers = completion(kept.steps, self.numbers, self.stop)
        if layers is None:
            return None
        self.work -= sum(len(layer.keys) for layer in layers)
        return SmallerDiagram(kept, layers)

    def certificates(
        self,
        kept: ModelledSteps,
        smaller: Sequence[SmallerDiagram],
        step: Ticks,
        shortest: Ticks,
        rows: int | None = None,
        at_once: int = 0,
    ) -> Iterator[Certificate]:
        """Yield certificates of increasing value from orders of the steps `kept`, pruned by the diagrams in `smaller`.

        All are above the bound proved so far. First the value of the best schedule is tried as threshold, within
        `at_once` labels (0: not tried). Then thresholds grow by `step` ticks at first, and by no less than `shortest`.
        With `rows`, each diagram in `smaller` computes its completion rows again for each threshold, up to that many
        per state.
        """
        at_every_threshold = projected_completions(self.problem, kept, smaller if rows is None else ())

        def least_end_before(value: Ticks, work: int) -> Least:
            completions, used = at_every_threshold, 0
            if rows is not None:
                several = list[SmallerDiagram]()
                for one in smaller:
                    again, more = self._before_threshold(one, value, rows, work - used, self.numbers // len(smaller))
                    used += more
                    if again is None:
                        return Least(None, used, True)
                    several.append(again)
                completions = projected_completions(self.problem, kept, several, rows)
            least = least_end(kept.steps, self._width, work - used, self.stop, completions, value)
            return least._replace(work=least.work + used)

        completion_stages = tuple(stage for stage in kept.stages if any(stage in one.kept.stages for one in smaller))
        self.ended = 0
        for found in refuted_thresholds(
            least_end_before, lambda: self.between, (step, shortest), self.work, self.stop, at_once
        ):
            self.work, self.ended = self.work - found.work, max(self.ended, found.ticks)
            if found.ticks > self.between[0]:
                self._best = found.ticks
                yield certificate_of(
                    self.problem, kept, found.ticks, self._width, found.threshold, completion_stages, rows
                )

    def step(self, share: int = DIAGRAMS.value_step) -> Ticks:
        """Return the first step between thresholds, in ticks: the open gap / `share`, rounded down, at least 1."""
        proved, known = self.between
        return max(1, (known - proved) // share)

    def shortest(self) -> Ticks:
        """Return the shortest step between thresholds that is tried, in ticks: a part of the first one, at least 1."""
        return max(1, self.step() // DIAGRAMS.shortest_value_step)

    def _before_threshold(
        self, smaller: SmallerDiagram, value: Ticks, rows: int, work: int, numbers: int
    ) -> tuple[SmallerDiagram | None, int]:
        """Return a smaller diagram whose completion rows are of orders that may end before `value`.

        A state has up to `rows` of them. The second value is the number of labels looked at. The diagram is None if
        that takes more than `work` labels, more than `numbers` integers would be stored, or after a stop.
        """
        reached, completions = list[Labels](), projected_completions(self.problem, smaller.kept, [smaller])
        least = least_end(smaller.kept.steps, self._width, work, self.stop, completions, value, reached=reached)
        if least.ticks is None:
            return None, least.work
        layers = completion(smaller.kept.steps, numbers, self.stop, Among(reached, rows, value))
        return None if layers is None else SmallerDiagram(smaller.kept, layers), least.work
