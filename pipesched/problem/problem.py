"""A problem: stages on devices, what passes cost and hold. The only place that says what must precede what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, Pass, PassKind, Stream, Task, W
from pipesched.problem.placement import Placement

# Says of a stage and a micro-batch whether its backward runs fused (BW) rather than split (B, later W).
IsFused = Callable[[int, int], bool]


class Objective(StrEnum):
    """What to minimise; defined in docs/concepts.md."""

    MAKESPAN = "makespan"
    SPAN = "span"
    PERIOD = "period"


class TaskSpec(NamedTuple):
    """One task of a pass: the stream it occupies and for how many ticks."""

    stream: Stream
    ticks: int


class Need(NamedTuple):
    """A pass that must have ended `lag` ticks before another one starts."""

    before: Pass
    lag: int


@dataclass(frozen=True)
class Costs:
    """Durations in ticks, one per stage.

    Without `weight` the backward cannot be split: `backward` and `fused` are then the same, full backward.
    `transfer[s]` is the time an activation takes from stage s to the next stage, or a gradient back; it counts only
    between two devices. `overlapped[s]` is one block of the forward of stage s and a full backward run together.
    `parts` lists the tasks of those passes that are more than one task on `compute`.
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    weight: tuple[int, ...] | None
    fused: tuple[int, ...]
    transfer: tuple[int, ...]
    overlapped: tuple[int, ...] | None = None
    parts: Mapping[tuple[PassKind, int], tuple[TaskSpec, ...]] = field(default_factory=dict)

    def of(self, kind: PassKind, stage: int) -> tuple[TaskSpec, ...]:
        """The tasks of a pass, in the order they run."""
        return self._tasks[kind, stage]

    @cached_property
    def _tasks(self) -> dict[tuple[PassKind, int], tuple[TaskSpec, ...]]:
        kinds = (F, BW) if self.weight is None else (F, B, W, BW)
        plain = {(k, s): (TaskSpec(Stream.COMPUTE, t),) for k in kinds for s, t in enumerate(self._plain(k))}
        return plain | dict(self.parts)

    def _plain(self, kind: PassKind) -> tuple[int, ...]:
        if kind is W:
            assert self.weight is not None, "this problem's backward is never split"
            return self.weight
        return {F: self.forward, B: self.backward, BW: self.fused}[kind]


@dataclass(frozen=True)
class Memory:
    """Activation memory in integers of `resolution` (the file's unit times this fraction).

    F takes `activation[s]` when it starts. B gives back `freed[s]` when it ends, W the rest when it ends, BW all of
    it. A negative `freed[s]` is taken when B starts (autograd's split backward keeps more, not less).
    `capacity[d]` is what device d has for activations, None where its memory is unlimited. `static[d]` is what it holds
    besides at all times (weights, gradients, optimizer); it limits nothing here and counts in what users read. A
    capacity below 0 is a device whose static memory alone is too much.
    """

    activation: tuple[int, ...]
    freed: tuple[int, ...]
    capacity: tuple[int | None, ...]
    unit: str = "activations"
    resolution: Fraction = Fraction(1)
    static: tuple[int, ...] = ()

    def held(self, device: int) -> int:
        """What a device holds besides activations."""
        return self.static[device] if self.static else 0


