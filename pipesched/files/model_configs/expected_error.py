"""Errors of predicted steps against published ones, by device and kind of model: written by the accuracy benchmark."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pipesched.files.exact_numbers import read_json
from pipesched.results.layouts import ExpectedError

FILE = "expected_errors.json"


def expected_error(hardware: str, experts: bool) -> ExpectedError:
    """Of models with or without experts on devices of this name.

    Where too few such steps were measured on them, the largest error of a device on which enough were: no device is
    predicted better than that without a measurement.
    """
    own, known = kind_of(hardware, experts), _known()
    same = [one for name, one in known.items() if name.partition(" ")[2] == own.partition(" ")[2]]
    return known.get(own) or max(same, key=lambda one: one.mean)


def kind_of(hardware: str, experts: bool) -> str:
    """The family of the device and of the model."""
    return f"{family_of(hardware)} {'MoE' if experts else 'dense'}"


def family_of(hardware: str) -> str:
    """The family of the device: H100 of h100-80gb."""
    return hardware.partition("-")[0].upper()


@cache
def _known() -> dict[str, ExpectedError]:
    text = (files(__package__ or "") / FILE).read_text(encoding="utf-8")
    rows = read_json(text, FILE)
    assert isinstance(rows, list)
    return {
        row["kind"]: ExpectedError(
            row["kind"], float(row["mean"]), int(row["rows"]), float(row["ratio"]), int(row["pairs"])
        )
        for row in rows
    }
