"""Rates of devices fitted to measured steps: least squares of logarithms with priors, also without each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measured.path_steps import path_step
from benchmarks.measured.table import Row, source_of
from pipesched.files.model_configs.hardware_table import DEVICES, PRODUCTS, SUSTAINED, Device

Numbers = NDArray[np.float64]
# The GPUs that have rates of their own; others have those of the one most like them.
FAMILIES = ("a100", "h100", "b200")
_LIKE = {"a100": "a100", "a800": "a100", "h100": "h100", "h800": "h100", "h200": "h100", "b200": "b200",
         "b300": "b200", "gb200": "b200", "gb300": "b200"}  # fmt: skip
_OF = {family: next(device for name, device in DEVICES.items() if name.startswith(family)) for family in FAMILIES}


class Prior(NamedTuple):
    """Prior of a rate, before any row is seen: shares, or ms; `spread` is a standard deviation of its log.

    `of_family`: each kind of GPU has its own. `least` and `most` are what can be at all.
    """

    likely: float
    spread: float
    least: float
    most: float
    of_family: bool = False


class FitParams(NamedTuple):
    """Of the fit; shares.

    `scatter`: the spread of a step around its prediction, beyond which a row counts by its distance, not its square.
    `crowd`: a source of n rows weighs n to this power, between 0 (sources alike) and 1 (rows alike).
    `step`: by which each rate is moved to see its effect.
    """

    scatter: float = 0.1
    crowd: float = 0.5
    step: float = 0.03
    rounds: int = 4


PARAMS = FitParams()
# Products: cuBLAS reaches .7 to .8 of the data sheet on large squares; attention: FlashAttention 2 on A100 .6 forward,
# .5 backward, 3 on H100 .75 and .55 (arXiv 2307.08691, 2407.08608); memory: STREAM .9; links: nccl-tests, .8 of NVLink.
PRIORS: Mapping[str, Prior] = {
    "products": Prior(0.65, 0.2, 0.3, 0.9, of_family=True),
    "narrow_products": Prior(0.5, 0.25, 0.2, 0.9, of_family=True),
    "vboost": Prior(1.1, 0.1, 1, 1.3),
    "attention": Prior(0.5, 0.25, 0.15, 0.8, of_family=True),
    "memory_share": Prior(0.85, 0.1, 0.6, 0.95),
    "tensor_share": Prior(0.5, 0.3, 0.2, 0.9),
    "expert_share": Prior(0.6, 0.3, 0.2, 0.95),
    "data_share": Prior(0.75, 0.2, 0.3, 0.95),
    "dense_launch": Prior(0.3, 0.5, 0.02, 2),
    "moe_launch": Prior(1.0, 0.5, 0.1, 4),
    "moe_wait": Prior(1.5, 0.5, 0.1, 5),
}
# The factor of 16-bit products in the table.
_VBOOST = DEVICES["h100-80gb-vboost"].products / DEVICES["h100-80gb"].products
# A rate by its name, and the family's where it has its own: `products/h100`.
Rates = Mapping[str, float]


def names() -> list[str]:
    """Of all rates that are fitted."""
    return [f"{name}/{family}" if prior.of_family else name
            for name, prior in PRIORS.items() for family in (FAMILIES if prior.of_family else ("",))
            if (name, family) != ("narrow_products", "a100")]  # fmt: skip


def devices_with(rates: Rates) -> dict[str, Device]:
    """The table of devices with these rates; a device whose family has none keeps its own."""
    found = {}
    for name, device in DEVICES.items():
        family = _LIKE.get(name.partition("-")[0], "")
        own = {}
        for key in (key for key in PRIORS if key != "vboost"):
            base = getattr(_OF[family], key) if family else 1.0
            # What a device's own power makes of its family's rate stays.
            own[key] = rates.get(f"{key}/{family}", rates.get(key, base)) * getattr(device, key) / base
        if name.endswith("-vboost"):
            own["products"] *= rates.get("vboost", _VBOOST) / _VBOOST
        found[name] = replace(device, **own) if family else device
    return found


def table_rates() -> dict[str, float]:
    """The rates of the table of devices."""
    shares = {
        name: getattr(_OF[name.partition("/")[2] or FAMILIES[0]], name.partition("/")[0])
        for name in names()
        if name != "vboost"
    }
    return {name: shares.get(name, _VBOOST) for name in names()}


class Fitted(NamedTuple):
    """Rates from all rows, and by source from all rows but its own."""

    rates: dict[str, float]
    without: dict[str, dict[str, float]]


def fitted(rows: Sequence[Row], configs: Path, params: FitParams = PARAMS) -> Fitted:
    """Gauss-Newton on the true predictions; sources are left out of the last round's linear model."""
    rows = [row for row in rows if row.seconds]
    sources, every = [source_of(row) for row in rows], names()
    crowds = Counter(sources)
    weights = np.array([crowds[source] ** ((params.crowd - 1) / 2) / params.scatter for source in sources])
    at = np.array([log(value) for value in table_rates().values()])
    for _ in range(params.rounds):
        off, slopes = _linear(rows, configs, dict(zip(every, map(exp, at), strict=True)), params.step)
        start = at
        at = least_rates(off, slopes, start, weights)
    without = {}
    for source in crowds:
        kept = np.array([other != source for other in sources])
        found = least_rates(off[kept], slopes[kept], start, weights[kept])
        without[source] = _rounded(every, found)
    return Fitted(_rounded(every, at), without)


