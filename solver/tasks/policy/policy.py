"""Dispatching policies: numbers, each with a unit, that decide which ready task a free stream starts."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import NamedTuple

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class PolicyParams:
    """Sizes of random changes of a policy.

    At most `most_changes` numbers change at once; the standard deviation of a change is the number itself (at least 1),
    halved up to `most_halvings` times.
    """

    most_changes: int = tuned(3, "numbers changed at once", 1, 30)
    most_halvings: int = tuned(8, "halvings of a number, by which it changes at least", 1, 30)


_PARAMS = PolicyParams()


class Policy(NamedTuple):
    """Numbers by which a free stream chooses its next task.

    Ranks are times: the task of least rank goes first; urgent tasks go before all others. Units: a *period* is the time
    that the busiest stream needs for one micro-batch; a *transit* is the least time of one micro-batch from its first
    task to its last, in periods, as a number of micro-batches; a *duration* is the mean duration of a task.

    A stage has in flight at most `stretch` times the least number of micro-batches that keeps it busy, `slack` more,
    and `deep` more for each period before its device's first task is ready. Weight tasks wait up to `stock` periods of
    work, and `deep_stock` more for each such period. A rank is the least start plus so many periods for each
    micro-batch: `forward` (`forward_first` in the first `first` transits) or `backward`. Urgent are forwards and
    backwards of the first `early` transits, backwards of the last `late` and forwards of the last `late_forward`
    transits. For an urgent task a stream waits up to `patience` (backwards), `forward_patience` (forwards) or
    `late_patience` (late tasks) durations, and up to `most_patience` for the first `express` and the last
    `last_express` transits. With `order` above 1/2 backwards go before forwards.

    On stages where a chain returns to a device that it has visited before, the `_again` numbers replace the others,
    except `slack_again`, which is added. Only there `forward_later` and `backward_later` periods are added to ranks,
    and forwards of the last `closing` transits go sooner, by `hurry` periods for each micro-batch from the first of
    these on. Forwards leave room for `reserve` activations; reloads and recomputations start `later` periods later than
    possible.
    """

    # The limit of micro-batches in flight on a stage.
    stretch: float  # x the least number that keeps the stage busy
    slack: float  # micro-batches more
    deep: float  # micro-batches more for each period before the device's first task is ready
    # The limit of pending weight tasks.
    stock: float  # periods of work
    deep_stock: float  # periods of work for each period before the device's first task is ready
    # Ranks: the least start plus this many periods for each micro-batch.
    forward: float  # periods a micro-batch
    forward_first: float  # periods a micro-batch, of forwards of the first `first` transits
    first: float  # transits
    backward: float  # periods a micro-batch
    # Urgent tasks, by micro-batch.
    early: float  # transits: forwards and backwards of the first micro-batches
    late: float  # transits: backwards of the last micro-batches
    late_forward: float  # transits: forwards of the last micro-batches
    # How long a stream waits for an urgent task that will be ready soon.
    patience: float  # durations, for early backwards
    forward_patience: float  # durations, for early forwards
    late_patience: float  # durations, for late tasks
    most_patience: float  # durations, for the first `express` and the last `last_express` transits
    express: float  # transits
    last_express: float  # transits
    order: float  # above 1/2: backwards go before forwards
    slack_again: float  # micro-batches more in flight
    forward_again: float  # periods a micro-batch
    forward_first_again: float  # periods a micro-batch
    first_again: float  # transits
    forward_later: float  # periods added to the rank of forwards
    closing: float  # transits: the last forwards, which go sooner
    hurry: float  # periods sooner for each micro-batch from the first of these on
    backward_again: float  # periods a micro-batch
    backward_later: float  # periods added to the rank of backwards
    early_again: float  # transits
    late_again: float  # transits
    # For activations that are reloaded or recomputed.
    reserve: float  # activations that forwards leave room for
    later: float  # periods by which they are reloaded later than possible

    def moved(self, random: Random, again: bool = True, back: bool = False) -> Policy:
        """Return a random neighbour: a policy in which some numbers are changed, slightly or much.

        The numbers from `slack_again` to `late_again`, which count only on stages where a chain returns to a device,
        change only if `again`. The last two, for reloads and recomputations, change only if `back`.
        """
        found, count = list(self), Policy._fields.index("reserve" if again else "slack_again")
        for _ in range(random.randint(1, _PARAMS.most_changes)):
            at = random.randrange(count + 2 * back)
            at = at if at < count else at - count + Policy._fields.index("reserve")
            # A small or large change, in proportion to the number.
            found[at] += random.gauss(0, max(1.0, abs(found[at])) / 2 ** random.randint(0, _PARAMS.most_halvings))
            found[at] = max(_LOWEST[at], found[at])
        return Policy(*found)


# Only these numbers may be negative: ranks may be earlier, and limits lower, on stages `again`.
_LOWEST = Policy(
    *(-inf if name in ("slack_again", "forward_later", "backward_later") else 0.0 for name in Policy._fields)
)
# Two starts of the search. The first lets the first and the last micro-batches pass and forwards go ahead; the second
# runs backwards first, and nothing waits. On 42 problems (fresh seeds 93 and 94 of tasks, two of Kimi K2) 60 tries from
# both end .10 % above the best known; from numbers of four digits, tuned on Kimi K2 alone, they end .07 % above it.
STEADY = Policy(
    stretch=3.0, slack=1.0, deep=3.0, stock=5.5, deep_stock=0.7, forward=0.3, forward_first=4.5, first=0.0,
    backward=0.5, early=0.4, late=0.2, late_forward=0.0, patience=0.6, forward_patience=0.7, late_patience=0.4,
    most_patience=3.0, express=0.2, last_express=0.1, order=0.3, slack_again=8.0, forward_again=0.3,
    forward_first_again=0.0, first_again=0.3, forward_later=-0.1, closing=1.5, hurry=0.1, backward_again=0.6,
    backward_later=-2.0, early_again=0.7, late_again=0.6, reserve=0.0, later=0.0,
)  # fmt: skip
EAGER = Policy(
    stretch=2.0, slack=2.0, deep=0.0, stock=0.0, deep_stock=0.0, forward=1.0, forward_first=1.0, first=0.0,
    backward=1.0, early=0.0, late=0.0, late_forward=0.0, patience=0.0, forward_patience=0.0, late_patience=0.0,
    most_patience=0.0, express=0.0, last_express=0.0, order=1.0, slack_again=0.0, forward_again=1.0,
    forward_first_again=1.0, first_again=0.0, forward_later=0.0, closing=0.0, hurry=0.0, backward_again=1.0,
    backward_later=0.0, early_again=0.0, late_again=0.0, reserve=0.0, later=0.0,
)  # fmt: skip
