"""The section `memory` of a plan file."""

from __future__ import annotations

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section


class PlanMemory(Section):
    """Memory of a device: its layers and the activations they hold; without this section it is unlimited."""

    unit: field_types.Text = Field("GiB", description="a label only")
    capacity: field_types.NumbersPerDevice | None = Field(
        None, description="the whole device's; a number, or one per device"
    )
