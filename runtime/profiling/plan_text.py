"""Writes the profile of a model cut into single layers as a plan file."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal

from pipesched.files.layers_text import layers_text
from runtime.profiling.layer_types import layer_types
from runtime.profiling.problem_text import header
from runtime.profiling.profile import Profile


def plan_text(
    profile: Profile, name: str, devices: int, microbatches: int, capacity: str | None, objective: str
) -> str:
    """The text of a plan file in ms and MiB that `plan` reads; `capacity` is all of a device's memory in MiB."""
    lines = "\n".join([*header(profile), *_body(profile, name, devices, microbatches, capacity, objective)])
    return f"{lines}\n{layers_text(layer_types(profile))}"


def _body(
    profile: Profile, name: str, devices: int, microbatches: int, capacity: str | None, objective: str
) -> Iterator[str]:
    yield "# memory of a layer: parameters, gradients and Adam's two moments; recomputation runs its forward again"
    yield f"name: {name}"
    yield f"devices: {devices}"
    yield f"microbatches: {microbatches}"
    yield "time_unit: ms"
    slowest = max((samples.median for samples in profile.transfers), default=0.0)
    yield f"transfer: {(Decimal(slowest) * 1000).quantize(Decimal('0.001'), ROUND_HALF_EVEN)}"
    room = "" if capacity is None else f"capacity: {capacity}, "
    yield f"memory: {{{room}unit: MiB}}"
    yield f"objective: {objective}"
