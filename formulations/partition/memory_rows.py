"""Lower bounds by memory for every order, as rows of a partition's variables: round trips, and memory over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.partition.chain_paths import ChainPaths, PathLengths
from formulations.partition.stage_terms import ChainPosition, Linear
from pipesched.problem.quantities import DeviceId

# Limits above this multiple of the number of stages from the stage on count as no limit.
_MOST_ROUNDS = 3
# Up to this limit of micro-batches, each number has its own rows.
_FINE = 12
# Number of levels to which an activation's share of a device's memory is rounded.
_LEVELS = 24


class _Times(NamedTuple):
    """Times of a stage in ticks, each as one variable or number.

    `least_backward` is the least time that a backward adds to its device's work.
    """

    forward: Linear
    gradient: Linear
    least_backward: Linear


class MemoryRows:
    """Rows that make `value`, the objective in ticks, at least the bounds that limited memory implies for one chain.

    `capacity` is the memory by device, in steps of the partition model.
    """

    def __init__(self, chain: ChainPaths, value: cp_model.IntVar, capacity: Sequence[int]) -> None:
        layers, model = chain.plan.model.sequence, chain.model
        self._chain, self._value, self._capacity = chain, value, capacity
        self._span = chain.plan.objective.by_device
        self._all_activations = int(sum((layer.activation for layer in layers), Fraction(0)) / model.step)
        self._keeps_whole = all(layer.freed_by_backward == 0 for layer in chain.plan.model.layers)

    def add(self, paths: PathLengths) -> None:
        """Add the rows for micro-batches in flight on each stage, and for memory over time on each device.

        `paths` are those of the one chain of the placement.
        """
        for stage in range(self._chain.placement.stages):
            self._in_flight(stage, paths)
        for device in range(self._chain.placement.devices):
            self._memory_over_time(device, paths)

    def _in_flight(self, stage: ChainPosition, paths: PathLengths) -> None:
        """Add rows by the number of micro-batches for whose activations a stage has memory.

        There is a literal for each number or range.
        """
        cp, m = self._chain.model.cp, self._chain.plan.microbatches
        device, terms = self._chain.placement.stage_device[stage], self._chain.model.terms[stage]
        room = self._chain.named(
            f"room{stage}", self._capacity[device] - self._chain.static(device), self._capacity[device]
        )
        activation = self._chain.named(f"activation{stage}", terms.activation, self._all_activations)
        times = _Times(
            *(
                self._chain.named(f"{name}{stage}", getattr(terms, name), self._chain.longest)
                for name in ("forward", "gradient", "least_backward")
            )
        )
        literals = []
        for least, most in _numbers_admitted(m, len(self._chain.chains[0]) - stage):
            admits = cp.new_bool_var(f"admits{stage}.{least}")
            literals.append(admits)
            # At least `least` micro-batches fit; the rows are those of `most`, the weakest of the range.
            cp.add(least * activation <= room).only_enforce_if(admits)
            for bound in self._admitting(stage, most, times, paths) if most is not None else []:
                cp.add(self._value >= bound).only_enforce_if(admits)
        cp.add_exactly_one(literals)

    def _admitting(self, stage: ChainPosition, number: int, times: _Times, paths: PathLengths) -> list[Linear]:
        """Return lower bounds on the objective in ticks, if memory admits at most `number` micro-batches to a stage.

        `number` is less than the number of all micro-batches.
        """
        m, around = self._chain.plan.microbatches, paths.around[stage]
        rounds = -(-m // number)
        there_and_back = times.forward + around + times.gradient
        found = [paths.head[stage] + rounds * there_and_back + paths.tail[stage]]
        if len(self._chain.positions(self._chain.placement.stage_device[stage])) > 1:
            return found
        # One stage on the device: it idles before its first backward, when memory is full of forwards.
        idle = around - (number - 1) * times.forward
        work = m * (times.forward + times.least_backward)
        if not self._chain.plan.model.splittable:
            found.append(paths.head[stage] + work + idle + paths.tail[stage])
        elif not self._span:
            found.append(paths.head[stage] + work + idle)
        if self._keeps_whole:
            # When the last forward ends, the backwards of at most `number` micro-batches are left, the last one a round
            # trip away.
            after = around + times.gradient + paths.tail[stage]
            end = paths.head[stage] + work - number * times.least_backward + after
            found += [end, end + idle]
        return found

    def _memory_over_time(self, device: DeviceId, paths: PathLengths) -> None:
        """Add rows: all activations of a device, each times its duration, fit the free memory times the time.

        None for a device with one stage. The share of the memory that an activation takes is rounded down to one of a
        few levels.
        """
        positions, cp, m = self._chain.positions(device), self._chain.model.cp, self._chain.plan.microbatches
        if len(positions) == 1:
            return  # a device with one stage is covered by whole micro-batches above
        room = self._chain.named(
            f"left{device}", self._capacity[device] - self._chain.static(device), self._capacity[device]
        )
        taken: list[Linear] = []
        for k in positions:
            terms = self._chain.model.terms[k]
            occupied_for = self._chain.named(
                f"held{k}", terms.forward + paths.around[k] + terms.gradient, self._chain.longest
            )
            activation = self._chain.named(f"each{k}", terms.activation, self._all_activations)
            literals = [cp.new_bool_var(f"share{k}.{level}") for level in range(_LEVELS)]
            cp.add_exactly_one(literals)
            parts = cp.new_int_var(0, _LEVELS * m * self._chain.longest, f"taken{k}")
            for level, literal in enumerate(literals):
                cp.add(_LEVELS * activation <= (level + 1) * room).only_enforce_if(literal)
                if level:
                    cp.add(parts >= level * m * occupied_for).only_enforce_if(literal)
            taken.append(parts)
        # For the makespan they fit a whole number of ticks; a span is rounded down.
        time = self._value - paths.head[positions[0]] - paths.tail[positions[0]]
        cp.add(_LEVELS * time + (_LEVELS - 1) * self._span >= sum(taken))


def _numbers_admitted(microbatches: int, stages: int) -> Iterator[tuple[int, int | None]]:
    """Yield inclusive ranges (least, most) of the numbers of micro-batches that memory may admit to a stage.

    Each range gets one bound. `microbatches` is the number of all, `stages` that of the stages from this one on. Ranges
    are single numbers at first and then widen; the last has no upper limit (None), since hardly any bound follows
    there.
    """
    least = 1
    while least < microbatches and least <= _MOST_ROUNDS * stages:
        most = min(microbatches - 1, least + least // _FINE)
        yield least, most
        least = most + 1
    yield least, None
