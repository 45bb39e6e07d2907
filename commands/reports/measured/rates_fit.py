"""Report of `calibrate`: fitted rates of a device, as text, as JSON, and as comments of a hardware file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from commands.shared.output import percent
from commands.shared.tables import Column, table
from pipesched.files.model_configs.hardware_file import NamedDevice
from pipesched.problem.formatting import counted, plain
from solver.calibration.rates_fit import FittedRate, FittedTime, RatesFit

_SUFFIX = "-calibrated"
_FAR = 0.15  # an error after the fit that says that the runs do something that the formulas do not know
_OTHER = 1.5  # times the known rates' durations: beyond what published runs of one device differ by


def named(fit: RatesFit, hardware: str) -> NamedDevice:
    """Return the fitted device with a name and source that say where its rates come from.

    `hardware` is the name of the device that was fitted.
    """
    name = hardware if hardware.endswith(_SUFFIX) else hardware + _SUFFIX
    source = f"{hardware}, rates fitted to {counted(len(fit.times), 'measured duration')}"
    return NamedDevice(name, replace(fit.device, source=source))


def comments(fit: RatesFit, hardware: str) -> dict[str, str]:
    """Return by rate the comment for its line in the hardware file: its error, or that no duration depends on it."""
    return {one.name: _basis(one, hardware) for one in fit.rates}


def _basis(one: FittedRate, hardware: str) -> str:
    if one.error is None:
        return f"of {hardware}: no measured duration depends on it"
    source = f"{plain(one.before)} of {hardware}{', which is hardly seen in what was measured' if one.vague else ''}"
    return f"fitted, ± {100 * one.error:.2g} %; {source}"


def show(fit: RatesFit, hardware: str) -> None:
    """Print each rate with its error, then each measured duration with the predictions before and after the fit."""
    rows = [
        [one.name, plain(one.before), plain(one.value), "not seen" if one.error is None else f"± {percent(one.error)}"]
        for one in fit.rates
    ]
    columns = [Column("rate"), Column("table's", True), Column("fitted", True), Column("standard error", True)]
    title = f"rates of {hardware} from {counted(len(fit.times), 'measured duration')}"
    table(title, columns, rows)
    durations = [
        [one.name, *(plain(round(float(f"{seconds:.5g}"), 6)) for seconds in (one.measured, one.before, one.after))]
        for one in fit.times
    ]
    columns = [Column("what"), *(Column(f"{name} (s)", True) for name in ("measured", "table's rates", "fitted"))]
    before, after = percent(fit.mean_error(before=True)), percent(fit.mean_error())
    table(f"mean error {after}, with the table's rates {before}", columns, durations)


def notes(fit: RatesFit) -> Iterator[str]:
    """Yield warnings about rates that the measurements determine poorly."""
    vague = [one.name for one in fit.rates if one.vague]
    if vague:
        yield f"{', '.join(vague)}: hardly seen; a layout with more of what they stand for determines them"


def warning(fit: RatesFit, hardware: str) -> str | None:
    """Return a warning if the fit is not `explained`, or the known rates predict durations that are far off; else None.

    Far off is a median more than `_OTHER` times too long or too short. `hardware` is the device's name.
    """
    before, after = (median(one.measured / predicted for one, predicted in each) for each in _predictions(fit))
    if not explained(fit):
        return (
            f"the measured durations are {plain(round(after, 2))} times those predicted after the fit (mean error "
            f"{percent(fit.mean_error())}): no likely rates of {hardware} explain them; check seconds, layout and "
            "hardware, how the runs train (--training, --dtype), whether they wait for data"
        )
    if not 1 / _OTHER < before < _OTHER:
        return (
            f"the measured durations are {plain(round(before, 2))} times those that the rates of {hardware} give; the "
            "fitted rates are far from them: check seconds, layout and hardware"
        )
    return None


def explained(fit: RatesFit) -> bool:
    """Return True if the durations predicted by the fitted rates have a mean error of at most 15 % (`_FAR`)."""
    return fit.mean_error() <= _FAR


def _predictions(fit: RatesFit) -> tuple[list[tuple[FittedTime, float]], list[tuple[FittedTime, float]]]:
    return [(one, one.before) for one in fit.times], [(one, one.after) for one in fit.times]


def document(fit: RatesFit, hardware: str, files: Sequence[Path]) -> dict[str, object]:
    """Return the object of `calibrate --json`; `hardware` is the device's name, `files` are the paths written.

    `rates` has by name the fitted `value`, the rate `before`, and the relative standard `error`, None if no duration
    depends on the rate. `durations` are in seconds, in the order measured, with the predictions `before` and `after`
    the fit. `mean_error` (`before`, `after`) and `scatter` are shares. `explained`: likely rates explain the durations.
    """
    return {
        "hardware": hardware,
        "rates": {one.name: {"value": one.value, "before": one.before, "error": one.error} for one in fit.rates},
        "durations": [
            {"name": one.name, "seconds": one.measured, "before": one.before, "after": one.after} for one in fit.times
        ],
        "explained": explained(fit),
        "mean_error": {"before": fit.mean_error(before=True), "after": fit.mean_error()},
        "scatter": fit.scatter,
        "files": [str(path) for path in files],
    }
