"""Orders that memory is said to force: a model without them has no better schedule."""

from __future__ import annotations

from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables import known_order
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.makers import problem


def pieces(random: Random) -> Problem:
    """Two pieces each of three micro-batches, whose keys and values stay until the first piece's backward."""

    def some() -> list[int]:
        return [random.randint(1, 3) for _ in range(2)]

    kept, activation = random.choice((1, 2)), random.choice((0, 1))
    least, most = 2 * activation + 2 * kept, 6 * activation + 4 * kept
    memory = {
        "activation": activation,
        "kept_for_later": kept,
        "capacity": [random.randint(least, most) for _ in range(2)],
    }
    times = {"forward": some(), "backward": some()}
    return problem(2, 3, sequence_chunks=2, times=times, memory=memory)


def least(one: Problem) -> int:
    model, solver = ExactModel(jobs_of(one), 10_000, 0), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    schedule = model.decode(solver.value)
    assert schedule is not None and validate(simulate(one, schedule)) == []
    return int(model.most(solver.objective_value))


@pytest.mark.parametrize("seed", [*range(8), 94, 102, 107, 110])
def test_what_a_forward_takes_for_other_pieces_is_not_held_by_its_own(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pieces(Random(seed))
    found = least(one)
    monkeypatch.setattr(known_order, "forced_by_memory", lambda *_: iter(()))
    assert found == least(one)
