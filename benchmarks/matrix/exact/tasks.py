"""The variables of the exact model: tasks on streams, passes made of them, and what is taken of memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from benchmarks.matrix.exact.cells import Shape, Spec

Literal = Any


class Run(NamedTuple):
    """A task: where it runs, from when to when, and whether it does."""

    device: int
    start: Any
    end: Any
    runs: Literal


class Pass(NamedTuple):
    """A pass: when its tasks begin, when what it needs must be there, when they have ended, and whether it runs.

    `received` is when it begins to receive, where that takes part of its device's time.
    """

    begins: Sequence[Any]
    needs: Any
    ends: Sequence[Any]
    runs: Literal
    received: Any = None

    @property
    def begin(self) -> Any:
        return self.begins[0]

    @property
    def end(self) -> Any:
        return self.ends[-1]


class Change(NamedTuple):
    """An amount of a memory taken or given back at an instant, by whom, and at which place of its life."""

    at: Any
    amount: Fraction
    runs: Literal
    of: object
    rank: int


@dataclass
class Tasks:
    """All tasks so far; `unit` ticks are one of the document's units of time."""

    shape: Shape
    unit: int
    horizon: int
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    streams: dict[tuple[int, str], list[Any]] = field(default_factory=dict)
    all: list[Run] = field(default_factory=list)
    takes: dict[str, list[Change]] = field(default_factory=dict)
    gives: dict[str, list[Change]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.true = self.cp.new_constant(1)

    def time(self) -> Any:
        """An instant."""
        return self.cp.new_int_var(0, self.horizon, "")

    def task(self, device: int, stream: str, time: Fraction, runs: Literal) -> Run:
        """A task on a stream of a device, or on that of the device with which it is shared."""
        ticks, start = int(time * self.unit), self.time()
        where = self.shape.shared.get((stream, device), device), stream
        interval = self.cp.new_optional_interval_var(start, ticks, start + ticks, runs, "")
        self.streams.setdefault(where, []).append(interval)
        self.all.append(Run(where[0], start, start + ticks, runs))
        return self.all[-1]

    def in_a_row(self, device: int, specs: Sequence[Spec], runs: Literal) -> Pass:
        """Tasks that run one after the other."""
        found = [self.task(device, spec.stream, spec.time, runs) for spec in specs]
        for one, other in pairwise(found):
            self.cp.add(one.end <= other.start).only_enforce_if(runs)
        needs = next(task.start for task, spec in zip(found, specs, strict=True) if spec.needs_input)
        received = next((task.start for task, spec in zip(found, specs, strict=True) if spec.receives), None)
        return Pass([task.start for task in found], needs, [task.end for task in found], runs, received)

    def take(self, memory: str, change: Change) -> None:
        """From this instant on."""
        if change.amount:
            self.takes.setdefault(memory, []).append(change)

    def give(self, memory: str, change: Change) -> None:
        """At this instant."""
        if change.amount:
            self.gives.setdefault(memory, []).append(change)
