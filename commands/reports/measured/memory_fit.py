"""Report of `fit-memory`: layers' memory fitted to measured peaks, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from commands.shared.tables import Column, table
from pipesched.layers.memory_peaks import PeaksFile, Unknown
from pipesched.measurement.memory_fit import MemoryFit
from pipesched.problem.formatting import plain

_FAR = 0.05  # of the largest peak: a residual that says that the model does not hold


def show(file: PeaksFile, fit: MemoryFit) -> None:
    """Print the fitted figures with standard errors, then every measured peak with the fitted one."""
    rows = [[str(one), plain(round(value, 4)), _error(fit, one)] for one, value in fit.values.items()]
    columns = [Column("what"), Column(file.unit, True), Column("standard error", True)]
    table(f"{file.name}: memory from {len(file.peaks)} peaks", columns, rows)
    peaks = [
        [peak.place, plain(float(peak.amount)), plain(round(float(peak.amount) - residual, 4)), f"{residual:+.4f}"]
        for peak, residual in zip(file.peaks, fit.residuals, strict=True)
    ]
    columns = [Column("peak"), Column("measured", True), Column("fitted", True), Column("difference", True)]
    table(f"root mean square difference {fit.root_mean_square:.4g} {file.unit}", columns, peaks)


def _error(fit: MemoryFit, one: Unknown) -> str:
    return "" if fit.errors is None or one not in fit.errors else f"± {fit.errors[one]:.2g}"


def notes(file: PeaksFile, fit: MemoryFit) -> Iterator[str]:
    """Yield warnings about a fit: without spare peaks, with figures set to 0, or with a peak far from its fitted value.

    Far is more than `_FAR` of the largest peak.
    """
    if fit.errors is None:
        yield f"{len(file.peaks)} peaks for as many numbers leave none to judge the fit by: measure one more"
    for one in fit.clamped:
        yield f"the {one} came out below 0 and was set to 0: the peaks do not follow the model there"
    most = max(float(peak.amount) for peak in file.peaks)
    if fit.largest > _FAR * most:
        yield f"a peak differs by {fit.largest:.4g} {file.unit} from the fit: see whether the runs were alike"


def document(file: PeaksFile, fit: MemoryFit, files: Sequence[Path]) -> dict[str, object]:
    """Return the object of `fit-memory --json`: `name`, amounts as floats in the file's `unit` of memory, and `files`.

    `found` has each amount fitted; its `layer` is None for an amount of devices, its `standard_error` None if it was
    set to 0 or there are no more peaks than amounts. `residuals` has, for each peak in the file's order, what it
    exceeds the fitted one by (`difference`); `root_mean_square` is that of these. `clamped` are the amounts set to 0,
    as text.
    """
    return {
        "name": file.name,
        "unit": file.unit,
        "found": [
            {
                "what": one.what,
                "layer": one.layer,
                "value": value,
                "standard_error": None if fit.errors is None else fit.errors.get(one),
            }
            for one, value in fit.values.items()
        ],
        "residuals": [
            {"peak": peak.place, "measured": float(peak.amount), "difference": residual}
            for peak, residual in zip(file.peaks, fit.residuals, strict=True)
        ],
        "root_mean_square": fit.root_mean_square,
        "clamped": [str(one) for one in fit.clamped],
        "files": [str(path) for path in files],
    }
