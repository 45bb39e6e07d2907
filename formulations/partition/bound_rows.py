"""Lower bounds that hold for every order, as rows of a partition's variables: load, head and tail, round trips.

They are the arguments of the analytic bounds on one problem (solver/bounds/analytic), stated for all partitions at
once: sums of stages' times become linear expressions, and the micro-batches that memory admits become a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.partition.partition_model import Linear, PartitionModel
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.problem import Objective

# A limit of more micro-batches than this many times the stages from there on is stated as none.
_MOST_ROUNDS = 3
# Up to this number of micro-batches admitted, each has rows of its own.
_FINE = 12
# How finely an activation's share of a device's memory is told.
_LEVELS = 24


@dataclass(frozen=True)
class _Paths:
    """Of each stage of a chain: the way to its first forward, from a gradient's end on to the iteration's, and around.

    `around[k]` is from the end of a forward of stage k to the earliest start of the same micro-batch's backward.
    """

    head: list[Linear]
    tail: list[Linear]
    around: list[Linear]


class _Times(NamedTuple):
    """Times of a stage, each a variable."""

    forward: Linear
    gradient: Linear
    rest: Linear


class BoundRows:
    """Rows that hold `value`, the objective in ticks, above every bound for this placement."""

    def __init__(self, model: PartitionModel, choice: Choice, value: cp_model.IntVar) -> None:
        plan = model.plan
        self.model, self.value, self.plan = model, value, plan
        self.placement = choice.on(plan.cluster.devices)
        self.chains = self.placement.chains
        # With blocks, several chains or transfers as tasks only the load is stated; it always holds.
        self.one_chain = len(self.chains) == 1
        self.span = plan.objective is Objective.SPAN
        self._capacity = model.capacity or None
        layers = plan.model.sequence
        way = sum((_longest(layer) for layer in layers), Fraction(0)) / plan.tick
        overhead = (plan.model.forward_overhead + plan.model.backward_overhead) * len(self.chains[0]) / plan.tick
        # No way through the stages and back takes longer.
        self._whole_way = int(way + overhead) + sum(map(sum, _lags(self))) if self.one_chain else 0
        self._all_held = int(sum((layer.activation for layer in layers), Fraction(0)) / model.step)
        self._keeps_whole = all(layer.freed_by_backward == 0 for layer in plan.model.layers)

    def add(self) -> None:
        """All of them."""
        self._memory()
        paths = self.add_of_devices()
        if paths is not None and self._capacity is not None:
            for stage in range(self.placement.stages):
                self._in_flight(stage, paths)
            for device in range(self.placement.devices):
                self._memory_over_time(device, paths)

    def add_of_devices(self) -> _Paths | None:
        """What every device computes, with the way to it and back; the ways, None where there are several chains."""
        for device in range(self.placement.devices):
            self._load(device)
        self.model.cp.add(self.value >= mean_load(self.plan, len(self.chains[0])))
        if not self.one_chain:
            return None
        paths = self._paths()
        for device in range(self.placement.devices):
            self._head_and_tail(device, paths)
        return paths

    def _held(self, device: int) -> tuple[int, ...]:
        """The places on their chain of the stages of a device."""
        length = len(self.chains[0])
        return tuple(stage % length for stage in self.placement.stages_of[device])

    def _static(self, device: int) -> Linear:
        return sum(self.model.terms[k].memory for k in self._held(device))

    def _memory(self) -> None:
        """Before a micro-batch's first backward on a device it holds all its activations of one chain there."""
        if self._capacity is None:
            return
        terms, length = self.model.terms, len(self.chains[0])
        for device, capacity in enumerate(self._capacity):
            for chain in self.chains:
                on = [s % length for s in self.placement.stages_of[device] if s in chain]
                self.model.cp.add(self._static(device) + sum(terms[k].activation for k in on) <= capacity)

    def _load(self, device: int) -> None:
        """One pass at a time; before the first the way to the device."""
        m, share = self.plan.microbatches, -(-self.plan.microbatches // len(self.chains))

        def work(stage: int) -> Linear:
            number = min(share, max(0, m - self.placement.chain_index[stage] * share))
            return number * self.model.terms[stage % len(self.chains[0])].work

        self.model.cp.add(self.value >= sum(map(work, self.placement.stages_of[device])))

    def _paths(self) -> _Paths:
        """Each way as a variable of its own, so that rows stay short."""
        lags = _lags(self)
        stages, terms = range(len(self.chains[0])), self.model.terms
        head: list[Linear] = [0]
        back: list[Linear] = [0]
        for k in stages[:-1]:
            head.append(self._named(f"head{k + 1}", head[-1] + terms[k].forward + lags[k][0], self._whole_way))
            # The last backward, on the first stage, runs to the end of its W.
            last = terms[k].rest if k == 0 else terms[k].gradient
            back.append(self._named(f"tail{k + 1}", back[-1] + last + lags[k][1], self._whole_way))
        around: list[Linear] = [0]
        for k in reversed(stages[:-1]):
            there = terms[k + 1].forward + terms[k + 1].gradient + sum(lags[k])
            around.insert(0, self._named(f"around{k}", around[0] + there, self._whole_way))
        return _Paths(head, back, around)

    def _named(self, name: str, expression: Linear, most: int) -> Linear:
        """A variable that equals the expression, and is never above `most`."""
        variable = self.model.cp.new_int_var(0, most, name)
        self.model.cp.add(variable == expression)
        return variable

    def _work(self, device: int) -> Linear:
        return self.plan.microbatches * sum(self.model.terms[k].work for k in self._held(device))

    def _head_and_tail(self, device: int, paths: _Paths) -> None:
        """The way to a device, its work, and the way back from its last gradient; a W may come after that."""
        held, m, terms = self._held(device), self.plan.microbatches, self.model.terms
        first = held[0]
        gradients = m * sum(terms[k].forward + terms[k].gradient for k in held)
        busy = gradients if self.plan.model.splittable else self._work(device)
        self.model.cp.add(self.value >= paths.head[first] + busy + paths.tail[first])
        if not self.span:
            self.model.cp.add(self.value >= paths.head[first] + self._work(device))

    def _in_flight(self, stage: int, paths: _Paths) -> None:
        """Memory admits so many micro-batches to the stage at once; a literal for each number, then for a few each."""
        cp, m = self.model.cp, self.plan.microbatches
        device, terms = self.placement.stage_device[stage], self.model.terms[stage]
        assert self._capacity is not None
        room = self._named(f"room{stage}", self._capacity[device] - self._static(device), self._capacity[device])
        activation = self._named(f"activation{stage}", terms.activation, self._all_held)
        times = _Times(
            *(
                self._named(f"{name}{stage}", getattr(terms, name), self._whole_way)
                for name in ("forward", "gradient", "rest")
            )
        )
        literals = []
        for least, most in _numbers_admitted(m, len(self.chains[0]) - stage):
            admits = cp.new_bool_var(f"admits{stage}.{least}")
            literals.append(admits)
            # So many fit at least; the rows are those of the most that this literal stands for, and weaker for more.
            cp.add(least * activation <= room).only_enforce_if(admits)
            for bound in self._admitting(stage, most, times, paths) if most is not None else []:
                cp.add(self.value >= bound).only_enforce_if(admits)
        cp.add_exactly_one(literals)

    def _admitting(self, stage: int, number: int, times: _Times, paths: _Paths) -> list[Linear]:
        """What holds where at most so many micro-batches are on the stage at once, fewer than there are."""
        m, around = self.plan.microbatches, paths.around[stage]
        rounds = -(-m // number)
        there_and_back = times.forward + around + times.gradient
        found = [paths.head[stage] + rounds * there_and_back + paths.tail[stage]]
        if len(self._held(self.placement.stage_device[stage])) > 1:
            return found
        # One stage on the device: it idles before its first backward, when memory is full of forwards.
        idle = around - (number - 1) * times.forward
        work = m * (times.forward + times.rest)
        if not self.plan.model.splittable:
            found.append(paths.head[stage] + work + idle + paths.tail[stage])
        elif not self.span:
            found.append(paths.head[stage] + work + idle)
        if self._keeps_whole:
            # And when the last forward ends, backwards of no more than so many are left; the last is a way around off.
            after = around + times.gradient + paths.tail[stage]
            end = paths.head[stage] + work - number * times.rest + after
            found += [end, end + idle]
        return found

    def _memory_over_time(self, device: int, paths: _Paths) -> None:
        """Every activation is held for a way around at least; all of them share what the memory gives over time.

        The share of the memory that an activation takes is rounded down to one of a few levels.
        """
        held, cp, m = self._held(device), self.model.cp, self.plan.microbatches
        if len(held) == 1:
            return  # counted in whole micro-batches above
        assert self._capacity is not None
        room = self._named(f"left{device}", self._capacity[device] - self._static(device), self._capacity[device])
        taken: list[Linear] = []
        for k in held:
            terms = self.model.terms[k]
            held_for = self._named(f"held{k}", terms.forward + paths.around[k] + terms.gradient, self._whole_way)
            activation = self._named(f"each{k}", terms.activation, self._all_held)
            literals = [cp.new_bool_var(f"share{k}.{level}") for level in range(_LEVELS)]
            cp.add_exactly_one(literals)
            ticks = cp.new_int_var(0, m * self._whole_way, f"taken{k}")
            for level, literal in enumerate(literals):
                cp.add(_LEVELS * activation <= (level + 1) * room).only_enforce_if(literal)
                if level:
                    cp.add(_LEVELS * ticks >= level * m * held_for).only_enforce_if(literal)
            taken.append(ticks)
        cp.add(self.value >= paths.head[held[0]] + sum(taken) + paths.tail[held[0]])


def mean_load(plan: PlanProblem, stages: int) -> int:
    """All that the model computes with chains of so many stages, spread over the devices, in ticks."""
    model = plan.model
    each = sum((layer.forward + layer.least_backward for layer in model.sequence), Fraction(0))
    each += stages * (model.forward_overhead + model.backward_overhead)
    return ceil(plan.microbatches * each / plan.tick / plan.cluster.devices)


def _longest(layer: LayerType) -> Fraction:
    """A layer's forward and its longest backward, recomputed."""
    again = max((way.time for way in layer.recompute), default=Fraction(0))
    return layer.forward + max(layer.full_backward, layer.backward + (layer.weight or 0)) + again


def _numbers_admitted(microbatches: int, stages: int) -> Iterator[tuple[int, int | None]]:
    """Ranges of how many micro-batches memory admits to a stage with so many stages from it on, least and most.

    One by one at first, then a few at a time; from where hardly anything follows, up to any number (None).
    """
    least = 1
    while least < microbatches and least <= _MOST_ROUNDS * stages:
        most = min(microbatches - 1, least + least // _FINE)
        yield least, most
        least = most + 1
    yield least, None


def _lags(rows: BoundRows) -> list[tuple[int, int]]:
    """Ticks from each stage of the chain to the next, and of the gradient back."""
    where, cluster, tick = rows.placement.stage_device, rows.plan.cluster, rows.plan.tick
    chain = rows.chains[0]
    pairs = pairwise(chain)
    return [
        (int(cluster.lag(where[a], where[b]) / tick), int(cluster.lag(where[b], where[a]) / tick)) for a, b in pairs
    ]
