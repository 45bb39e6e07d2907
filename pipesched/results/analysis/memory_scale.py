"""The memory level of a schedule as one number: the peak of the device that needs most."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.problem.formatting import memory_text, plain
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics


@dataclass(frozen=True)
class MemoryScale:
    """The scale of memory levels.

    Levels are in the file's unit if all devices have the same capacity or some have none; if capacities differ, they
    are shares of the device's own (`by_share`), since the fullest device is the one that fails. A device's level is its
    peak memory in steps of the resolution, divided by its entry of `weights`.
    """

    problem: Problem
    weights: tuple[Fraction, ...]
    by_share: bool

    def of(self, metrics: Metrics) -> Fraction:
        """Return the memory level of a schedule in the unit of this scale: the highest of all devices."""
        return max(peak / weight for peak, weight in zip(metrics.peak_quanta, self.weights, strict=True))

    def text(self, level: Fraction) -> str:
        """Return a level, in the unit of this scale, as text: an amount in the file's unit, or per cent of a capacity.

        The text says so if static memory is not part of the level.
        """
        of_activations = " for activations" if any(self.problem.static) else ""
        if self.by_share:
            return f"{plain(round(100 * float(level), 4))} % of its capacity{of_activations}"
        return memory_text(self.problem, int(level / self.problem.resolution)) + of_activations
