"""The explanation of a solution ("why not better"): its bottleneck, and the effect of each change tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.results.analysis.bottleneck import Bottleneck


class PerturbationKind(StrEnum):
    """The kind of change of a problem that an explanation tries.

    More `MEMORY`, a faster `TRANSFER`, faster `PASSES` or tasks of a `STREAM`, work of a stage moved to its neighbour
    (`MOVE`), or additional work of the end stages shared by all devices (`SHARE`).
    """

    MEMORY = "memory"
    TRANSFER = "transfer"
    PASSES = "passes"
    STREAM = "stream"
    MOVE = "move"
    SHARE = "share"


@dataclass(frozen=True)
class Perturbation:
    """A problem with one quantity changed, of this `kind`.

    `text` describes the change, `device` is the device that it concerns (None: not one alone). `relaxes`: every
    schedule of the original problem is a schedule of the changed one, and no slower there.
    """

    kind: PerturbationKind
    text: str
    problem: Problem
    relaxes: bool
    device: DeviceId | None = None


@dataclass(frozen=True)
class BoundAndValue:
    """The lower bound and the best value found (None: none) of a problem, in the file's time unit."""

    lower_bound: Fraction
    value: Fraction | None


@dataclass(frozen=True)
class Effect:
    """The effect of a change: bound and value of the changed problem (`outcome`).

    `reason` says why the changed problem has no schedule at all; the outcome's value is then None. It is empty if there
    may be one.
    """

    change: Perturbation
    outcome: BoundAndValue
    reason: str = ""


@dataclass(frozen=True)
class Explanation:
    """The explanation of a solution: its bottleneck, and the effects of changes.

    `known` is the result of the solve. `again` is the result, for the unchanged problem, of a search as short as each
    change's (None if there was no time): it shows how much of a difference is due to the short search. `untried` are
    changes not tried within the time limit, or since the user stopped the search (`interrupted`).
    """

    bottleneck: Bottleneck
    known: BoundAndValue
    again: BoundAndValue | None
    effects: tuple[Effect, ...] = ()
    untried: tuple[Perturbation, ...] = ()
    interrupted: bool = False

    @property
    def unchanged(self) -> BoundAndValue:
        """The strongest bound and the best value known of the unchanged problem.

        Bounds of relaxed problems hold for it too.
        """
        searched = [self.known, *([self.again] if self.again else [])]
        relaxed = [e.outcome.lower_bound for e in self.effects if e.change.relaxes]
        values = [outcome.value for outcome in searched if outcome.value is not None]
        return BoundAndValue(max([*(one.lower_bound for one in searched), *relaxed]), min(values, default=None))

    def gain(self, effect: Effect) -> tuple[Fraction, Fraction] | None:
        """Return the least and the most, as proved, by which a change lowers the best value, in the file's time unit.

        The best possible value lies between bound and best value found, before and after the change; so both may be
        negative, the least not if the change only relaxes the problem. None if no schedule is known before or after it.
        """
        before, after = self.unchanged, effect.outcome
        if before.value is None or after.value is None:
            return None
        most = before.value - after.lower_bound
        least = before.lower_bound - after.value
        return (max(Fraction(0), least) if effect.change.relaxes else least), most

    def ranked(self) -> tuple[Effect, ...]:
        """Return the effects, the largest gain first.

        They are compared by the proved decrease (if the value surely rises, by the least rise), then by the decrease of
        the best value found, then by the largest possible decrease. Inconclusive effects, and those that leave no
        schedule, are last. Equal effects keep their order.
        """
        return tuple(sorted(self.effects, key=self._rank, reverse=True))

    def _rank(self, effect: Effect) -> tuple[bool, Fraction, Fraction, Fraction]:
        gain, before, after = self.gain(effect), self.unchanged.value, effect.outcome.value
        if gain is None or before is None or after is None or not self.is_conclusive(effect):
            return False, Fraction(0), Fraction(0), Fraction(0)
        # A change that only may be for the worse ranks by what it may be for the better, behind what is certain.
        return True, max(gain[0], min(gain[1], Fraction(0))), before - after, gain[1]

    def is_conclusive(self, effect: Effect) -> bool:
        """Return True if an effect is certain, its bound less than that of an equally short search, or its value worse.

        It is certain if the least gain (`gain`) is above 0 or the most is not. The search is `again`, of the unchanged
        problem, or `known` if there was none; the value is worse if it is larger than the best known of the unchanged
        problem. False if no schedule is known before or after the change.
        """
        gain, before, after = self.gain(effect), self.unchanged, effect.outcome
        if gain is None or before.value is None or after.value is None:
            return False
        certain = gain[0] > 0 or gain[1] <= 0
        return certain or after.lower_bound < (self.again or self.known).lower_bound or after.value > before.value
