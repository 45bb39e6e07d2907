"""From the dual values of a linear program to multipliers in integers, and the step between their instants."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from formulations.single_device.visits import Later, OneDevice, Trip, Visit
from solver.bounds.lagrangian import multipliers
from solver.bounds.lagrangian.multipliers import find_multipliers

OPTIMAL = multipliers.model_builder.SolveStatus.OPTIMAL


def device(
    capacity: int | None = 4, times: tuple[int, int, int] = (10, 20, 7), away: int = 5, later: bool = True
) -> OneDevice:
    """A forward, a gradient and a weight pass of eight micro-batches."""
    forward, gradient, weight = times
    put_off = Later(weight, 1) if later else None
    visits = Visit(0, forward, away, 30, 2, 0, None), Visit(forward + away, gradient, 0, 0, 0, 1, put_off)
    return OneDevice(capacity, (Trip(8, visits),), all_by_the_end=True)


@dataclass
class Program:
    """A solver that answers a linear program with dual values of our own."""

    answer: object = OPTIMAL
    limits: list[float] = field(default_factory=list)
    values: tuple[float, ...] = (3.0, 0.0, -2.0, 1.0)

    def solver(self, _: str) -> Program:
        return self

    def set_time_limit_in_seconds(self, seconds: float) -> None:
        self.limits.append(seconds)

    def set_solver_specific_parameters(self, _: str) -> None:
        pass

    def solve(self, _: object) -> object:
        return self.answer

    def dual_values(self, rows: object) -> list[float]:
        """In turn; of all rows, as the program numbers them."""
        return [self.values[n % len(self.values)] for n in range(len(rows))]  # type: ignore[arg-type]


def answered(monkeypatch: pytest.MonkeyPatch, program: Program) -> Program:
    monkeypatch.setattr(multipliers.model_builder, "Solver", program.solver)
    return program


@pytest.mark.parametrize("capacity", (4, 0, None))
def test_dual_values_become_integers_that_add_up_to_the_worth_of_the_device(
    monkeypatch: pytest.MonkeyPatch, capacity: int | None
) -> None:
    answered(monkeypatch, Program())
    one = device(capacity)
    found = find_multipliers(one, 300, 60)
    assert found is not None
    assert found.of_all(one.capacity) == pytest.approx(2**56, rel=1e-9)
    assert min(found.running.min(), found.holding.min()) == 0 < found.running.max()
    charged = found.running + found.holding
    assert charged.min() > 0  # instants without any are left out
    assert np.diff(found.instants).min() > 0 and found.instants.max() <= 300
    # A unit of memory is worth a capacity's part of what an instant of the device is, and nothing where it has no limit.
    ratios = set(np.round(found.running[found.running > 0] / found.running[found.running > 0].min(), 6))
    assert ratios == {1, 3}
    assert set(np.round(found.holding / found.running.max() * 3 * (capacity or 1), 6)) <= {0, 1, 3}
    assert bool(found.holding.any()) is bool(capacity)


def test_an_instant_that_is_worth_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, Program(values=(1.0, 100 / 2**56, 0.0)))
    found = find_multipliers(device(None), 300, 60)
    assert found is not None
    assert found.running.min() == 1
    assert len(found.instants) > 190  # two of three


@pytest.mark.parametrize("values", [(0.0,), (-1.0,), (float("nan"),), (float("inf"),)])
def test_values_that_are_worth_nothing_or_no_numbers_are_none(
    monkeypatch: pytest.MonkeyPatch, values: tuple[float, ...]
) -> None:
    answered(monkeypatch, Program(values=values))
    assert find_multipliers(device(), 300, 60) is None


def test_a_program_that_is_not_solved_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, Program(answer=multipliers.model_builder.SolveStatus.FEASIBLE))
    assert find_multipliers(device(), 300, 60) is None


def test_the_program_may_take_what_is_left_and_fifteen_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    program = answered(monkeypatch, Program())
    for seconds in (60, 4.5, 0.0, -3.0):
        find_multipliers(device(), 300, seconds)
    assert program.limits == [15.0, 4.5, 0.01, 0.01]


def test_the_solver_finds_multipliers_of_time_and_memory() -> None:
    found = find_multipliers(device(), 300, 60)
    assert found is not None
    assert found.of_all(4) == pytest.approx(2**56, rel=1e-6)
    assert found.running.any() or found.holding.any()


@pytest.mark.parametrize(
    ("one", "until", "step"),
    [
        (device(), 300, 1),
        (device(times=(10, 20, 30), away=0), 20_000, 10),
        (device(times=(10, 20, 30), away=10), 20_000, 10),
        (device(times=(10, 20, 30), away=10, later=False), 20_000, 20),
        (device(times=(100, 200, 300), away=0), 100_000, 100),
        (device(times=(1000, 2000, 3000), away=0), 500_000, 1000),
        (device(times=(1000, 2000, 3001), away=0), 500_000, 1000),
        (device(times=(997, 1999, 3001), away=3), 500_000, 999),
        (device(times=(14407, 14380, 9676), away=1610), 2_000_000, 1596),
        (device(times=(0, 0, 0), away=0), 2_000_000, 5000),
        (device(times=(0, 0, 0), away=0), 4000, 10),
        (device(times=(7, 11, 13), away=0), 2000, 1),
        (OneDevice(4, (Trip(1, (Visit(0, 50, 0, 0, 1, 1, None),) * 19),), all_by_the_end=True), 15_780, 50),
        (
            OneDevice(4, (Trip(1, tuple(Visit(0, 7, 0, 0, 1, 1, None) for _ in range(40_000))),), all_by_the_end=True),
            900,
            4500,
        ),
    ],
)
def test_the_step_between_instants_is_the_longest_that_loses_little(one: OneDevice, until: int, step: int) -> None:
    assert multipliers._step(one, until) == step
