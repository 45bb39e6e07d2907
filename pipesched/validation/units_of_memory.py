"""Units of a memory handed out to what takes some: a resource flow, found by exchanging units handed out already."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Units:
    """Units of a memory and who has them; `given[t, g]` says whether giver g has surely ended when taker t starts."""

    def __init__(self, given: NDArray[np.bool_], amounts: Sequence[int], stock: int) -> None:
        # The last source is the stock, which anyone may take; before it come first those that the fewest may take.
        self._order = [*np.argsort(given.sum(axis=0), kind="stable").tolist(), len(amounts)]
        self._open = np.append(given, np.ones((len(given), 1), bool), axis=1)[:, self._order]
        self._left = [*amounts, stock]
        self._users: list[dict[int, int]] = [{} for _ in self._left]

    def hand_out(self, taker: int, amount: int) -> list[int]:
        """Give a taker so much; if that cannot be, the takers of a state that holds too much."""
        while amount > 0:
            source, asks, has = self._search(taker)
            if source is None:
                return list(has)
            steps = [(source, asks[source])]
            while (other := has[steps[-1][1]]) is not None:
                steps.append((other, asks[other]))
            freed = [self._users[other][user] for (other, _), (_, user) in zip(steps[1:], steps, strict=False)]
            moved = min(amount, self._left[source], *freed)
            self._left[source] -= moved
            for one, user in steps:
                self._users[one][user] = self._users[one].get(user, 0) + moved
                if (other := has[user]) is not None:
                    self._users[other][user] -= moved
            amount -= moved
        return []

    def _search(self, taker: int) -> tuple[int | None, dict[int, int], dict[int, int | None]]:
        """A source with some left, by a shortest chain of exchanges.

        With the taker that asks for each source, and for each taker the source of which it would free what it has.
        """
        asks: dict[int, int] = {}
        has: dict[int, int | None] = {taker: None}
        queue = deque([taker])
        unseen = np.ones(len(self._order), bool)
        while queue:
            user = queue.popleft()
            here = np.flatnonzero(self._open[user] & unseen)
            unseen[here] = False
            for source in (self._order[place] for place in here.tolist()):
                asks[source] = user
                if self._left[source] > 0:
                    return source, asks, has
                for other, amount in self._users[source].items():
                    if amount > 0 and other not in has:
                        has[other] = source
                        queue.append(other)
        return None, asks, has
