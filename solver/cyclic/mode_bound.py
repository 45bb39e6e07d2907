"""Lower bound on the period over all modes: a mode that saves time uses memory for longer.

A linear program over how often each backward runs split, fused, or in a block with each forward of its device. A block
saves load, but both of its passes last as long as it does, so activations live longer; a fused backward keeps all of
its activation until it ends. While N micro-batches of each chain take time M, a device works for at most M, and the
memory times time that it offers is at most its capacity times M. Both are sums over micro-batches, so M / N is at least
the value of the program, whatever part of the schedule repeats. GLOP finds multipliers of the rows; the bound that they
prove is computed exactly. In these functions `unit` is the problem with one micro-batch on each chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import gcd, inf
from typing import NamedTuple

from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.results.evidence import ModeMultipliers
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ModeBoundParams:
    """Size and time of the linear program over modes; the bound is exact for any multipliers."""

    most_terms: int = tuned(500_000, "nonzero coefficients of the linear program", 1_000, 10**7)
    seconds: float = tuned(6.0, "s for the linear program", 0.1, 100)


_PARAMS = ModeBoundParams()


# Multipliers become fractions with small denominators, as those of a vertex are, or else multiples of `_SMALLEST`.
_DENOMINATOR, _SMALLEST = 10_000, Fraction(1, 2**40)


class _Mode(NamedTuple):
    """Mode of the backward of `stage`: split, fused, or fused in a block with the forward of stage `forward`."""

    stage: StageId
    split: bool
    forward: StageId | None = None


@dataclass
class _Row:
    """A row: period + sum of coefficient x share of a mode >= least, in ticks, or the same without the period.

    `terms` has the coefficients, and `period` is 1 or 0. `device` is the device whose time the row limits or, with
    `memory`, whose memory; `forward` is the stage whose blocks it counts, -1 if none. An `exact` row is an equation.
    """

    least: Fraction
    terms: dict[_Mode, Fraction] = field(default_factory=dict)
    period: int = 0
    exact: bool = False
    device: DeviceId = -1
    memory: bool = False
    forward: StageId = -1

    def add(self, mode: _Mode, coefficient: Fraction | int) -> None:
        self.terms[mode] = self.terms.get(mode, Fraction(0)) + coefficient


class ModeBound(NamedTuple):
    """Lower bound on the period.

    Whatever the modes, one micro-batch of each chain takes `value` ticks in the steady state: a bound on the period
    times the number of these chains. `devices` are those whose work and memory prove it, ascending; empty if nothing is
    proved.
    """

    value: Fraction
    devices: list[DeviceId]
    evidence: ModeMultipliers


def mode_bound(unit: Problem) -> ModeBound | None:
    """Return the lower bound on the period over all modes; `unit` is the problem with one micro-batch on each chain.

    None if each stage has only one mode, if the program is too large, or if GLOP does not solve it.
    """
    stages = [s for s, microbatches in enumerate(unit.microbatches_of) if microbatches]
    modes = [mode for stage in stages for mode in _modes(unit, stage)]
    if len(modes) == len(stages):
        return None
    rows = [*_loads(unit, modes), *_memory(unit, modes), *_shares(stages, modes)]
    if sum(len(row.terms) for row in rows) > _PARAMS.most_terms:
        return None
    multipliers = _multipliers(rows, modes)
    if multipliers is None:
        return None
    near = [Fraction(y).limit_denominator(_DENOMINATOR) for y in multipliers]
    close = [round(y / _SMALLEST) * _SMALLEST for y in multipliers]
    return max((_proved(unit, rows, each) for each in (near, close)), key=lambda bound: bound.value)


def _modes(unit: Problem, stage: StageId) -> Iterator[_Mode]:
    """Yield the non-dominated modes of a stage's backward."""
    view = unit.pipeline
    if view.splits:
        yield _Mode(stage, split=True)
        if fused_is_dominated(unit, stage):
            return
    yield _Mode(stage, split=False)
    for mate in unit.placement.on_device_of(stage):
        if view.microbatches_of[mate] and view.saved_by_block(mate, stage):
            yield _Mode(stage, split=False, forward=mate)


def _gradient(unit: Problem, mode: _Mode) -> Ticks:
    """Return the ticks from the start of a backward to the end of B, BW or the block, when its gradient is sent."""
    if mode.forward is not None:
        return unit.pipeline.blocks[mode.forward, mode.stage]
    return unit.duration(Pass(B if mode.split else BW, mode.stage, 0))


def _longer(unit: Problem, mode: _Mode) -> Ticks:
    """Return the ticks by which the forward takes longer in the mode's block than alone; negative if it takes less."""
    assert mode.forward is not None
    return _gradient(unit, mode) - unit.duration(Pass(F, mode.forward, 0))


def _loads(unit: Problem, modes: list[_Mode]) -> Iterator[_Row]:
    """Yield the row of each device's time over the shares of `modes`: period >= ticks of its passes and blocks.

    A device runs these one at a time.
    """
    for device in range(unit.devices):
        stages = [s for s in unit.placement.stages_of[device] if unit.microbatches_of[s]]
        forwards = sum(unit.duration(Pass(F, s, 0)) for s in stages)
        row = _Row(Fraction(forwards), period=1, device=device)
        for mode in modes:
            if mode.stage in stages:
                ticks = _gradient(unit, mode)
                ticks += unit.duration(Pass(W, mode.stage, 0)) if mode.split else 0
                ticks -= unit.duration(Pass(F, mode.forward, 0)) if mode.forward is not None else 0
                row.add(mode, -ticks)
        yield row


