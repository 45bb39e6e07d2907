"""Parameters of one run of simulated annealing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class AnnealParams:
    """Default distance of the moves of simulated annealing."""

    reach: int = tuned(8, "places that a unit is moved by at most", 1, 1000)


ANNEALING = AnnealParams()


class AnnealingParameters(NamedTuple):
    """Parameters of an annealing run.

    The temperatures, `hot` at first and `cold` at last, are in mean durations of a unit. The energy is the time of the
    longest device plus `evenness` times the mean over devices. A unit (pass or block) jumps over at most `reach`
    others; `filling` is the share of moves that bring a unit from anywhere into an idle time, `changing` the share of
    moves that change backward modes and blocks, where these are open. With `leaving`, a run whose first half finds
    nothing better than its start returns the best of its second half.
    """

    hot: float
    cold: float
    evenness: float
    filling: float
    reach: int = ANNEALING.reach
    changing: float = 0.0
    leaving: bool = False

    def in_ticks(self, mean: float) -> AnnealingParameters:
        """Return the parameters with temperatures in ticks, above 0; `mean` is the mean duration of a unit in ticks.

        All numbers get one type, so that one compiled version serves all calls.
        """
        hot, cold = max(1e-6, self.hot * mean), max(1e-9, self.cold * mean)
        return self._replace(hot=hot, cold=cold, evenness=float(self.evenness), filling=float(self.filling))
