"""Classes of devices in a plan file: how many there are of each, how fast they are, and what memory they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count, permutations
from math import lcm
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.kind import Kind
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, Reading, WriteLayer, Wrong
from pipesched.files.plans.fields import SpeedField
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.schema_errors import shown
from pipesched.layers.cluster import Cluster
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.placement import PLACEMENTS

# Ticks are so many times finer than those of layers at most, so that a layer takes whole ticks on every device.
_MOST_FINER = 1000
# Whose orders may be free: there are 24 of four.
_MOST_CLASSES = 4


class DeviceClass(Section):
    """Devices that follow each other in the pipeline, of one speed and memory."""

    required = ("devices",)

    devices: field_types.Count | None = Field(None, description="how many")
    speed: SpeedField = Field(
        Fraction(1), description="a layer takes its time divided by this; default 1", json_schema_extra={"default": 1}
    )
    memory: field_types.Number | None = Field(None, description="of each, in place of memory.capacity")


class Keys(Section):
    """The classes."""

    cluster: list[DeviceClass] | None = Field(
        None, description="in place of devices: classes of them, in the order of the pipeline"
    )


class DecideKeys(Section):
    """Their order."""

    cluster: Annotated[str, field_types.one_of("given", "free")] = Field(
        "given", description="free: the order of the classes of devices along the pipeline, too"
    )


def _slowness_of(classes: list[DeviceClass] | None) -> tuple[Fraction, ...]:
    """Return the time factor of each device, as `Cluster.slowness`; empty where every device has speed 1."""
    found = tuple(1 / one.speed for one in classes or () for _ in range(one.devices or 0))
    return () if all(each == 1 for each in found) else found


def _orders_of(form: Any, cluster: Cluster) -> tuple[tuple[str, Cluster], ...]:
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


def _filled(form: Any, wrong: Wrong) -> tuple[Any, list[str]]:
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


def _mistakes(form: Any, classes: list[DeviceClass]) -> Iterator[str]:
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
    slowness = _slowness_of(classes)
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


def _plan(plan: PlanProblem, form: Any, _: Reading) -> PlanProblem:
    """The plan on these devices; a layer takes whole ticks on each of them."""
    cluster = replace(plan.cluster, slowness=_slowness_of(form.cluster))
    finer = lcm(*(each.denominator for each in cluster.slowness))
    return replace(plan, cluster=cluster, tick=plan.tick / finer, clusters=_orders_of(form, cluster))


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    """The speed of each device, and its orders, which are `exact_keys`."""
    slowness = plan.all_devices.slowness
    found: dict[str, object] = {"clusters": [[name, _of_devices(one)] for name, one in plan.clusters]}
    speeds = {"cluster": [{"devices": 1, "speed": str(1 / each)} for each in slowness]}
    return (found if plan.clusters else {}) | (speeds if slowness else {})


def _of_devices(cluster: Cluster) -> dict[str, object]:
    """Return the keys of a cluster that depend on the order of its devices: capacity, slowness and links."""
    capacity = None if cluster.capacity is None else list(map(str, cluster.capacity))
    slowness, links = list(map(str, cluster.slowness)), [list(map(str, row)) for row in cluster.links]
    return {"capacity": capacity, "slowness": slowness, "links": links}


def _read_back(plan: PlanProblem, document: Mapping[str, Any]) -> PlanProblem:
    orders = document.get("clusters", ())
    return replace(plan, clusters=tuple((str(name), _with_devices(plan.cluster, own)) for name, own in orders))


def _with_devices(cluster: Cluster, document: Any) -> Cluster:
    """Return the cluster with capacity, slowness and links from a document of `_of_devices`."""
    capacity, slowness, *links = (
        tuple(Fraction(str(one)) for one in row or ())
        for row in (document["capacity"], document["slowness"], *document["links"])
    )
    return replace(cluster, capacity=capacity or None, slowness=slowness, links=tuple(links))


PLAN_FEATURES.register(
    PlanFeature(
        name="cluster",
        keys=Keys,
        sections={"decide": DecideKeys},
        with_units={"cluster.memory": Kind.MEMORY},
        filled=_filled,
        plan=_plan,
        written=_written,
        read_back=_read_back,
        finer=lambda plan: (lcm(*(each.denominator for each in plan.all_devices.slowness)), 1),
        exact_keys=frozenset({"clusters"}),
    )
)
