"""Unknown amounts of memory that the measured peaks do not determine, and the peaks to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pipesched.layers.memory_peaks import Peak, PeakStage, Unknown
from pipesched.layers.roles import Role, role_of

Matrix = NDArray[np.float64]

_NEGLIGIBLE = 1e-9  # singular values below this share of the largest count as zero
_SUGGESTED = 4  # measurements named at most


def matrix_of(peaks: Sequence[Peak], unknowns: Sequence[Unknown]) -> Matrix:
    """Return the coefficient of each unknown (column) in each peak (row), 0 where a peak does not have it."""
    rows = [peak.coefficients() for peak in peaks]
    return np.array([[row.get(unknown, 0) for unknown in unknowns] for row in rows], dtype=np.float64)


def rank_of(matrix: Matrix) -> int:
    """Return the rank of a matrix after scaling its columns to equal length, since counts differ in size."""
    lengths = np.linalg.norm(matrix, axis=0)
    return int(np.linalg.matrix_rank(matrix / np.where(lengths > 0, lengths, 1)))


def what_is_open(peaks: Sequence[Peak], unknowns: Sequence[Unknown]) -> list[str]:
    """Return a line with the unknowns that no fit can determine, then up to four on measurements that would help.

    For peaks that leave something open: `rank_of` their matrix is less than the number of unknowns.
    """
    matrix = matrix_of(peaks, unknowns)
    lengths = np.linalg.norm(matrix, axis=0)
    _, singular, directions = np.linalg.svd(matrix / lengths, full_matrices=True)
    whole = np.concatenate([singular, np.zeros(len(unknowns) - len(singular))])
    null = directions[whole <= _NEGLIGIBLE * whole[0]]
    open_ones = [str(one) for at, one in enumerate(unknowns) if np.abs(null[:, at]).max(initial=0) > 1e-6]
    known = f"found {len(peaks)} peaks that leave open: {', '.join(open_ones)}"
    wanted = _next_measurements(peaks, unknowns)
    return [f"{known}; allowed: peaks that tell them apart"] + [f"measure next: {text}" for text in wanted]


def _next_measurements(peaks: Sequence[Peak], unknowns: Sequence[Unknown]) -> list[str]:
    """Return at most four descriptions of devices whose peaks would together determine what is open, or most of it.

    Simple devices, of few layers and micro-batches, are tried first.
    """
    have, wanted = list(peaks), len(unknowns)
    found: list[str] = []
    rank = rank_of(matrix_of(have, unknowns))
    for text, candidate in _candidates(peaks):
        if rank == wanted or len(found) == _SUGGESTED:
            break
        more = rank_of(matrix_of([*have, candidate], unknowns))
        if more > rank:
            have.append(candidate)
            found.append(text)
            rank = more
    return found


def _candidates(peaks: Sequence[Peak]) -> list[tuple[str, Peak]]:
    """Return (description, peak) of devices whose peaks would be worth measuring, with the amount 0.

    They have layers of one name, in different numbers, with other micro-batches in flight; some have recomputed layers.
    """
    names = {name: None for peak in peaks for stage in peak.stages for name in stage.layers}
    transformer = [name for name in names if role_of(name) not in (Role.EMBEDDING, Role.HEAD)]
    used = {name for peak in peaks for stage in peak.stages for name, number in stage.recomputed.items() if number}
    found = []
    for place, name, number, flight in product(("middle", "first", "last"), transformer, (2, 3, 4), (1, 2, 4)):
        for again in (0, 1) if name in used else (0,):
            layers = f"{number} {name} layers"
            recomputed = f", {again} of them recomputed" if again else ""
            microbatches = "1 micro-batch" if flight == 1 else f"{flight} micro-batches"
            text = f"the {place} device" if place != "middle" else "a middle device"
            stage = PeakStage({name: number}, {name: again}, flight)
            peak = Peak((stage,), place == "first", place == "last", Fraction(0), text)
            found.append((f"{text} with {layers}{recomputed} and {microbatches} in flight", peak))
    return found
