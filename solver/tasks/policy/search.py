"""Search for the dispatching policy with the earliest end: some of its numbers are changed, and better ones kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from solver.parameters import tunable, tuned
from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.policy import Policy
from solver.tasks.rank_search import Ranks


@dataclass(frozen=True)
@tunable
class PolicySearchParams:
    """Frequency with which the policy search changes the dispatcher, and thereby the choice of activation modes.

    Another dispatcher is drawn after `tries_per_dispatcher` tries on average.
    """

    tries_per_dispatcher: int = tuned(6, "tries on average, until another dispatcher is drawn", 1, 1000)


_PARAMS = PolicySearchParams()


class PolicySearch:
    """Local search from policy `start`; `best` has the best schedule's starts, `ends` its end in steps (None at first).

    The starts are in steps, by place in `dispatcher.serial.running`. The dispatchers differ in the activation modes of
    the jobs that run; `dispatcher` and `policy` gave the best schedule (`policy` is None at first).
    """

    def __init__(self, dispatchers: Sequence[Dispatcher], start: Policy, seed: int) -> None:
        self._dispatchers, self.start, self._random = [one.twin() for one in dispatchers], start, Random(seed)
        self._untried = [*self._dispatchers]
        self.dispatcher = self._dispatchers[0]
        self.policy: Policy | None = None
        self.best: Ranks | None = None
        self.ends: int | None = None

    def step(self) -> bool:
        """Try another policy and keep it if its schedule ends no later than the best so far; True if earlier."""
        dispatcher, policy = (self._untried.pop(0), self.start) if self._untried else self._moved()
        found = dispatcher.run(policy)
        if found is None or (self.ends is not None and found[0] > self.ends):
            return False
        better = self.ends is None or found[0] < self.ends
        self.dispatcher, self.policy, (self.ends, self.best) = dispatcher, policy, found
        return better

    def _moved(self) -> tuple[Dispatcher, Policy]:
        dispatcher = self.dispatcher
        if not self._random.randrange(_PARAMS.tries_per_dispatcher):
            dispatcher = self._random.choice(self._dispatchers)
        return dispatcher, (self.policy or self.start).moved(self._random, dispatcher.again, dispatcher.back)

    def go_on_from(self, others: Sequence[PolicySearch]) -> None:
        """Continue from the best policy that this search or one of `others` found.

        Those of `others` that began with another start policy are ignored.
        """
        known = [one for one in (self, *others) if one.ends is not None and one.start is self.start]
        best = min(known, key=lambda one: one.ends or 0, default=self)
        self.dispatcher = self._dispatchers[best._dispatchers.index(best.dispatcher)]
        self.policy, self.best, self.ends = best.policy, best.best, best.ends
