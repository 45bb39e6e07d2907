"""`pipesched.torch.load` and the snippet for torch alone: loops of the user's own in the same two processes."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from commands.main import main
from commands.shared.file_arguments import write_schedule
from pipesched.files.schedule_file import ScheduleFile
from pipesched.simulation.simulator import simulate
from runtime.running.torch_version import csv_version
from tests.support.forked_ranks import run_ranks
from tests.support.later import needs
from tests.support.makers import problem, random_order

needs("torch.distributed.pipelining.schedules")

ROOT = Path(__file__).resolve().parents[3]
LOOP = """
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
import pipesched
from pipesched import BadInput
{snippet}
dist.init_process_group("gloo")
rank = dist.get_rank()


def layers():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(4, 4), nn.Tanh()).double() for _ in range(4)]


x, y = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
whole = nn.Sequential(*layers())
loss_fn = nn.functional.mse_loss
nn.functional.mse_loss(whole(x), y).backward()
own = [0, 3] if rank == 0 else [1, 2]


def check(load):
    made = {{s: layers()[s] for s in own}}
    runtime = load(made)
    losses = []
    for _ in range(2):
        for stage in made.values():
            stage.zero_grad()
        runtime.step(x, target=y, losses=losses) if rank == 0 else runtime.step()
    for s, stage in made.items():
        for mine, right in zip(stage.parameters(), whole[s].parameters()):
            assert torch.allclose(mine.grad, right.grad, rtol=1e-12, atol=1e-15), s


def as_stages(made):
    return [PipelineStage(stage, s, 4, torch.device("cpu")) for s, stage in made.items()]


check(lambda made: pipesched.torch.load(sys.argv[1], made, loss_fn))
check(lambda made: pipesched.torch.load(sys.argv[1], as_stages(made), loss_fn, comms=False))
check(lambda made: load_csv(sys.argv[2], as_stages(made), 4, loss_fn))
try:
    pipesched.torch.load(sys.argv[1], {{s: layers()[s] for s in (0, 1)}}, loss_fn)
except BadInput as error:
    assert f"found 0, 1 of 4; rank {{rank}} of this schedule runs" in str(error), error
else:
    raise AssertionError("wrong stages were taken")
dist.barrier()
dist.destroy_process_group()
"""


def snippet() -> str:
    """The page's code that loads a CSV with torch alone."""
    page = (ROOT / "docs" / "exporting.md").read_text()
    found = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def load_csv" in code]
    assert len(found) == 1
    return str(found[0])


BIDIRECTIONAL = """
import sys
import torch
import torch.distributed as dist
from torch import nn
import pipesched
from pipesched import BadInput
from pipesched.files.schedule_file import read_schedule

dist.init_process_group("gloo")
rank = dist.get_rank()
where = read_schedule(sys.argv[1]).timeline.problem.placement
position = {s: at for chain in where.chains for at, s in enumerate(chain)}


def layers():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(4, 4), nn.Tanh()).double() for _ in where.chains[0]]


x, y = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
whole = nn.Sequential(*layers())
nn.functional.mse_loss(whole(x), y).backward()
for scale in (True, False):
    made = {s: layers()[position[s]] for s in where.stages_of[rank]}
    runtime = pipesched.torch.load(sys.argv[1], made, nn.functional.mse_loss, scale_grads=scale)
    for _ in range(2):
        losses = []
        for stage in made.values():
            stage.zero_grad()
        runtime.step(x, target=y, losses=losses)
        assert len(losses) == 2
        for s, stage in made.items():
            for mine, right in zip(stage.parameters(), whole[position[s]].parameters()):
                assert torch.allclose(mine.grad, right.grad * (1 if scale else 4), rtol=1e-12, atol=1e-15), s
for wrong, said in (({0: whole[0]}, "of this schedule runs"), ([], "the module of each stage by its number")):
    try:
        pipesched.torch.load(sys.argv[1], wrong, nn.functional.mse_loss)
    except BadInput as error:
        assert said in str(error), error
    else:
        raise AssertionError("wrong stages were taken")
try:
    runtime.step(x[:3], target=y)
except BadInput as error:
    assert "found a batch of 3 samples" in str(error), error
dist.barrier()
dist.destroy_process_group()
"""


def test_loops_of_ones_own_get_the_right_gradients(tmp_path: Path) -> None:
    """Of an order in a V, by `load` and by torch alone, and of a bidirectional one."""
    v, both = problem(2, 4, placement="v-shape"), problem(2, 4, placement="bidirectional")
    paths = [tmp_path / "v.json", tmp_path / "both.json"]
    for path, one in zip(paths, (v, both), strict=True):
        write_schedule(path, ScheduleFile(simulate(one, random_order(one, Random(4)))))
    asked = ["export", str(paths[0]), "--format", "torch-csv-comms", "--option", f"torch={csv_version()}"]
    assert main(asked) == 0
    (tmp_path / "loop.py").write_text(LOOP.format(snippet=snippet()))
    (tmp_path / "both.py").write_text(BIDIRECTIONAL)
    # Each with a store of its own: in one store a second group may find the addresses of the first.
    run_ranks(2, tmp_path / "loop.py", [paths[0], paths[0].with_suffix(".comms.csv")], tmp_path)
    run_ranks(2, tmp_path / "both.py", [paths[1]], tmp_path)
