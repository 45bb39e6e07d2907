"""Argument: for any modes of the activations, their total need of a device's compute, memory and copies has to fit.

For each resource: value >= its fixed need + the need of the activations. So the same holds of every weighted mean of
resources, and each activation needs of that mean at least what its cheapest mode does.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from pipesched.checking.coverage import require_covered
from pipesched.checking.devices.head_and_tail import return_path
from pipesched.checking.devices.least_times import least_backward
from pipesched.checking.devices.one_device import OneDevice, most_in
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MemoryTicks, StageId
from pipesched.problem.stage import Stage
from pipesched.results.evidence import ResourceWeights

# What problems may use besides that activations are offloaded or recomputed.
_KNOWN = frozenset(("offload", "recompute", "may_keep", "hosts", "shared_streams"))


def memory_and_copies(problem: Problem, evidence: ResourceWeights) -> Fraction:
    """Return the bound, in ticks: the weighted mean of the device's resources, each activation in its cheapest mode.

    Raises `NotCoveredError` for problems with overlapped blocks or quantities that the check does not know, and
    `RefusedEvidenceError` if no micro-batch passes the device, or if a resource has no weight or one below 0, or all
    are 0.
    """
    require_covered(problem, _KNOWN)
    if problem.overlaps:
        raise NotCoveredError("the check does not cover offload and recomputation with overlapped blocks")
    here = _Resources(problem, evidence.device)
    weights = evidence.weights
    if len(weights) != len(here.fixed) or min(weights) < 0 or not any(weights):
        raise RefusedEvidenceError(f"found weights {list(weights)[:8]}; there are {len(here.fixed)} resources")
    total = sum((weight * fixed for weight, fixed in zip(weights, here.fixed, strict=True)), Fraction(0))
    for s in here.device.stages:
        by_mode = (here.needs(s, mode, keeps) for mode, (keeps, _) in problem.stages[s].memory_until_backward.items())
        cheapest = min(sum(weight * need for weight, need in zip(weights, needs, strict=True)) for needs in by_mode)
        total += here.device.count[s] * cheapest
    return total / sum(weights)


class _Resources:
    """The resources of a device: its compute stream, its memory, and the other streams that copy.

    `fixed` is the need of each resource in ticks without activations; `needs` returns the need of one activation. The
    need of memory is memory times ticks divided by the device's memory.
    """

    def __init__(self, problem: Problem, device: DeviceId) -> None:
        self.device = OneDevice(problem, device)
        self._own = [problem.stages[s] for s in self.device.stages]
        self._first, self._back = 0, 0
        if problem.objective.from_zero:
            begins = [(s, chain[0]) for chain in problem.placement.chains for s in chain if s in self.device.stages]
            self._first = self.device.first_start
            self._back = min(return_path(self.device, s, first) for s, first in begins)
        offloads = [stage.offload for stage in self._own if stage.offload is not None]
        self._copying = sorted({name for one in offloads for name in (one.out_stream, one.in_stream)})
        self._copying = [name for name in self._copying if name != problem.stages[0].stream]
        self._compute = problem.stages[0].stream
        self._room = self._whole_room()
        self.fixed = [self._fixed_compute(), *([self._fixed_memory()] if self._room else ())]
        # Before the first copy a forward has run, after the last one a backward.
        between = min(stage.forward for stage in self._own)
        between += min(self.device.times[s].gradient for s in self.device.stages)
        self.fixed += [Fraction(self._first + between + self._back)] * len(self._copying)

    def _whole_room(self) -> MemorySteps:
        """Return the part of the capacity that sums of the passes' amounts can fill exactly; 0 without a limit."""
        amounts = [n for stage in self._own for n in (stage.activation, stage.freed)]
        amounts += [keeps for stage in self._own for keeps, _ in stage.memory_until_backward.values()]
        unit = gcd(*amounts)
        return 0 if self.device.room is None or not unit else max(0, self.device.room // unit * unit)

    def _fixed_compute(self) -> Fraction:
        """Return the fixed compute need in ticks.

        It is the path to the device, all its passes, and the path back less the weight passes that may be deferred
        until then.
        """
        put_off = most_in(self.device.room, self.device.weight_passes())
        return Fraction(self._first + self.device.work + max(0, self._back - put_off))

    def _fixed_memory(self) -> Fraction:
        """Return the fixed memory need in ticks of the whole memory.

        It is the path to the device, memory left empty by the first forwards, and the path back. After the last
        gradient, memory in use waits for weight passes: for each unit at most one such pass counts.
        """
        longest_weight = max((stage.weight or 0 for stage in self._own), default=0)
        largest = max(max(stage.activation, stage.activation - stage.freed) for stage in self._own)
        forward, begun, empty = min(stage.forward for stage in self._own), 0, 0
        while largest and (begun + 1) * largest <= self._room:
            begun += 1
            empty += forward * (self._room - begun * largest)
        if begun > sum(self.device.count[s] for s in self.device.stages):
            empty = 0
        return self._first + Fraction(empty, self._room) + max(0, self._back - longest_weight)

    def needs(self, s: StageId, mode: PassKind | None, keeps: MemorySteps) -> list[Fraction]:
        """Return by resource the ticks that an activation of stage `s` needs, if its mode keeps `keeps` on the device.

        `mode` is None where it stays there; entries are compute, memory if it is limited (ticks of the whole memory),
        and the other streams that copy, in order of their names.
        """
        stage, times = self.device.problem.stages[s], self.device.times[s]
        busy = dict.fromkeys((self._compute, *self._copying), 0)
        whole = stage.forward
        if mode is OFFLOAD:
            assert stage.offload is not None
            out, back, *names = stage.offload[:4]
            for name, ticks in zip(names, (out, back), strict=True):
                busy[str(name)] += ticks
            whole += out + back
        elif mode in RECOMPUTATIONS:
            again = stage.recompute[RECOMPUTATIONS.index(mode)].ticks
            busy[self._compute] += again
            whole += again
        there_and_back = max(whole, times.gradient_begins - times.begins)
        memory_time = stage.activation * whole + keeps * (there_and_back - whole) + _memory_time_of_backward(stage)
        memory = [Fraction(memory_time, self._room)] if self._room else []
        return [Fraction(busy[self._compute]), *memory, *(Fraction(busy[name]) for name in self._copying)]


def _memory_time_of_backward(stage: Stage) -> MemoryTicks:
    """Return the least memory-time of a backward, which is memory in use times ticks: of B and W, or of a fused one."""
    if stage.weight is None:
        return least_backward(stage) * stage.activation
    after = stage.activation - stage.freed
    return min(stage.fused * stage.activation, stage.backward * max(stage.activation, after) + stage.weight * after)