def _memory(unit: Problem, modes: list[_Mode]) -> Iterator[_Row]:
    """Yield the row of each limited device's memory over the shares of `modes`.

    It says that the period is at least the memory times ticks of the device's activations, divided by its memory. An
    activation lives from the start of its forward to the end of its backward.
    """
    for device, capacity in enumerate(unit.room):
        stages = [s for s in unit.placement.stages_of[device] if unit.microbatches_of[s]]
        sizes = [size for s in stages for size in (unit.network.memory_in_flight[s], unit.network.freed_by_backward[s])]
        # All levels are multiples of the common divisor of all changes.
        room = 0 if capacity is None or not any(sizes) else capacity - capacity % gcd(*sizes)
        if room <= 0:
            continue
        row = _Row(Fraction(0), period=1, device=device, memory=True)
        for stage in stages:
            _add_area(unit, modes, stage, room, row)
        yield row


def _add_area(unit: Problem, modes: list[_Mode], stage: StageId, room: MemorySteps, row: _Row) -> None:
    """Add to a row, over the shares of `modes`, the memory times ticks of one micro-batch's activation on a stage.

    It is divided by the device's memory `room`, so that it is in ticks.
    """
    activation, freed = unit.network.memory_in_flight[stage], unit.network.freed_by_backward[stage]
    chain = unit.placement.chains[unit.placement.chain_index[stage]]
    later = chain[chain.index(stage) :]
    lags = sum(unit.lag(one, other) + unit.lag(other, one) for one, other in pairwise(later))
    forwards = sum(unit.duration(Pass(F, s, 0)) for s in later)
    row.least += Fraction(activation * (lags + forwards), room)
    for mode in modes:
        if mode.stage in later:
            row.add(mode, -Fraction(activation * _gradient(unit, mode), room))
        if mode.forward in later:
            row.add(mode, -Fraction(activation * _longer(unit, mode), room))
        if mode.stage == stage and mode.split:
            b, w = (unit.duration(Pass(kind, stage, 0)) for kind in (B, W))
            row.add(mode, -Fraction(max(0, -freed) * b + (activation - freed) * w, room))


def _shares(stages: list[StageId], modes: list[_Mode]) -> Iterator[_Row]:
    """Yield the rows for shares of micro-batches.

    For each of `stages` all its shares add up to 1: each backward runs in one mode, and each forward in at most one
    block.
    """
    for stage in stages:
        yield _Row(Fraction(1), {mode: Fraction(1) for mode in modes if mode.stage == stage}, exact=True)
        blocks = {mode: Fraction(-1) for mode in modes if mode.forward == stage}
        if blocks:
            yield _Row(Fraction(-1), blocks, forward=stage)


def _multipliers(rows: list[_Row], modes: list[_Mode]) -> list[float] | None:
    """Return the dual value of each row in the program that minimises the period.

    None if GLOP does not solve it in time.
    """
    # The import loads pandas, which takes longer than solving most problems.
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()  # type: ignore[no-untyped-call]
    period = model.new_num_var(0, inf, "period")
    number = {mode: model.new_num_var(0, 1, "").index for mode in modes}
    for at, row in enumerate(rows):
        model.helper.add_linear_constraint()
        model.helper.set_constraint_lower_bound(at, float(row.least))
        model.helper.set_constraint_upper_bound(at, float(row.least) if row.exact else inf)
        model.helper.safe_add_term_to_constraint(at, period.index, row.period)
        for mode, coefficient in row.terms.items():
            model.helper.safe_add_term_to_constraint(at, number[mode], float(coefficient))
    model.helper.set_var_objective_coefficient(period.index, 1)
    solver = model_builder.Solver("glop")
    solver.set_time_limit_in_seconds(_PARAMS.seconds)
    if solver.solve(model) != model_builder.SolveStatus.OPTIMAL:
        return None
    return [float(y) for y in solver.dual_values(model.get_linear_constraints())]


def _proved(unit: Problem, rows: list[_Row], multipliers: Sequence[Fraction]) -> ModeBound:
    """Return the bound that these multipliers, one for each row, prove; any multipliers prove one.

    Rows times their multipliers are added up: multiple x period >= least - sum of coefficient x share, where each share
    is from 0 to 1. Negative multipliers of rows that are no equations count as 0.
    """
    least, multiple, devices = Fraction(0), Fraction(0), set[int]()
    terms: dict[_Mode, Fraction] = {}
    for row, y in zip(rows, multipliers, strict=True):
        if y == 0 or (y < 0 and not row.exact):
            continue
        least, multiple = least + y * row.least, multiple + y * row.period
        devices |= {row.device} if row.period else set()
        for mode, coefficient in row.terms.items():
            terms[mode] = terms.get(mode, Fraction(0)) + y * coefficient
    value = least - sum(max(Fraction(0), coefficient) for coefficient in terms.values())
    return ModeBound(value / multiple if multiple else Fraction(0), sorted(devices), _evidence(unit, rows, multipliers))


def _evidence(unit: Problem, rows: list[_Row], multipliers: Sequence[Fraction]) -> ModeMultipliers:
    loads, memory = [Fraction(0)] * unit.devices, [Fraction(0)] * unit.devices
    blocks = [Fraction(0)] * unit.placement.stages
    for row, y in zip(rows, multipliers, strict=True):
        if row.period:
            (memory if row.memory else loads)[row.device] = max(Fraction(0), y)
        elif row.forward >= 0:
            blocks[row.forward] = max(Fraction(0), y)
    return ModeMultipliers(unit.tick, tuple(loads), tuple(memory), tuple(blocks))
