"""Policies of dispatching: a few numbers that say which task of a problem a free stream begins.

Times are in periods: what the busiest stream needs for a micro-batch. Micro-batches are in ways: as many as there are
periods in the least time of one micro-batch from its first task to its last.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import NamedTuple

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class PolicyParams:
    """Random changes of a policy."""

    most_changes: int = tuned(3, "numbers changed at once", 1, 30)
    most_halvings: int = tuned(8, "halvings of a number, by which it changes at least", 1, 30)


_PARAMS = PolicyParams()


class Policy(NamedTuple):
    """Under way on a stage: `stretch` times the least its micro-batches need, `slack` more, and `deep` for each period
    that its device waits for its first task. Weight tasks wait up to `stock` periods of work and `deep_stock` likewise.

    Forwards rank by their least start and `forward` a micro-batch, those of the first `first` ways by `forward_first`;
    backwards by `backward`. Urgent are the first `early` ways of micro-batches, the backwards of the last `late`, and
    the forwards of the last `late_forward`: by micro-batch. A stream waits `patience` mean lengths of tasks for
    early backwards, `forward_patience` for early forwards, `late_patience` for the late ones, and `most_patience` for
    the first `express` ways and the last `last_express`. Backwards come before forwards where `order` is above a half.

    On stages where a chain comes to its device again, numbers `_again` stand for the others, but `slack_again`, which
    is added. There forwards and backwards rank `forward_later` and `backward_later` periods later, and forwards of the
    last `closing` ways `hurry` sooner for each micro-batch from the first of these on.

    Where activations come back, by copies or recomputed, forwards leave room for `reserve` of them, and they come back
    `later` periods after they may.
    """

    stretch: float
    slack: float
    deep: float
    stock: float
    deep_stock: float
    forward: float
    forward_first: float
    first: float
    backward: float
    early: float
    late: float
    late_forward: float
    patience: float
    forward_patience: float
    late_patience: float
    most_patience: float
    express: float
    last_express: float
    order: float
    slack_again: float
    forward_again: float
    forward_first_again: float
    first_again: float
    forward_later: float
    closing: float
    hurry: float
    backward_again: float
    backward_later: float
    early_again: float
    late_again: float
    reserve: float
    later: float

    def moved(self, random: Random, again: bool = True, back: bool = False) -> Policy:
        """Some of the numbers a little or far from here; those of stages `again` and of what comes `back` if any."""
        found, count = list(self), Policy._fields.index("reserve" if again else "slack_again")
        for _ in range(random.randint(1, _PARAMS.most_changes)):
            at = random.randrange(count + 2 * back)
            at = at if at < count else at - count + Policy._fields.index("reserve")
            # A little or far, by its own size.
            found[at] += random.gauss(0, max(1.0, abs(found[at])) / 2 ** random.randint(0, _PARAMS.most_halvings))
            found[at] = max(_LOWEST[at], found[at])
        return Policy(*found)


# Below 0 only where something may rank sooner, or have fewer under way, on stages `again`.
_LOWEST = Policy(
    *(-inf if name in ("slack_again", "forward_later", "backward_later") else 0.0 for name in Policy._fields)
)
# Tuned on Kimi K2's 61 layers on 16 devices: it lets the first and the last micro-batch pass, and forwards go ahead.
STEADY = Policy(
    3.0277, 1.2118, 3.1509, 5.3379, 0.7076, 0.306, 4.6705, 0.0, 0.5396, 0.4263, 0.2237, 0.0, 0.5583, 0.6589, 0.4115,
    2.9143, 0.2047, 0.0952, 0.3236, 7.9057, 0.3375, 0.0, 0.2881, -0.071, 1.4206, 0.062, 0.5794, -2.2469, 0.7133, 0.5892,
    0.0, 0.0
)  # fmt: skip
# Backwards first, and nothing waits.
EAGER = Policy(
    2.0, 2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0,
    0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
)  # fmt: skip
