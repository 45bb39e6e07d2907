"""Errors of predicted steps against published ones, by device and kind of model: written by the accuracy benchmark."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pipesched.files.exact_numbers import read_json
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.results.layouts import ExpectedError

FILE = "expected_errors.json"


def expected_error(hardware: str, config: ModelConfig) -> ExpectedError | None:
    """Of a model on devices of this name; None where too few steps of such models were measured on them."""
    return _known().get(kind_of(hardware, bool(config.model.get("experts"))))


def kind_of(hardware: str, experts: bool) -> str:
    """The family of the device and of the model."""
    return f"{hardware.partition('-')[0].upper()} {'MoE' if experts else 'dense'}"


@cache
def _known() -> dict[str, ExpectedError]:
    text = (files(__package__ or "") / FILE).read_text(encoding="utf-8")
    rows = read_json(text, FILE)
    assert isinstance(rows, list)
    return {row["kind"]: ExpectedError(row["kind"], float(row["mean"]), int(row["rows"])) for row in rows}
