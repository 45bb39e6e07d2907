"""The older visualiser's configuration file (1F1B with full backwards), converted to a problem document."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.other_kinds import FileKind, kind_of
from pipesched.files.schema_errors import parse_model


class VisualiserFile(Section):
    """The keys of the older visualiser's `sample_config.json` or `sample_config.yaml`."""

    num_stages: field_types.Count | None = Field(None, description="number of pipeline stages (devices)")
    num_batches: field_types.Count | None = Field(None, description="number of micro-batches")
    forward_times: field_types.Numbers | None = Field(None, description="per stage; default 1")
    backward_times: field_types.Numbers | None = Field(None, description="per stage; default 2")
    p2p_time: field_types.Number | None = Field(None, description="default 0")
    output_file: field_types.Text | None = Field(None, description="where the picture goes")


DEFAULT_FORWARD, DEFAULT_BACKWARD = 1, 2


def to_problem_document(document: object, source: str) -> dict[str, Any]:
    """Return the problem document of the older visualiser's configuration.

    `BadInput` lists mistakes under its own keys. `document` is the configuration, `source` its name in messages.
    """
    form, found, _ = parse_model(VisualiserFile, document, ("num_stages", "num_batches"))
    for key in ("forward_times", "backward_times"):
        value = getattr(form, key)
        if isinstance(value, list) and form.num_stages is not None and len(value) != form.num_stages:
            found.append(f"{key}: found {len(value)} values; allowed: {form.num_stages}, one per stage")
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    assert isinstance(document, dict)
    given = {key: value for key, value in document.items() if value is not None}
    return {
        "devices": given["num_stages"],
        "microbatches": given["num_batches"],
        "times": {
            "forward": given.get("forward_times", DEFAULT_FORWARD),
            "backward": given.get("backward_times", DEFAULT_BACKWARD),
            "transfer": given.get("p2p_time", 0),
        },
    }


def output_file(document: Any) -> str | None:
    """Return the path for the picture in the older visualiser's configuration; None where there is none."""
    return document.get("output_file") if kind_of(document) is FileKind.VISUALISER else None
