"""Fit of a device's rates to measured times: robust least squares of logarithms, the table's rates as priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from pipesched.files.model_configs.hardware_table import LAUNCHES, SHARES, Device
from pipesched.files.model_configs.plan_of_config import Wanted
from solver.calibration.observation import Observation
from solver.calibration.predicted_step import with_rates
from solver.parameters import tunable, tuned

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
@tunable
class CalibrationParams:
    """Prior spreads of rates around those of the table, and of steps around predictions, all of logarithms.

    Spreads of rates are those between the sources of published steps (docs/results/accuracy.md), by judgement.
    """

    products: float = tuned(0.2, "spread of the share that products reach", 0.01, 1)
    narrow_products: float = tuned(0.3, "of products of fewer bits", 0.01, 1)
    attention: float = tuned(0.3, "of attention", 0.01, 1)
    memory_share: float = tuned(0.1, "of the memory's bandwidth", 0.01, 1)
    links: float = tuned(0.4, "of tensor, expert and data links", 0.01, 1)
    launches: float = tuned(0.6, "of the least time of a layer", 0.01, 2)
    scatter: float = tuned(0.08, "spread of a step around its prediction, before any is seen", 0.001, 0.5)
    doubt: float = tuned(2.0, "measured steps that this scatter counts as", 0.1, 100)
    move: float = tuned(0.05, "by which a rate is moved to see its effect", 0.001, 0.2)
    largest: float = tuned(0.4, "a rate's change in one round", 0.01, 2)
    least_effect: float = tuned(0.01, "of a duration to that of a rate, below which the rate is not seen", 0, 0.5)
    rounds: int = tuned(8, "linearisations at most", 1, 50)


PARAMS = CalibrationParams()
_ENOUGH = 1e-3  # a change of a logarithm that ends the rounds
_REWEIGHTED = 30
_LEAST_SHARE = 0.02
_VAGUE = 0.8
RATES = (*SHARES, *LAUNCHES)


class FittedRate(NamedTuple):
    """A fitted rate (`value`), the rate in the table (`before`), and the relative standard error of the fitted one.

    `name` is a field of `Device`, and both rates are in its unit. The error is None if no measured duration depends on
    the rate. `spread` is the relative error that was assumed before the fit.
    """

    name: str
    value: float
    before: float
    error: float | None
    spread: float

    @property
    def vague(self) -> bool:
        """True if the standard error after the fit is more than .8 of the one before.

        False if no measured duration depends on the rate.
        """
        return self.error is not None and self.error > _VAGUE * self.spread


class FittedTime(NamedTuple):
    """A measured duration in seconds, predicted by the table's rates (`before`) and by the fitted ones (`after`)."""

    name: str
    measured: float
    before: float
    after: float


@dataclass(frozen=True)
class RatesFit:
    """Result of a fit: the device with its fitted rates, every rate and measured duration, and the scatter.

    `rates` are those that are above 0 in the table, also if they were not changed: shares first, then times. `times`
    are in the order measured. `scatter` is the relative spread of durations around their predictions.
    """

    device: Device
    rates: tuple[FittedRate, ...]
    times: tuple[FittedTime, ...]
    scatter: float

    def mean_error(self, before: bool = False) -> float:
        """Return the mean of |prediction / measured - 1|, by the table's rates (`before`) or by the fitted ones.

        It is a share, .05 for 5 per cent.
        """
        return sum(abs((one.before if before else one.after) / one.measured - 1) for one in self.times) / len(
            self.times
        )


class _Linear(NamedTuple):
    """Linear model of all durations at some rates, by the logarithms of both.

    `off` is log predicted less log measured, by duration; `slopes` its derivative by each log rate, shape (durations,
    rates); `weights` is the weight of each duration.
    """

    off: Numbers
    slopes: Numbers
    weights: Numbers


