"""Requests for profiles of a model, and their results stage by stage; does not need PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median, quantiles

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.placement import Placement

# In the order they are measured and shown.
KINDS = (F, B, W, BW)


@dataclass(frozen=True)
class Request:
    """A request for a profile.

    `model` is `gpt` or `package.module:function`, `options` its arguments. `split` is `autograd` or `store`, `device`
    cpu or cuda, `dtype` the name of a PyTorch type. `threads` None divides the processors among the devices. `transfer`
    is a given time in seconds, None to measure it. Each pass runs `repetitions` times (F twice as often, before split
    and full backwards) after `warm_up` runs, on data drawn with `seed`. With `checkpoints` layers are recomputed in the
    backward.
    """

    placement: Placement
    model: str = "gpt"
    options: Mapping[str, object] = field(default_factory=dict)
    split: str = "autograd"
    dtype: str = "float32"
    device: str = "cpu"
    seed: int = 0
    repetitions: int = 20
    warm_up: int = 3
    threads: int | None = None
    checkpoints: bool = False
    transfer: float | None = None

    @property
    def depth(self) -> int:
        """The number of stages of the model, which a bidirectional placement has twice."""
        return len(self.placement.chains[0])


@dataclass(frozen=True)
class Samples:
    """Repeated measurements of one time, in seconds, in the order measured; in a trace's `memory`, of bytes."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """The distance between the quartiles, as a share of the median.

        0 for fewer than two samples, or if the median is 0.
        """
        if len(self.seconds) < 2 or not self.median:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / self.median


@dataclass(frozen=True)
class StageProfile:
    """The profile of one stage, by kind of pass: its times, and in bytes the memory taken and the workspace.

    Memory is negative where a pass frees more than it takes. `workspace` is the peak of a pass above the level before
    or after it, whichever is higher. `parameters` are the bytes of the parameters that require a gradient and of these
    gradients, `output` those of the tensor sent to the next stage, 0 for the last.
    """

    times: Mapping[PassKind, Samples]
    memory: Mapping[PassKind, int]
    workspace: Mapping[PassKind, int]
    parameters: int
    output: int


@dataclass(frozen=True)
class Profile:
    """The profile of all stages in order, of the transfers, the machine and the versions of programs.

    `transfers[s]` is from stage s to the next, a single sample if it was given; the last entry is one sample of 0.
    """

    request: Request
    stages: tuple[StageProfile, ...]
    transfers: tuple[Samples, ...]
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
