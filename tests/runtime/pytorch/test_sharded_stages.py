"""Schedules that gather parameters, on stages that FSDP shards: torch's runtime, four processes, every gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import UNSHARD
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.torch_version import csv_version
from tests.support.forked_ranks import ROOT, run_ranks
from tests.support.makers import problem

pytest.importorskip("torch.distributed.pipelining.schedules")
pytest.importorskip("torch.distributed.fsdp")

from tests.support.fsdp_job import MICROBATCHES, PIPELINE, REPLICAS, WORLD

JOB = ROOT / "tests" / "support" / "fsdp_job.py"
FUSED, SPLIT = {"forward": 1, "backward": 2}, {"forward": 1, "backward": 1, "weight": 1}


@pytest.mark.parametrize(
    ("name", "times", "gather"),
    [("interleaved-1f1b", FUSED, {"keep": {"window": 1}}), ("interleaved-zb", SPLIT, {"keep": "always"})],
)
def test_every_gradient_is_that_of_one_process(name: str, times: Any, gather: dict[str, Any], tmp_path: Path) -> None:
    """Parameters are dropped and gathered as the schedule says, and gradients reduced once."""
    one = problem(
        PIPELINE, MICROBATCHES, times=times, placement="interleaved", chunks=2, objective="iteration",
        parameters={"gather": {"time": 1} | gather, "reduce": {"time": 3, "on": "rs"}},
    )  # fmt: skip
    timeline = simulate(one, HEURISTICS[name].order(one))
    path = tmp_path / "schedule.csv"
    path.write_text(EXPORTERS["torch-csv-comms"].export(timeline, {"torch": csv_version()})[".comms.csv"])
    outs = [tmp_path / f"rank{rank}" for rank in range(WORLD)]
    run_ranks(WORLD, JOB, [path, tmp_path], ROOT)
    for rank, out in enumerate(outs):
        worst, gathered = out.read_text().split()
        assert float(worst) < 1e-12
        here = timeline.schedule.passes_on(rank // REPLICAS)
        assert int(gathered) == 2 * [p.kind for p in here].count(UNSHARD)  # in two steps
