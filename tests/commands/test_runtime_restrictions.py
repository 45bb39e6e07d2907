"""`solve --for`: what is solved for a runtime can be exported to it, and is the best that it can express."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.schedule_file import read_schedule
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.restrictions import RESTRICTIONS
from solver.solve import solve
from targets.schedules import expressed, restricted
from tests.support.counted import counted
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import problem

SURE = counted(5)


def linear(random: Random) -> Problem:
    """Two stages with uneven costs: few enough for every order to be tried."""

    def some(least: int = 0) -> list[int]:
        return [random.randint(least, 4) for _ in range(2)]

    times = {"forward": some(), "backward": some(), "weight": some(), "transfer": random.randint(0, 2)}
    memory = {"capacity": random.choice((1, 2, 3)), "activation": 1}
    return problem(2, 3, times=times, memory=memory, objective=random.choice(("makespan", "span")))


@pytest.mark.parametrize("target", ["deepspeed", "jaxpp", "megatron-order", "torchtitan"])
@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_solved_for_a_runtime_is_written_for_it(target: str, seed: int) -> None:
    whole = linear(Random(seed))
    left = restricted(whole, target)
    solution = solve(left, SURE)
    done = expressed(solution, target, whole)
    assert done.timeline is not None
    assert not validate(done.timeline)
    assert EXPORTERS[RESTRICTIONS[target].exporter].export(done.timeline)
    # Where nothing but the numbers restricts, the optimum of the restricted problem is kept.
    best = optimum(left, left.objective)
    assert best is not None
    assert done.status is Status.OPTIMAL
    assert done.value_ticks == best.value
    said = f"{target} can express all schedules" if target == "megatron-order" else "restricted"
    assert any(said in note for note in done.notes)


def test_copies_and_recomputation_are_solved_for_what_has_them() -> None:
    memory = {
        "capacity": 8,
        "activation": 4,
        "offload": {"out": 5, "in": 5, "on": ["d2h", "h2d"]},
        "recompute": [{"name": "full", "time": 10, "keeps": 1}],
        "decide": {"offload": "free", "recompute": "free"},
    }
    whole = problem(2, 3, times={"forward": 10, "backward": 10, "weight": 6, "transfer": 1}, memory=memory)
    with pytest.raises(BadInput, match="--for torch: found offload or recomputation; allowed: passes that are single"):
        restricted(whole, "torch")
    done = expressed(solve(restricted(whole, "megatron-order"), counted(0.5)), "megatron-order", whole)
    assert done.timeline is not None and not validate(done.timeline)
    assert {p.kind for p in done.timeline.schedule.passes()} - {F, BW, B, W}
    assert EXPORTERS["megatron"].export(done.timeline)


@pytest.mark.parametrize("target", sorted(RESTRICTIONS))
def test_a_placement_that_a_runtime_has_no_way_to_run_is_refused_in_a_line(target: str) -> None:
    with pytest.raises(BadInput, match=RESTRICTIONS[target].exporter) as refused:
        restricted(problem(2, 4, placement="bidirectional"), target)
    assert len(refused.value.mistakes) == 1


def test_a_loop_of_many_chunks_is_for_torchtitan() -> None:
    one = problem(2, 4, placement="interleaved", chunks=3)
    done = expressed(solve(restricted(one, "torchtitan"), replace(SURE, deterministic=1)), "torchtitan", one)
    assert done.timeline is not None


@pytest.mark.usefixtures("pictures_are_empty")
def test_solve_for_writes_the_runtimes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("devices: 2\nmicrobatches: 4\ntimes: {forward: 2, backward: 2, weight: 1}\n")
    for target, one in RESTRICTIONS.items():
        out = tmp_path / target
        assert main(["solve", str(path), "--for", target, "--workers", "1", "--json", "-o", str(out)]) == 0
        document = json.loads(capsys.readouterr().out)
        assert any(target in note for note in document["notes"])
        assert (out / f"schedule{EXPORTERS[one.exporter].suffix}").exists()
        timeline = read_schedule(out / "schedule.json").timeline
        assert EXPORTERS[one.exporter].export(timeline)
        assert timeline.problem.objective == Objective.MAKESPAN
