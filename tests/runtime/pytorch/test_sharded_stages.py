"""Schedules that gather parameters, on stages that FSDP shards: torch's runtime, four processes, every gradient."""

from __future__ import annotations

from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import UNSHARD
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.torch_version import csv_version
from tests.support.forked_ranks import ROOT, run_ranks
from tests.support.fsdp_sizes import MICROBATCHES, PIPELINE, REPLICAS, WORLD
from tests.support.later import needs
from tests.support.makers import problem

needs("torch.distributed.pipelining.schedules", "torch.distributed.fsdp")

JOB = ROOT / "tests" / "support" / "fsdp_job.py"
FUSED, SPLIT = {"forward": 1, "backward": 2}, {"forward": 1, "backward": 1, "weight": 1}


CASES: dict[str, tuple[dict[str, int], dict[str, object]]] = {
    "interleaved-1f1b": (FUSED, {"keep": {"window": 1}}),
    "interleaved-zb": (SPLIT, {"keep": "always"}),
}


def timeline_of(name: str) -> Timeline:
    times, gather = CASES[name]
    one = problem(
        PIPELINE, MICROBATCHES, times=times, placement="interleaved", chunks=2, objective="iteration",
        parameters={"gather": {"time": 1} | gather, "reduce": {"time": 3, "on": "rs"}},
    )  # fmt: skip
    return simulate(one, HEURISTICS[name].order(one))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each case, with what every rank found."""
    folder = tmp_path_factory.mktemp("sharded")
    for name in CASES:
        (folder / name).mkdir()
        text = EXPORTERS["torch-csv-comms"].export(timeline_of(name), {"torch": csv_version()})[".comms.csv"]
        (folder / name / "schedule.csv").write_text(text)
    run_ranks(WORLD, JOB, [folder / name for name in CASES], ROOT)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_every_gradient_is_that_of_one_process(name: str, ran: Path) -> None:
    """Parameters are dropped and gathered as the schedule says, and gradients reduced once."""
    schedule = timeline_of(name).schedule
    for rank in range(WORLD):
        worst, gathered = (ran / name / f"rank{rank}").read_text().split()
        assert float(worst) < 1e-12
        here = schedule.passes_on(rank // REPLICAS)
        assert int(gathered) == 2 * [p.kind for p in here].count(UNSHARD)  # in two steps