def _rounded(every: Sequence[str], logarithms: Numbers) -> dict[str, float]:
    return {name: round(exp(value), 3) for name, value in zip(every, logarithms, strict=True)}


def _linear(rows: Sequence[Row], configs: Path, rates: Rates, step: float) -> tuple[Numbers, Numbers]:
    """Logarithms of predicted over measured steps, and how they change with that of each rate.

    Every row is simulated once, and its critical path is then followed with each rate moved. A row has one family: the
    rates of one name are moved in all families together.
    """
    steps = [path_step(row, configs, devices_with(rates)) for row in rows]

    def off(own: Rates) -> Numbers:
        devices = devices_with({**rates, **own})
        return np.array([log(one.seconds(devices) / (one.row.seconds or 1)) for one in steps])

    base, slopes = off({}), np.zeros((len(rows), len(rates)))
    families = [_LIKE.get(row.gpu.partition("-")[0], "") for row in rows]
    for name in PRIORS:
        own = {key: rate * exp(step) for key, rate in rates.items() if key.partition("/")[0] == name}
        change = (off(own) - base) / step
        for column, key in enumerate(rates):
            family = key.partition("/")[2]
            if key in own:
                of = np.array([not family or each == family for each in families])
                slopes[of, column] = change[of]
    return base, slopes


def least_rates(off: Numbers, slopes: Numbers, start: Numbers, weights: Numbers) -> Numbers:
    """The rates' logarithms with the least sum of the rows' losses and the priors'."""
    from scipy.optimize import least_squares  # of the extra dev

    priors = [prior_of(name) for name in names()]
    likely, spread, least, most = (np.array(column) for column in zip(*(prior[:4] for prior in priors), strict=True))

    def residuals(at: Numbers) -> Numbers:
        rows = weights * (off + slopes @ (at - start))
        # What soft_l1 would do to them, for the rows alone: priors keep their squares.
        robust = np.sign(rows) * np.sqrt(2 * (np.sqrt(1 + rows**2) - 1))
        return np.concatenate([robust, (at - np.log(likely)) / spread])

    bounds = np.log(least), np.log(most)
    return np.asarray(least_squares(residuals, np.clip(start, bounds[0] + 1e-6, bounds[1] - 1e-6), bounds=bounds).x)


def prior_of(name: str) -> Prior:
    """The prior of a rate, by its name; of products it follows from what the family sustains, where that is known."""
    key, _, family = name.partition("/")
    if key == "products" and family in SUSTAINED:
        return PRIORS[key]._replace(likely=PRODUCTS.reached(SUSTAINED[family], 1), spread=0.1)
    return PRIORS[key]
