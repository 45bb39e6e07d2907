"""A search for the policy of dispatching that ends first: some of its numbers are moved, and better ones kept."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.policy import EAGER, LEAN, STEADY, Policy
from solver.tasks.rank_search import Ranks


class PolicySearch:
    """`best` are the starts of the schedule that ends first, `ends` is when; None until a policy gives one."""

    def __init__(self, dispatcher: Dispatcher, seed: int) -> None:
        self._dispatcher, self._random = dispatcher, Random(seed)
        self._untried = [STEADY, LEAN, EAGER]
        self.policy: Policy | None = None
        self.best: Ranks | None = None
        self.ends: int | None = None

    def step(self) -> bool:
        """Try another policy; whether the best got better. One that ends as soon replaces it too."""
        policy = self._untried.pop(0) if self._untried else self._moved()
        found = self._dispatcher.run(policy)
        if found is None or (self.ends is not None and found[0] > self.ends):
            return False
        better = self.ends is None or found[0] < self.ends
        self.policy, (self.ends, self.best) = policy, found
        return better

    def _moved(self) -> Policy:
        return (self.policy or STEADY).moved(self._random, self._dispatcher.again)

    def go_on_from(self, others: Sequence[PolicySearch]) -> None:
        """The best policy of several searches is that of this one."""
        known = [one for one in (self, *others) if one.ends is not None]
        best = min(known, key=lambda one: one.ends or 0, default=self)
        self.policy, self.best, self.ends = best.policy, best.best, best.ends
