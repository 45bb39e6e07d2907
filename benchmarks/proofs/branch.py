"""A branch of a bound: how problems that exercise it are drawn, and what it claims of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from random import Random
from typing import NamedTuple

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import with_microbatch_scale
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import BOUNDS
from solver.cyclic.period_bounds import period_certificates

# The analytic bounds of one stream, the strongest first; and those that count modes.
_SIMPLE = ("head and tail", "round trip", "integral warm-up", "in-flight limit", "load")
_COUNT_MODES = ("unpaired passes", "memory and modes")
OVER_MODES = "period: load and memory over modes"


class Claim(NamedTuple):
    """No schedule of the problem has a value below this, in ticks; and the text that says why.

    `margin` is by how much the strongest other certificate is weaker, as a part of the value.
    """

    value: Fraction
    text: str
    margin: float


@dataclass(frozen=True)
class Likely:
    """Distribution of problems: the probability of each kind of number. A long time is ten times a short one or more.

    `freed` is what B gives back: "less" than nothing, "none", "part" or "all" of the activation, one drawn at a time.
    `fewest` to `most` micro-batches, or one more where backwards are full; `linear` is the probability of two
    devices on a line, and `longest` the most ticks of a long time. `zeros` is the probability that any time is nothing,
    whatever else it would be, and that memory is just enough; `bidirectional` that of chains in opposite directions.
    """

    long_links: float = 0.3
    long_weights: float = 0.3
    tight: float = 0.6
    unlimited: float = 0.15
    whole_only: float = 0.15
    short_whole: float = 0.15
    blocks: float = 0.1
    freed: tuple[str, ...] = ("none", "part", "all", "less")
    fewest: int = 1
    most: int = 3
    linear: float = 0.2
    longest: int = 120
    zeros: float = 0
    bidirectional: float = 0


@dataclass(frozen=True)
class Branch:
    """One argument of one bound. `sentence` is in the text of its certificates, and none of `not_sentences` is.

    `where` says more of the problem and the certificate's device; `further` gives bounds that are not
    analytic. `in_order` says that claims are of the problem with unequal micro-batches that keep their order.
    """

    name: str
    kind: str
    sentence: str = ""
    not_sentences: tuple[str, ...] = ()
    where: Callable[[Problem, int], bool] = lambda *_: True
    likely: Likely = Likely()
    further: Callable[[Problem], Iterable[Certificate]] | None = None
    in_order: bool = False

    def posed(self, problem: Problem) -> Problem:
        """The problem that claims are of, for one that was drawn."""
        return in_order(problem) if self.in_order else problem

    def claim(self, problem: Problem) -> Claim | None:
        """This branch's claim of the problem posed, if no other certificate is stronger."""
        problem = without_scale(self.posed(problem))
        if self.kind.startswith("period: "):
            return self._period(problem)
        if self.further is not None and not any(self.where(problem, device) for device in range(problem.devices)):
            return None  # before the long work: their certificates all speak of a device
        objective = problem.objective
        found = [*self.further(problem)] if self.further is not None else BOUNDS[self.bound].certify(problem, objective)
        own = [one for one in found if self._says(one.text, problem, one.device)]
        value = max((one.value_ticks for one in own), default=None)
        if value is None:
            return None
        best = max((one.value_ticks for one in found if one not in own), default=Fraction(0))
        for name in self._others:
            if best > value:
                return None
            best = max([best, *(one.value_ticks for one in BOUNDS[name].certify(problem, objective))])
        strongest = next(one for one in own if one.value_ticks == value)
        return None if best > value else Claim(Fraction(value), strongest.text, float(1 - best / max(1, value)))

    @property
    def bound(self) -> str:
        """The analytic bound whose certificates are of this kind."""
        return self.kind.removesuffix(" in order")

    @cached_property
    def _others(self) -> list[str]:
        """The analytic bounds of other kinds, but those that count modes: others would seldom be the strongest."""
        mine = [*_SIMPLE, *(_COUNT_MODES if self.kind in _COUNT_MODES else ())]
        return [name for name in mine if name != self.bound]

    def _period(self, problem: Problem) -> Claim | None:
        """Of the bounds on the period, times m: the span of m micro-batches can be repeated, so it is no shorter."""
        if len({len(walked) for walked in problem.microbatches_of}) > 1:
            return None
        found, kind = period_certificates(problem), self.kind.removeprefix("period: ")
        own = [one for one in found if one.kind == kind and self._says(one.text, problem, one.device)]
        if not own or own[0].value < found[0].value:
            return None
        others = max((one.value for one in found if one not in own), default=Fraction(0))
        margin = float(1 - others / own[0].value) if own[0].value else 0.0
        return Claim(own[0].value * problem.microbatches, own[0].text, margin)

    @property
    def objective(self) -> Objective | None:
        """Whose values the claims are of; None for that of the problem."""
        return Objective.SPAN if self.kind.startswith("period: ") else None

    def _says(self, text: str, problem: Problem, device: int | None) -> bool:
        stated = self.sentence in text and not any(other in text for other in self.not_sentences)
        return stated and (device is None or self.where(problem, device))


FACTORS = tuple(map(Fraction, ("0.5", "1", "1.5", "2", "3")))


def in_order(problem: Problem) -> Problem:
    """The same with factors, the same each time."""
    random = Random(problem.microbatches)
    return scaled(problem, [random.choice(FACTORS) for _ in range(problem.microbatches)], fixed=True)


def scaled(problem: Problem, scale: Sequence[Fraction], fixed: bool) -> Problem:
    """The same with these factors; memory for the largest micro-batch, links as long as the longer direction."""
    turned = zip(*problem.links, strict=True)
    links = tuple(tuple(map(max, row, column)) for row, column in zip(problem.links, turned, strict=True))
    found = with_microbatch_scale(replace(problem, links=links), scale, fixed)
    if why_infeasible(found) is None:
        return found
    return found.with_room([None if own is None else ceil(own * max(scale)) for own in found.room])
