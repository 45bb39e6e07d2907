"""Phase: lower bounds by diagrams of some stages, where one device with several stages decides."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import AroundDevice, OnDevice
from pipesched.results.gap import gap
from solver.diagram.below import bounds_of_more_stages, bounds_of_stages
from solver.engine.kernels import DIAGRAM_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search

# Labels and states for a unit of counted work, which is about a second.
_WORK_A_UNIT = 300_000
# Labels and states of the first of both: one stage besides those of the device is found, more faster with that.
_WORK, _WORK_OF_MORE = 1_500_000, 60_000_000


@dataclass(frozen=True)
class SomeStages:
    """Values between lower bound and incumbent are tried, within a share of the time; the check takes as long again.

    Only where a gap of more than `above` is left and the lower bound is still what words say of one device with several
    stages. Of few devices, diagrams of all orders keep all.
    """

    share: float = 0.2
    above: float = 0.01
    least_devices: int = 6
    name: str = "diagrams of some stages"

    def applies(self, search: Search) -> bool:
        """Where what is said of one device decides."""
        state = search.incumbent.state
        if not search.engine.raise_bounds or search.problem.devices < self.least_devices:
            return False
        if state.value is None or gap(state.value, state.lower_bound) <= self.above:
            return False
        return _deciding(search) is not None

    def run(self, search: Search) -> None:
        clock, state, work, device = search.clock, search.incumbent.state, _WORK, _deciding(search)
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if device is None or not search.compiled(DIAGRAM_KERNELS, self.share):
            return
        assert state.value is not None
        bounds = bounds_of_stages(
            search.problem, search.stop, float(state.lower_bound), float(state.value), device, work=work
        )
        argue_meanwhile(search, bounds, min(clock.allowed(self.share), clock.allowed() / 3))


@dataclass(frozen=True)
class MoreStages:
    """With more stages and many labels of a state, guided by those found; the check takes as long again."""

    share: float = 0.25
    above: float = 0.01
    name: str = "diagrams of more stages"

    def applies(self, search: Search) -> bool:
        """Once, where some stages gave the bound."""
        state = search.incumbent.state
        if state.value is None or _stages(search) is None:
            return False
        return gap(state.value, state.lower_bound) > self.above

    def run(self, search: Search) -> None:
        state, found, clock = search.incumbent.state, _stages(search), search.clock
        assert found is not None
        assert state.value is not None
        work = _WORK_OF_MORE
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(DIAGRAM_KERNELS, self.share):
            return
        proved, known = float(state.lower_bound), float(state.value)
        bounds = bounds_of_more_stages(search.problem, search.stop, proved, known, found.stages, work=work)
        argue_meanwhile(search, bounds, min(clock.allowed(self.share), clock.allowed() / 2))


def _stages(search: Search) -> Diagram | None:
    """The stages that the lower bound is said of."""
    state = search.incumbent.state
    for one in state.certificates:
        own = one.evidence
        if one.value == state.lower_bound and isinstance(own, Diagram) and own.below is not None and not own.whole:
            return own
    return None


def _deciding(search: Search) -> int | None:
    """The device with several stages of a chain of which the lower bound is said."""
    state, where = search.incumbent.state, search.problem.placement.stage_device
    for one in state.certificates:
        if one.value == state.lower_bound and isinstance(one.evidence, OnDevice | AroundDevice):
            device = one.evidence.device
            several = any(
                sum(where[stage] == device for stage in chain) > 1 for chain in search.problem.placement.chains
            )
            return device if several else None
    return None
