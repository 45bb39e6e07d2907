"""The key `cluster` of a plan file: classes of devices, with their number, speed and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count, permutations, product
from math import lcm
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, whole_number
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.link_times import latency_of
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Part, Refused, of_value
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm, Reading, WriteLayer
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
# Sets and orders of devices, each of which is a plan problem of its own.
_MOST_SETS = 24
_RANGE = r"(\d{1,6})\.\.(\d{1,6})"


class DeviceCount(NamedTuple):
    """The least and the most devices of a class that a plan may use, both included."""

    least: int
    most: int


def _device_count(value: object) -> DeviceCount | None:
    one = whole_number(1)(value)
    if one is not None:
        return DeviceCount(one, one)
    found = re.fullmatch(_RANGE, value) if isinstance(value, str) else None
    ends = None if found is None else DeviceCount(int(found[1]), int(found[2]))
    return ends if ends is not None and ends.most >= max(1, ends.least) else None


DevicesField = Annotated[
    DeviceCount,
    field(
        "a whole number of at least 1, or the least and the most of which the plan chooses, such as 0..2",
        _device_count,
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{_RANGE}$"}]},
    ),
]


class DeviceClass(Section):
    """Devices that follow each other in the pipeline, of one speed and memory."""

    required = ("devices",)

    devices: DevicesField | None = Field(
        None, description="how many; 0..2: the plan chooses how many it uses, and leaves the others out"
    )
    speed: SpeedField = Field(
        Fraction(1), description="a layer takes its time divided by this; default 1", json_schema_extra={"default": 1}
    )
    memory: field_types.Number | None = Field(None, description="of each, in place of memory.capacity")

    @property
    def most(self) -> int:
        """The most devices of the class that a plan may use; 0 if the file does not say."""
        return self.devices.most if self.devices else 0

    @property
    def counts(self) -> range:
        """The numbers of devices of the class that a plan may use, ascending; empty if the file does not say."""
        return range(self.devices.least, self.devices.most + 1) if self.devices else range(0)


# Of each class in the order of the pipeline its place in the file, and the number of its devices.
DeviceSet = tuple[tuple[int, int], ...]


class Keys(Section):
    """The key `cluster`: classes of devices."""

    cluster: list[DeviceClass] | None = Field(
        None, description="in place of devices: classes of them, in the order of the pipeline"
    )


class DecideKeys(Section):
    """The key `decide.cluster`: the order of the classes is given, or free."""

    cluster: Annotated[str, field_types.one_of("given", "free")] = Field(
        "given", description="free: the order of the classes of devices along the pipeline, too"
    )


def _slowness_of(classes: list[DeviceClass] | None) -> tuple[Fraction, ...]:
    """Return the time factor of each device, 1 / speed, as `Cluster.slowness`; empty where every device has speed 1.

    The devices are those of each class in turn, as many as it has at most.
    """
    found = tuple(1 / one.speed for one in classes or () for _ in range(one.most))
    return () if all(each == 1 for each in found) else found


def _sets_of(form: PlanForm) -> list[DeviceSet]:
    """Return the sets of devices that a plan may use, each in every order that it may have along the pipeline.

    Each once; a class of which none is used is left out. If they are more than the limit, which is a mistake, only some
    are returned, still more than the limit.
    """
    free = form.decide is not None and form.decide.cluster == "free"
    places = range(len(form.cluster))
    found: dict[DeviceSet, None] = {}
    for order in permutations(places) if free else [tuple(places)]:
        for counts in product(*(form.cluster[at].counts for at in order)):
            found[tuple((at, number) for at, number in zip(order, counts, strict=True) if number)] = None
            if len(found) > _MOST_SETS + 1:
                return [*found]
    return [one for one in found if one]


def _clusters_of(form: PlanForm, cluster: Cluster) -> tuple[tuple[str, Cluster], ...]:
    """Return (description, cluster) for each cluster that a plan may use: sets of devices, in their possible orders.

    `cluster` has the most devices of every class. Empty where all sets and orders are this one.
    """
    if form.cluster is None:
        return ()
    numbers = count()
    devices = [[next(numbers) for _ in range(one.most)] for one in form.cluster]
    found: dict[Cluster, str] = {}
    for chosen in _sets_of(form):
        name = ", then ".join(_named(form.cluster[at], number, cluster.memory_unit) for at, number in chosen)
        found.setdefault(cluster.reordered([device for at, number in chosen for device in devices[at][:number]]), name)
    return tuple((name, one) for one, name in found.items()) if len(found) > 1 else ()


def _named(one: DeviceClass, number: int, unit: str) -> str:
    memory = "" if one.memory is None else f" with {plain(float(one.memory))} {unit}"
    return f"{number} of speed {plain(float(one.speed))}{memory}"


def _filled(form: PlanForm, wrong: WrongPaths) -> tuple[Any, list[str]]:
    """Return the form with the number and memory of devices that its device classes say, and the classes' mistakes.

    There is a memory for each device, less what the hardware reserves, and as many devices as each class has at most. A
    form without classes, or with mistakes in them, is returned unchanged.
    """
    classes = form.cluster
    if classes is None or any(path.split("[")[0].split(".")[0] == "cluster" for path in wrong):
        return form, []
    found = [*_mistakes(form, classes)]
    if found:
        return form, found
    memory = form.memory
    if classes[0].memory is not None:
        reserved = (form.hardware and form.hardware.reserved) or Fraction(0)
        rooms = [(one.memory or Fraction(0)) - reserved for one in classes for _ in range(one.most)]
        memory = (memory or PlanMemory.model_validate({})).model_copy(update={"capacity": rooms})
    devices = sum(one.most for one in classes)
    return form.model_copy(update={"devices": devices, "memory": memory}), found


def _mistakes(form: PlanForm, classes: list[DeviceClass]) -> Iterator[str]:
    if not classes:
        yield "cluster: found no entry; allowed: one or more"
        return
    missing = [mistake for at, one in enumerate(classes) for mistake in one.missing(f"cluster[{at}]")]
    if missing:
        yield from missing
        return
    devices = sum(one.most for one in classes)
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
        return
    sets = _sets_of(form)
    if len(sets) > _MOST_SETS:
        yield f"cluster: found more than {_MOST_SETS} sets and orders of devices; allowed: up to so many"
        return
    if any(len(one.counts) > 1 for one in classes):
        yield from _mistakes_of_ranges(form)
    named = form.placement if isinstance(form.placement, list) else [form.placement]
    if "bidirectional" in named and any(_differ_on_a_stage(classes, chosen) for chosen in sets):
        yield "placement: found bidirectional, where a stage is on two devices of unequal speed; allowed: others"


def _mistakes_of_ranges(form: PlanForm) -> Iterator[str]:
    """Yield a line for each key with a value by device, which is not allowed if a plan may leave devices out."""
    if isinstance(form.memory and form.memory.capacity, list):
        yield "memory.capacity: found a list, and cluster says not which devices are used; allowed: memory in cluster"
    if isinstance(latency_of(form.transfer), list):
        yield "transfer: found by pair of devices, and cluster says not which are used; allowed: one number"


def _differ_on_a_stage(classes: list[DeviceClass], chosen: DeviceSet) -> bool:
    """Return True if a stage of placement bidirectional, which two devices run, has devices of unequal speed.

    `chosen` are the devices along the pipeline as (index of their class in `classes`, number in a row).
    """
    speeds = [classes[at].speed for at, number in chosen for _ in range(number)]
    return not PLACEMENTS["bidirectional"](len(speeds), 2).same_on_all_chains(speeds)


def _plan(plan: PlanProblem, form: PlanForm, _: Reading) -> PlanProblem:
    """Return the plan problem on these devices, in a tick of which every layer takes a whole number on each of them."""
    cluster = replace(plan.cluster, slowness=_slowness_of(form.cluster))
    finer = lcm(*(each.denominator for each in cluster.slowness))
    return replace(plan, cluster=cluster, tick=plan.tick / finer, clusters=_clusters_of(form, cluster))


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    """Return the speed of each device, and, as the exact key `clusters`, the clusters that a plan may use."""
    slowness = plan.all_devices.slowness
    found: dict[str, object] = {"clusters": [[name, _of_devices(one)] for name, one in plan.clusters]}
    speeds = {"cluster": [{"devices": 1, "speed": str(1 / each)} for each in slowness]}
    return (found if plan.clusters else {}) | (speeds if slowness else {})


def _of_devices(cluster: Cluster) -> dict[str, object]:
    """Return the keys of a cluster that depend on its devices and their order: number, capacity, slowness and links."""
    capacity = None if cluster.capacity is None else list(map(str, cluster.capacity))
    slowness, links = list(map(str, cluster.slowness)), [list(map(str, row)) for row in cluster.links]
    return {"devices": cluster.devices, "capacity": capacity, "slowness": slowness, "links": links}


def _read_back(plan: PlanProblem, document: Mapping[str, Any]) -> PlanProblem:
    orders = document.get("clusters", ())
    return replace(plan, clusters=tuple((str(name), _with_devices(plan.cluster, own)) for name, own in orders))


def _with_devices(cluster: Cluster, document: Any) -> Cluster:
    """Return the cluster with capacity, slowness and links from a document of `_of_devices`."""
    capacity, slowness, *links = (
        tuple(Fraction(str(one)) for one in row or ())
        for row in (document["capacity"], document["slowness"], *document["links"])
    )
    # Evidence of earlier versions has all devices in each order.
    devices = int(document.get("devices", cluster.devices))
    return replace(cluster, devices=devices, capacity=capacity or None, slowness=slowness, links=tuple(links))


def _leaves_open(document: Mapping[str, Any]) -> bool:
    """Return True if a document has a class of devices with a range of numbers, so that a plan may leave some out."""
    classes = [one for one in as_list(document.get("cluster")) or () if isinstance(one, Mapping)]
    return any(len(set(_device_count(one.get("devices")) or ())) > 1 for one in classes)


_OPEN = Part("cluster.devices", "a number of devices that is open", _leaves_open, "0..2")
_LIST = Part("partition", "a partition as a list", lambda document: as_list(document.get("partition")) is not None)

PLAN_FEATURES.register(
    PlanFeature(
        name="cluster",
        keys=Keys,
        sections={"decide": DecideKeys},
        with_units={"cluster.memory": QuantityKind.MEMORY},
        refused=(
            Refused(_OPEN, _LIST, "one number", "a list fixes the devices"),
            Refused(_OPEN, of_value("vocabulary", "shared"), "one number", "each device has a part"),
        ),
        filled=_filled,
        plan=_plan,
        written=_written,
        read_back=_read_back,
        finer=lambda plan: (lcm(*(each.denominator for each in plan.all_devices.slowness)), 1),
        exact_keys=frozenset({"clusters"}),
    )
)
