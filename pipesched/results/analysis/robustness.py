"""A schedule under random durations: its mean value, compared with those of published schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pipesched.simulation.noise import Noise


class Rival(NamedTuple):
    """A published schedule under the same noise: its mean, and the standard error of the difference to our mean.

    Numbers are in the file's unit. Both see the same durations, so that the difference is far better known than either
    mean.
    """

    name: str
    mean: float
    error: float = 0.0


@dataclass(frozen=True)
class Robustness:
    """The mean value of a schedule over random durations, and of published ones that are nearly as good without noise.

    Values are in the file's unit. `published` are ordered by their value without noise. `fresh_mean` is the mean over
    as many other samples, since a search may overfit to the samples that it has seen.
    """

    noise: Noise
    mean: float
    fresh_mean: float
    published: tuple[Rival, ...] = ()

    @property
    def best_published(self) -> Rival | None:
        """The published schedule with the least mean; None if there is none."""
        return min(self.published, key=lambda one: one.mean, default=None)

    @property
    def reverses(self) -> bool:
        """True if a published schedule, none of which is better without noise, is significantly better under noise.

        Significant means by more than twice the standard error of the difference.
        """
        best = self.best_published
        return best is not None and best.mean + 2 * best.error < self.mean

    def document(self) -> dict[str, object]:
        """Return the object under `under_noise` of `solve --json`; values in the file's unit.

        It has the settings of the noise, `mean`, the mean value of the schedule, `mean_on_fresh_samples`,
        `best_published`, the `name` and `mean` of a published schedule, None if none is near, and `reverses`.
        """
        best = self.best_published
        return {
            "relative_standard_deviation": self.noise.deviation,
            "samples": self.noise.samples,
            "seed": self.noise.seed,
            "mean": self.mean,
            "mean_on_fresh_samples": self.fresh_mean,
            "best_published": None if best is None else {"name": best.name, "mean": best.mean},
            "reverses": self.reverses,
        }
