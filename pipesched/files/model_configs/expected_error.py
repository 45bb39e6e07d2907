"""Expected error of a predicted training step, from predictions of published steps, by kind of device and model.

The figures are a table written by `benchmarks.accuracy`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pipesched.files.exact_numbers import read_json
from pipesched.results.layouts import ExpectedError

FILE = "expected_errors.json"


def expected_error(hardware: str, experts: bool, hybrid: bool = False) -> ExpectedError:
    """Return the expected error of a predicted training step, by device and by kind of model.

    `hardware` is the device's name, such as h100-80gb. The kinds are hybrid, with `experts`, and neither. Where too few
    steps were measured for this kind of device, it is the largest mean error among the kinds of device with enough
    measurements, for the same kind of model.
    """
    own, known = kind_of(hardware, experts, hybrid), _known()
    same = [one for name, one in known.items() if name.partition(" ")[2] == own.partition(" ")[2]]
    return known.get(own) or max(same, key=lambda one: one.mean)


def kind_of(hardware: str, experts: bool, hybrid: bool = False) -> str:
    """Return the key of the table of errors: family of the device, then hybrid, MoE or dense, such as `H100 MoE`.

    `experts` is True for MoE, `hybrid` for a model that has a mixer.
    """
    return f"{family_of(hardware)} {'hybrid' if hybrid else 'MoE' if experts else 'dense'}"


def family_of(hardware: str) -> str:
    """Return the family of a device: its name up to the first hyphen, in capitals, such as H100 for h100-80gb."""
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
