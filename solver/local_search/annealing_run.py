"""Parameters of one run of simulated annealing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class AnnealParams:
    """Default distance of the moves of simulated annealing.

    `reach` is the number of places that most moves move a unit by, at most.
    """

    reach: int = tuned(8, "places that most moves move a unit by, at most", 1, 1000)


ANNEALING = AnnealParams()


class AnnealingRun(NamedTuple):
    """Parameters of an annealing run.

    The temperatures, `hot` at first and `cold` at last, are in mean durations of a unit. The energy is the time of the
    longest device plus `evenness` times the mean over devices. `changing` is the share of moves that change backward
    modes and blocks, where these are open. Of the others, a share of `filling` brings a unit (pass or block) from
    anywhere into an idle time. In what remains, a unit jumps over at most `reach` others, but in a share of `filling`
    over any number. With `leaving`, a run whose first half finds nothing better than its start returns the best of its
    second half.
    """

    hot: float
    cold: float
    evenness: float
    filling: float
    reach: int = ANNEALING.reach
    changing: float = 0.0
    leaving: bool = False

    def in_ticks(self, mean: float) -> AnnealingRun:
        """Return the parameters with temperatures above 0 in the time of the units; `mean` is a unit's mean duration.

        Their time is in ticks, or in steps if they are jobs. Each field has the same type in all results, so that one
        compiled version serves all calls.
        """
        hot, cold = max(1e-6, self.hot * mean), max(1e-9, self.cold * mean)
        return self._replace(hot=hot, cold=cold, evenness=float(self.evenness), filling=float(self.filling))
