"""PyTorch's pipeline runtime with a schedule of pipesched, for the user's own training loop.

Needs `pipesched[torch]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    from runtime.pytorch.stages_runtime import StagesRuntime


def load(
    schedule: str | Path,
    stages: Mapping[int, nn.Module] | Sequence[PipelineStage],
    loss_fn: Callable[[Any, Any], Tensor] | None = None,
    *,
    comms: bool = True,
    scale_grads: bool = True,
) -> _PipelineScheduleRuntime | StagesRuntime:
    """Return the runtime of this rank, which executes a schedule file's order.

    It is ready for `step(x, target=y, losses=[])`, like PyTorch's own schedules. `stages` are this rank's: the module
    of each by its number in the file, or `PipelineStage` objects. `loss_fn(output, target)` returns the loss of a
    micro-batch; a rank with a chain's last stage needs it. With `comms` sends and receives are placed as in our plan,
    without it as PyTorch does. `scale_grads` divides gradients by the number of micro-batches. A bidirectional
    placement needs the modules, on the CPU; each rank with an end of a chain gives `step` the whole batch and all
    targets, and the two copies of a stage end with the sum of their gradients. Such a placement, offload and
    recomputation run in our `StagesRuntime`, with the streams and waits of the schedule, whatever `comms` is. The
    process group must exist. `BadInput` for a file that cannot be read, and for what does not fit the schedule.
    """
    from runtime.pytorch.runtime import load as load_runtime

    return load_runtime(schedule, stages, loss_fn, comms=comms, scale_grads=scale_grads)
