"""The weight passes of the steps of a chain: those of a device that take equally long are of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solver.diagram.steps import Numbers, Steps


class Weights(NamedTuple):
    """By step, the kind of the weight pass that it leaves to be run, -1 where none; by kind, how long these take.

    Those of device d are `first[d]` to `first[d + 1]`; none where its weight passes may be interrupted.
    """

    kind: Numbers
    ticks: Numbers
    first: Numbers


def weights_of(steps: Steps, whole: Sequence[int] | None = None) -> Weights:
    """What backwards take after their gradients, by device and by length; only those that are whole there.

    `whole` has the numbers of these devices among the steps' own, None for all.
    """
    rests = zip(steps.device.tolist(), steps.later.tolist(), strict=True)
    pairs = sorted({(d, t) for d, t in rests if t > 0 and (whole is None or d in whole)})
    number = {pair: kind for kind, pair in enumerate(pairs)}
    kinds = [number.get(pair, -1) for pair in zip(steps.device.tolist(), steps.later.tolist(), strict=True)]
    on = np.array([device for device, _ in pairs], np.int64)
    return Weights(
        kind=np.array(kinds, np.int64),
        ticks=np.array([ticks for _, ticks in pairs], np.int64),
        first=np.searchsorted(on, np.arange(len(steps.room) + 1)).astype(np.int64),
    )
