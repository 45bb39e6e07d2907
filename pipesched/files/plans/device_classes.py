"""Classes of devices in a plan file: how many there are of each, how fast they are, and what memory they have."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm

from pipesched.files.plans.schema import DeviceClass, PlanFile, PlanMemory
from pipesched.files.schema_errors import shown
from pipesched.problem.placement import PLACEMENTS

# Ticks are so many times finer than those of layers at most, so that a layer takes whole ticks on every device.
_MOST_FINER = 1000


def slowness_of(classes: list[DeviceClass] | None) -> tuple[Fraction, ...]:
    """As in `Cluster`: empty where all devices take a layer's own time."""
    found = tuple(1 / one.speed for one in classes or () for _ in range(one.devices or 0))
    return () if all(each == 1 for each in found) else found


def with_device_classes(form: PlanFile, wrong: frozenset[str]) -> tuple[PlanFile, list[str]]:
    """The file with the number of devices and their memory filled in, and what is wrong with its classes."""
    classes = form.cluster
    if classes is None or any(path.split("[")[0].split(".")[0] == "cluster" for path in wrong):
        return form, []
    found = [*_mistakes(form, classes)]
    if found:
        return form, found
    memory = form.memory
    if classes[0].memory is not None:
        reserved = (form.hardware and form.hardware.reserved) or Fraction(0)
        rooms = [(one.memory or Fraction(0)) - reserved for one in classes for _ in range(one.devices or 0)]
        memory = (memory or PlanMemory.model_validate({})).model_copy(update={"capacity": rooms})
    devices = sum(one.devices or 0 for one in classes)
    return form.model_copy(update={"devices": devices, "memory": memory}), found


def _mistakes(form: PlanFile, classes: list[DeviceClass]) -> Iterator[str]:
    if not classes:
        yield "cluster: found no entry; allowed: one or more"
        return
    missing = [f"cluster[{at}].devices: missing; it is required" for at, one in enumerate(classes) if not one.devices]
    if missing:
        yield from missing
        return
    devices = sum(one.devices or 0 for one in classes)
    if form.devices not in (None, devices):
        yield f"devices: found {form.devices}; allowed: those of cluster, {devices}, or no such key"
    known = {one.memory is not None for one in classes}
    if len(known) > 1:
        yield "cluster: found memory of some classes alone; allowed: of all, or of none"
    if True in known and form.model is None and form.memory is not None and form.memory.capacity is not None:
        yield "memory.capacity: found beside memory in cluster; allowed: one of the two"
    slowness = slowness_of(classes)
    finer = lcm(*(each.denominator for each in slowness))
    if finer > _MOST_FINER:
        speeds = ", ".join(shown(float(one.speed)) for one in classes)
        yield f"cluster: found speeds {speeds}, of which no tick is a part; allowed: numbers of fewer digits"
    named = form.placement if isinstance(form.placement, list) else [form.placement]
    if "bidirectional" in named and slowness:
        where = PLACEMENTS["bidirectional"](devices, 2)
        pairs = zip(*where.chains, strict=True)
        if any(len({slowness[where.stage_device[stage]] for stage in same}) > 1 for same in pairs):
            yield "placement: found bidirectional, where a stage is on two devices of unequal speed; allowed: others"
