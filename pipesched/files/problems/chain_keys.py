"""The key `chains` of a problem file: different paths of micro-batches through the stages."""

from __future__ import annotations

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section


class Chain(Section):
    """Stages that some micro-batches go through, in this order; the backward goes through them in reverse."""

    required = ("stages", "microbatches")

    stages: field_types.StageNumbers | None = Field(None, description="the stages, first to last")
    microbatches: field_types.Count | None = Field(None, description="how many go through them: those that come next")
