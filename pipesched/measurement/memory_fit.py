"""Least-squares fit of layers' memory to measured peaks; if peaks leave something open, what to measure next.

A peak is the sum of its layers' memory, of the activations of the micro-batches in flight (kept or recomputed), of a
constant, and of an extra on the first and on the last device: linear in the unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipesched.errors import BadInput
from pipesched.layers.memory_peaks import Peak, Unknown, unknowns_of
from pipesched.measurement.missing_peaks import Matrix, matrix_of, rank_of, what_is_open


@dataclass(frozen=True)
class MemoryFit:
    """The least-squares fit of measured peaks: the value of each unknown, in the file's unit, at least 0.

    `residuals` are measured minus fitted, one for each peak in order. `clamped` are the unknowns that were fitted
    negative: one after the other, the most negative first, they were set to 0 and the others fitted again. `errors` are
    the standard errors of the others, None if there are no more peaks than these.
    """

    values: dict[Unknown, float]
    errors: dict[Unknown, float] | None
    residuals: tuple[float, ...]
    clamped: tuple[Unknown, ...]

    @property
    def root_mean_square(self) -> float:
        return float(np.sqrt(np.mean(np.square(self.residuals))))

    @property
    def largest(self) -> float:
        return max(map(abs, self.residuals))


def fit_memory(peaks: Sequence[Peak]) -> MemoryFit:
    """Return the least-squares fit, in which no value is below 0.

    While some value would be below 0, the lowest is set to 0 and the others are fitted again. If the peaks leave
    unknowns open, `BadInput` names these, and what to measure next.
    """
    unknowns = unknowns_of(peaks)
    matrix = matrix_of(peaks, unknowns)
    if rank_of(matrix) < len(unknowns):
        raise BadInput(*what_is_open(peaks, unknowns))
    measured = np.array([float(peak.amount) for peak in peaks])
    free = list(range(len(unknowns)))
    while True:
        found, *_ = np.linalg.lstsq(matrix[:, free], measured, rcond=None)
        negative = [at for at, value in zip(free, found, strict=True) if value < 0]
        if not negative:
            break
        lowest = min(negative, key=lambda at: found[free.index(at)])
        free.remove(lowest)
    values = np.zeros(len(unknowns))
    values[free] = found
    residuals = measured - matrix @ values
    return MemoryFit(
        {unknown: float(value) for unknown, value in zip(unknowns, values, strict=True)},
        _errors(matrix[:, free], residuals, [unknowns[at] for at in free]),
        tuple(map(float, residuals)),
        tuple(unknown for at, unknown in enumerate(unknowns) if at not in free),
    )


def _errors(matrix: Matrix, residuals: Matrix, unknowns: Sequence[Unknown]) -> dict[Unknown, float] | None:
    """Return the standard error of each unknown, the root of its entry on the diagonal of s²·(XᵀX)⁻¹.

    None if no peaks are left for an estimate. The `matrix` X has a row for each peak and a column for each unknown; s²
    is the variance of the `residuals`.
    """
    spare = matrix.shape[0] - matrix.shape[1]
    if spare <= 0:
        return None
    variance = float(residuals @ residuals) / spare
    # The pseudo-inverse X⁺ has X⁺·X⁺ᵀ = (XᵀX)⁻¹, and does not square the condition number.
    inverse = np.linalg.pinv(matrix)
    errors = np.sqrt(variance * np.sum(inverse**2, axis=1))
    return {unknown: float(error) for unknown, error in zip(unknowns, errors, strict=True)}
