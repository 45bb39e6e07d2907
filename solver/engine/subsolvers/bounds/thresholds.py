"""Subsolvers: decision diagrams refute thresholds, keeping all stages of some devices, or chosen stages of a chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.problem.quantities import DeviceId, StageId
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import AroundDevice, OnDevice
from solver.diagram.threshold_bounds import bounds_of_devices, bounds_of_more_stages, bounds_of_stages
from solver.diagram.threshold_search import ThresholdSearch
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.search import Search


@dataclass(frozen=True)
class ThresholdsOnDevices(DiagramBounds):
    """Refute thresholds between lower bound and incumbent by diagrams of all stages on some devices of one chain.

    The devices are evenly spaced along the chain.
    """

    name: str = "diagrams below a value"

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        return bounds_of_devices(ThresholdSearch(search.problem, stop, search.open_ticks, work=work))


@dataclass(frozen=True)
class ThresholdsOnStages(DiagramBounds):
    """Refute thresholds by diagrams of all stages of one device and the other stages that raise the bound most.

    It is for problems with several stages on a device. Where a threshold diagram, of any subsolver, proved the current
    lower bound, diagrams of its stages and further ones are tried first, with completion bounds from it. Then each
    device with several stages of a chain is tried once. `work` of `bounds` limits the labels of each of these searches,
    not of all together.
    """

    name: str = "diagrams of some stages"

    def serves(self, search: Search) -> bool:
        several = any(len(stages) > 1 for stages in search.problem.placement.stages_of)
        return super().serves(search) and several

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        devices = iter(_devices(search))
        tried, proved = set[tuple[int, ...] | None]({None}), 0.0

        def open_ticks() -> tuple[float, float]:
            claimed, known = search.open_ticks()
            return max(proved, claimed), known

        while True:
            stages_of_bound = _stages_of_bound(search)
            if stages_of_bound not in tried:
                tried.add(stages_of_bound)
                found = bounds_of_more_stages(
                    ThresholdSearch(search.problem, stop, open_ticks, work=work), stages_of_bound or ()
                )
            elif (device := next(devices, None)) is not None:
                found = bounds_of_stages(ThresholdSearch(search.problem, stop, open_ticks, work=work), device)
            else:
                return
            for one in found:
                proved = float(one.value_ticks)
                yield one


def _stages_of_bound(search: Search) -> tuple[StageId, ...] | None:
    """Return the stages kept in the threshold diagram that proved the current lower bound; None if none did.

    They are chain by chain, in the order of each.
    """
    state = search.incumbent.state
    for one in state.certificates:
        evidence = one.evidence
        if one.value_ticks == state.lower_bound and isinstance(evidence, Diagram) and evidence.below is not None:
            return evidence.stages
    return None


def _devices(search: Search) -> list[DeviceId]:
    """Return the devices with several stages of one chain, those that the current lower bound speaks of first.

    Both groups are ascending.
    """
    state, placement = search.incumbent.state, search.problem.placement
    where = placement.stage_device
    several = [
        device
        for device in range(search.problem.devices)
        if any(sum(where[stage] == device for stage in chain) > 1 for chain in placement.chains)
    ]
    named = [
        one.evidence.device
        for one in state.certificates
        if one.value_ticks == state.lower_bound and isinstance(one.evidence, OnDevice | AroundDevice)
    ]
    return sorted(several, key=lambda device: (device not in named, device))
