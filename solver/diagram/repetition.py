"""Repetition in a decision diagram: the delay of all labels over some rounds, by which many rounds can be skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipesched.problem.quantities import Ticks
from solver.diagram.layers import Layer
from solver.diagram.moves import in_flight_of
from solver.diagram.steps import Steps
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class RepetitionParams:
    """Rounds of a diagram (each has every step once) after which further rounds are skipped."""

    rounds: int = tuned(96, "rounds compiled before any is skipped", 8, 10_000)
    lengths: tuple[int, ...] = tuned(
        (*range(1, 17), 24, 32, 48, 64, 80),
        "rounds of a period looked for: few, where labels repeat exactly, and many, which lose less", 1, 1000,
    )  # fmt: skip


_PARAMS = RepetitionParams()
ROUNDS = _PARAMS.rounds


def skip(rounds: Sequence[Layer], steps: Steps, most: int) -> tuple[int, Ticks]:
    """Return the number of rounds to skip, at most `most`, and the ticks by which every label is later after them.

    `rounds` has the layer after each round so far, in which every step is taken once. If after c rounds every label of
    a state is later by d or more than one that the state had before, it is so after each c further rounds: steps are
    monotone, and merging only makes labels earlier. The c with the largest delay per round is used; (0, 0) if there is
    none.
    """
    found = [
        (_delay(rounds[-1 - back], rounds[-1], steps), back)
        for back in _PARAMS.lengths
        if back <= min(most, len(rounds) - 1)
    ]
    if not found:
        return 0, 0
    delay, back = max(found, key=lambda one: (Fraction(*one), -one[1]))
    times = most // back if delay > 0 else 0
    return times * back, times * delay


def _delay(before: Layer, after: Layer, steps: Steps) -> Ticks:
    """Return the greatest d so that each label of `after` is at least d ticks later than one of its state in `before`.

    0 if a state had none.
    """
    places = {int(key): n for n, key in enumerate(before.keys)}
    delay: int | None = None
    for n, key in enumerate(after.keys):
        at = places.get(int(key))
        if at is None:
            return 0
        old = before.labels[before.first[at] : before.first[at + 1]]
        new = after.labels[after.first[n] : after.first[n + 1]]
        flying = in_flight_of(int(key), steps)
        known = [*range(flying), *range(steps.slots, new.shape[1])]
        of_state = int((new[:, None, known] - old[None, :, known]).min(axis=2).max(axis=1).min())
        delay = of_state if delay is None else min(delay, of_state)
        if delay <= 0:
            return 0
    return delay or 0