def fit_rates(observations: Sequence[Observation], wanted: Wanted, params: CalibrationParams = PARAMS) -> RatesFit:
    """Return the likeliest rates of a device given observations; a rate on which no duration depends stays as it is.

    There must be an observation. `wanted` has the device, with the table's rates, and the training. Fitted rates are
    rounded to four significant digits. In each round the predictions are linearised at the rates of the round before;
    the standard errors are those of the last round. `BadInput` for an observation whose layout is impossible.
    """
    first = {name: float(getattr(wanted.device, name)) for name in RATES if getattr(wanted.device, name) > 0}
    spreads = np.array([_spread(name, params) for name in first])
    start = np.array([log(value) for value in first.values()])
    at, seen, errors, scatter = start, np.zeros(len(first), bool), spreads, params.scatter
    for _ in range(params.rounds):
        linear = _linear(observations, wanted, dict(zip(first, map(exp, at), strict=True)), params)
        # A rate that had an effect once stays in the fit: otherwise its prior alone would pull it back.
        seen = seen | (np.abs(linear.slopes).max(axis=0) >= params.least_effect)
        target, errors, scatter = _likeliest(linear, at, start, spreads, [*first], params)
        target = np.where(seen, target, start)
        change = np.clip(target - at, -params.largest, params.largest)
        at = at + change
        if np.abs(change).max() < _ENOUGH:
            break
    rates = {name: float(f"{exp(value):.4g}") for name, value in zip(first, at, strict=True)}
    found = {name: rates[name] if own else first[name] for name, own in zip(first, seen, strict=True)}
    device = replace(wanted.device, **found)  # type: ignore[arg-type]
    return RatesFit(
        device,
        tuple(
            FittedRate(name, found[name], first[name], float(error) if own else None, float(spread))
            for name, own, error, spread in zip(first, seen, errors, spreads, strict=True)
        ),
        tuple(_times(observations, wanted, replace(wanted, device=device))),
        scatter,
    )


def _spread(name: str, params: CalibrationParams) -> float:
    if name in LAUNCHES:
        return params.launches
    own: float = getattr(params, name, params.links)
    return own


def _times(observations: Sequence[Observation], wanted: Wanted, fitted: Wanted) -> list[FittedTime]:
    found = []
    for one in observations:
        for named, before, after in zip(one.measured, one.predicted(wanted), one.predicted(fitted), strict=True):
            found.append(FittedTime(named.name, named.seconds, before, after))
    return found


def _linear(
    observations: Sequence[Observation], wanted: Wanted, rates: Mapping[str, float], params: CalibrationParams
) -> _Linear:
    def off(own: Mapping[str, float]) -> Numbers:
        with_own = with_rates(wanted, own)
        return np.concatenate(
            [
                np.log(np.array(one.predicted(with_own))) - np.log([named.seconds for named in one.measured])
                for one in observations
            ]
        )

    base = off(rates)
    # Shares above 1 are no rates; a smaller one has the same slope.
    signs = {name: -1 if name in SHARES and value * exp(params.move) > 1 else 1 for name, value in rates.items()}
    moved = [
        (off({**rates, name: value * exp(signs[name] * params.move)}) - base) / (signs[name] * params.move)
        for name, value in rates.items()
    ]
    weights = np.concatenate([np.full(len(one.measured), one.weight / len(one.measured)) for one in observations])
    return _Linear(base, np.stack(moved, axis=1), weights)


def _likeliest(
    linear: _Linear, at: Numbers, start: Numbers, spreads: Numbers, names: Sequence[str], params: CalibrationParams
) -> tuple[Numbers, Numbers, float]:
    """Return log rates, their standard errors, and the scatter of durations, by iteratively reweighted least squares.

    All arrays are by rate, in the order of `names`: `at` are the log rates at which `linear` was made, `start` the
    prior ones, with standard deviations `spreads`. A measured duration counts 1 / sqrt(1 + (distance / scatter)²) of
    its weight, as in the loss soft-l1. A rate that is a share stays between a least one and 1.
    """
    prior, scatter = np.diag(spreads**-2.0), params.scatter
    highest = np.array([0.0 if name in SHARES else np.inf for name in names])
    lowest = np.array([log(_LEAST_SHARE) if name in SHARES else -np.inf for name in names])
    found, errors = at, spreads
    for _ in range(_REWEIGHTED):
        distance = linear.off + linear.slopes @ (found - at)
        weights = linear.weights / np.sqrt(1 + (distance / scatter) ** 2)
        squares = float(weights @ distance**2) + params.doubt * params.scatter**2
        scatter = (squares / (float(weights.sum()) + params.doubt)) ** 0.5
        weighted = linear.slopes.T * (weights / scatter**2)
        precision = weighted @ linear.slopes + prior
        free, last = np.ones(len(names), bool), found
        found = at.copy()
        # A rate that would leave its range is fixed at its end, and the others are fitted again.
        while True:
            known = np.where(free, 0.0, found - at)
            right = weighted @ (-linear.off - linear.slopes @ known) + prior @ (start - at - known)
            found = np.where(free, at, found)
            found[free] += np.linalg.solve(precision[np.ix_(free, free)], right[free])
            outside = free & ((found > highest) | (found < lowest))
            if not outside.any():
                break
            found, free = np.clip(found, lowest, highest), free & ~outside
            if not free.any():
                break
        errors = np.sqrt(np.diag(np.linalg.inv(precision)))
        if np.abs(found - last).max() < _ENOUGH / 10:
            break
    return found, errors, scatter
