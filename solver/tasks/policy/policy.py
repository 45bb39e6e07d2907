"""Policies of dispatching: a few numbers that say which task of a problem a free stream begins.

Times are in periods: what the busiest stream needs for a micro-batch. Micro-batches are in ways: as many as there are
periods in the least time of one micro-batch from its first task to its last.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple


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
        for _ in range(random.choice((1, 1, 2, 3))):
            at = random.randrange(count + 2 * back)
            at = at if at < count else at - count + Policy._fields.index("reserve")
            low, high = LOWEST[at], HIGHEST[at]
            found[at] += random.gauss(0, random.choice((0.005, 0.02, 0.05, 0.15, 0.4)) * (high - low))
            found[at] = min(high, max(low, found[at]))
        return Policy(*found)


LOWEST = Policy(
    1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    -8.0, 0.0, 0.0, 0.0, -6.0, 0.0, 0.0, 0.0, -6.0, 0.0, 0.0, 0.0, 0.0
)  # fmt: skip
HIGHEST = Policy(
    4.0, 5.0, 8.0, 6.0, 3.0, 2.0, 6.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 4.0, 4.0, 0.6, 0.6, 1.0,
    8.0, 2.0, 4.0, 2.0, 6.0, 2.0, 2.0, 2.0, 6.0, 2.0, 2.0, 4.0, 1.0
)  # fmt: skip
# Tuned on Kimi K2's 61 layers on 16 devices: it lets the first and the last micro-batch pass, and forwards go ahead.
STEADY = Policy(
    3.0277, 1.2118, 3.1509, 5.3379, 0.7076, 0.306, 4.6705, 0.0, 0.5396, 0.4263, 0.2237, 0.0, 0.5583, 0.6589, 0.4115,
    2.9143, 0.2047, 0.0952, 0.3236, 7.9057, 0.3375, 0.0, 0.2881, -0.071, 1.4206, 0.062, 0.5794, -2.2469, 0.7133, 0.5892,
    0.0, 0.0
)  # fmt: skip
# It holds less, and has the same numbers wherever a chain is on its way.
LEAN = Policy(
    2.46, 2.58, 1.04, 1.91, 0.5, 0.4, 2.0, 0.97, 0.256, 0.482, 0.487, 0.0, 0.65, 0.65, 0.684, 4.0, 0.164, 0.0958, 0.2,
    0.0, 0.4, 2.0, 0.97, 0.0, 0.0, 0.0, 0.256, 0.0, 0.482, 0.487, 0.0, 0.0
)  # fmt: skip
# Tuned on the same with every activation copied to the host and back, and memory for nine on a device.
COPYING = Policy(
    2.9653, 4.9798, 8.0, 5.3465, 0.0031, 0.2059, 4.2089, 0.0, 0.2319, 0.4601, 0.2993, 0.0, 0.0, 0.0, 0.6247,
    3.9128, 0.1907, 0.176, 0.0, 5.4566, 0.3375, 0.5094, 0.2861, -0.0548, 0.0, 2.0, 0.8073, -2.2773, 0.7035, 0.5378,
    0.0942, 0.0246
)  # fmt: skip
# Likewise on eight of the layers on four devices, with memory for four.
COPYING_TIGHT = Policy(
    4.0, 0.7156, 5.9465, 5.9595, 2.9467, 0.2853, 6.0, 0.0, 0.8967, 1.3199, 0.689, 0.0, 0.0233, 1.1663, 2.4248, 4.0,
    0.0, 0.2245, 0.375, 4.5513, 0.3128, 0.1427, 0.2984, 0.0093, 0.1613, 0.0, 1.098, -2.5689, 0.6383, 0.0, 0.0, 0.0284
)  # fmt: skip
# Backwards first, and nothing waits.
EAGER = Policy(
    1.5, 2.0, 0.0, 0.3, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0,
    0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
)  # fmt: skip
