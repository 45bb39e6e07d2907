"""Classes of devices in a plan file: how many there are of each, how fast they are, and what memory they have."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count, permutations
from math import lcm

from pipesched.files.plans.schema import DeviceClass, PlanFile, PlanMemory
from pipesched.files.schema_errors import shown
from pipesched.layers.cluster import Cluster
from pipesched.problem.formatting import plain
from pipesched.problem.placement import PLACEMENTS

# Ticks are so many times finer than those of layers at most, so that a layer takes whole ticks on every device.
_MOST_FINER = 1000
# Whose orders may be free: there are 24 of four.
_MOST_CLASSES = 4


def slowness_of(classes: list[DeviceClass] | None) -> tuple[Fraction, ...]:
    """Return the time factor of each device, as `Cluster.slowness`; empty where every device has speed 1."""
    found = tuple(1 / one.speed for one in classes or () for _ in range(one.devices or 0))
    return () if all(each == 1 for each in found) else found


def orders_of(form: PlanFile, cluster: Cluster) -> tuple[tuple[str, Cluster], ...]:
    """Return the orders of the device classes along the pipeline, each with its cluster, if the file leaves them free.

    Empty where the order is given, or where all orders are the same cluster.
    """
    if form.decide is None or form.decide.cluster == "given":
        return ()
    numbers = count()
    classes = [(one, [next(numbers) for _ in range(one.devices or 0)]) for one in form.cluster or ()]
    found: dict[Cluster, str] = {}
    for order in permutations(classes):
        name = ", then ".join(_named(one, cluster.memory_unit) for one, _ in order)
        found.setdefault(cluster.reordered([device for _, own in order for device in own]), name)
    return tuple((name, one) for one, name in found.items()) if len(found) > 1 else ()


def _named(one: DeviceClass, unit: str) -> str:
    memory = "" if one.memory is None else f" with {plain(float(one.memory))} {unit}"
    return f"{one.devices} of speed {plain(float(one.speed))}{memory}"


def with_device_classes(form: PlanFile, wrong: frozenset[str]) -> tuple[PlanFile, list[str]]:
    """Return the form with the number of devices and their memory from its device classes, and the classes'
    mistakes."""
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
    missing = [mistake for at, one in enumerate(classes) for mistake in one.missing(f"cluster[{at}]")]
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
    if form.decide and form.decide.cluster == "free" and len(classes) > _MOST_CLASSES:
        yield f"decide.cluster: found free with {len(classes)} classes; allowed: with up to {_MOST_CLASSES}"
    named = form.placement if isinstance(form.placement, list) else [form.placement]
    if "bidirectional" in named and slowness:
        where = PLACEMENTS["bidirectional"](devices, 2)
        pairs = zip(*where.chains, strict=True)
        if any(len({slowness[where.stage_device[stage]] for stage in same}) > 1 for same in pairs):
            yield "placement: found bidirectional, where a stage is on two devices of unequal speed; allowed: others"