@dataclass(frozen=True, repr=False)
class Problem:
    """Everything that defines one pipeline iteration. Times are integer ticks of `tick` file units each."""

    placement: Placement
    microbatches: int
    costs: Costs
    memory: Memory
    objective: Objective = Objective.MAKESPAN
    name: str = "problem"
    time_unit: str = ""
    tick: Fraction = Fraction(1)
    notes: tuple[str, ...] = field(default=(), compare=False)  # what the user should know of how the file was read

    def __repr__(self) -> str:
        where = f"{self.devices} devices, {self.placement.stages} stages ({self.placement.name})"
        return f"<Problem {self.name!r}: {where}, {self.microbatches} micro-batches, minimise {self.objective.value}>"

    @property
    def devices(self) -> int:
        return self.placement.devices

    @property
    def splittable(self) -> bool:
        """Whether a backward may run as B and a later W at all."""
        return self.costs.weight is not None

    def chain_of(self, microbatch: int) -> tuple[int, ...]:
        """The stages of this micro-batch, first to last. Chains take equal, consecutive shares of micro-batches."""
        share = -(-self.microbatches // len(self.placement.chains))
        return self.placement.chains[microbatch // share]

    @cached_property
    def microbatches_of(self) -> tuple[range, ...]:
        """The micro-batches each stage sees."""
        share = -(-self.microbatches // len(self.placement.chains))
        return tuple(
            range(min(n * share, self.microbatches), min((n + 1) * share, self.microbatches))
            for n in self.placement.chain_index
        )

    @cached_property
    def _ticks(self) -> dict[tuple[PassKind, int], int]:
        kinds = (F, B, W, BW) if self.splittable else (F, BW)
        stages = range(self.placement.stages)
        return {(k, s): sum(part.ticks for part in self.costs.of(k, s)) for k in kinds for s in stages}

    def duration(self, p: Pass) -> int:
        """Ticks from a pass's start to its end when nothing interrupts it and it shares its slot with no other."""
        return self._ticks[p.kind, p.stage]

    def tasks(self, p: Pass) -> Iterator[tuple[Task, TaskSpec]]:
        """The tasks of a pass, each after the one before."""
        return ((Task(p, number), part) for number, part in enumerate(self.costs.of(p.kind, p.stage)))

    def device(self, p: Pass) -> int:
        return self.placement.stage_device[p.stage]

    def overlapped_ticks(self, forward: Pass, backward: Pass) -> int | None:
        """Ticks of the two run as one block, or None where this problem gives no such block (they run in turn)."""
        if self.costs.overlapped is None or (forward.kind, backward.kind) != (F, BW):
            return None
        return self.costs.overlapped[forward.stage]

    def lag(self, stage: int, following: int) -> int:
        """Ticks a tensor takes between a stage and the next one on its chain, either way."""
        device = self.placement.stage_device
        return 0 if device[stage] == device[following] else self.costs.transfer[stage]

    def needs(self, p: Pass, is_fused: IsFused) -> list[Need]:
        """What must have ended before p may start. This is the dependency graph, and nothing else is.

        F needs the F of the stage before; B and BW their own F and the gradient that the next stage's backward
        sends; W its B. `is_fused` tells which kind the next stage's backward is.
        """
        kind, stage, j = p
        if kind is W:
            return [Need(Pass(B, stage, j), 0)]
        if kind is F:
            before = self.placement.previous[stage]
            return [] if before is None else [Need(Pass(F, before, j), self.lag(before, stage))]
        needs = [Need(Pass(F, stage, j), 0)]
        after = self.placement.next[stage]
        if after is not None:
            sender = BW if is_fused(after, j) else B
            needs.append(Need(Pass(sender, after, j), self.lag(stage, after)))
        return needs

    def memory_change(self, p: Pass) -> tuple[int, int]:
        """What a pass takes when it starts and when it ends (negative: gives back), in the memory's integers."""
        activation, freed = self.memory.activation[p.stage], self.memory.freed[p.stage]
        if p.kind is F:
            return activation, 0
        if p.kind is BW:
            return 0, -activation
        if p.kind is B:
            return max(0, -freed), -max(0, freed)
        return 0, freed - activation

    def fused_is_dominated(self, stage: int) -> bool:
        """Whether B directly followed by W is never worse than BW: not longer, no more memory, no block to gain by."""
        if self.costs.weight is None or self.memory.freed[stage] < 0:
            return False
        split = self.duration(Pass(B, stage, 0)) + self.duration(Pass(W, stage, 0))
        mates = self.placement.stages_of[self.placement.stage_device[stage]]
        blocks = [(mate, self.overlapped_ticks(Pass(F, mate, 0), Pass(BW, stage, 0))) for mate in mates]
        gains = any(block is not None and block < self.duration(Pass(F, mate, 0)) + split for mate, block in blocks)
        return self.costs.fused[stage] >= split and not gains

    def least_work(self, stage: int) -> int:
        """The least compute ticks one micro-batch's passes of this stage take in any schedule, alone in their slots."""
        return self._compute(stage, F) + self.least_backward(stage)

    def least_backward(self, stage: int) -> int:
        """Of `least_work`, what the backward takes: in one pass or in two."""
        whole = self._compute(stage, BW)
        return min(whole, self._compute(stage, B, W)) if self.splittable else whole

    def _compute(self, stage: int, *kinds: PassKind) -> int:
        return sum(part.ticks for k in kinds for part in self.costs.of(k, stage) if part.stream is Stream.COMPUTE)

    def in_units(self, ticks: int | Fraction) -> float:
        """Ticks as a number of the file's time unit."""
        return float(ticks * self.tick)
