"""Traces that torch's profiler writes of two processes over gloo: sleeps are work, waiting for a message is none."""

from __future__ import annotations

from pathlib import Path

from pipesched.problem.passes import BW, F
from runtime.traces.catalogue import read_traces
from runtime.traces.pipeline_trace import PipelineTrace
from tests.support.forked_ranks import run_ranks
from tests.support.later import needs

needs("torch.distributed.pipelining.schedules")

# Stage 0 sleeps long and stage 1 shortly, so that stage 1 waits inside its forwards, and stage 0 inside its backwards.
LONG, SHORT = 0.2, 0.02
SCRIPT = """
import sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.profiler import ProfilerActivity, profile

dist.init_process_group("gloo")
rank, folder = dist.get_rank(), sys.argv[1]
seconds = float(sys.argv[2 + rank])


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        time.sleep(seconds)
        return x * weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        time.sleep(seconds)
        return gradient * weight, (gradient * x).sum()


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return Sleep.apply(x + 0, self.weight)


stage = PipelineStage(Stage(), rank, 2, torch.device("cpu"))
runtime = _PipelineScheduleRuntime([stage], 2, loss_fn=nn.functional.mse_loss)
runtime._load_csv(f"{folder}/schedule.csv")
x, y = torch.randn(2, 4, 3)


def step():
    runtime.step(x) if rank == 0 else runtime.step(target=y, losses=[])


step()  # finds out the shapes
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
    for _ in range(2):
        step()
recorded.export_chrome_trace(f"{folder}/rank{rank}.json")
dist.destroy_process_group()
"""


def test_a_wait_inside_a_pass_is_no_work(tmp_path: Path) -> None:
    (tmp_path / "schedule.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    (tmp_path / "ranks.py").write_text(SCRIPT)
    run_ranks(2, tmp_path / "ranks.py", [tmp_path, LONG, SHORT], tmp_path)
    trace = read_traces([tmp_path / "rank0.json", tmp_path / "rank1.json"])
    assert isinstance(trace, PipelineTrace)
    assert (trace.stage_device, trace.microbatches, len(trace.steps)) == ((0, 1), 2, 2)
    for kind in (F, BW):
        assert trace.times[kind, 0].median >= LONG
        # An annotation of stage 1's forward lasts longer than LONG: most of it is waiting.
        assert SHORT <= trace.times[kind, 1].median < LONG / 2
    assert min(trace.memory[F, 0].seconds) > 0 and trace.peaks is not None
    assert any("of the host" in note for note in trace.notes)
