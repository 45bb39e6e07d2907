"""Writing of a profile as a problem file, with machine, versions and every measurement in comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from pipesched.files.problems.document import placement_keys
from pipesched.problem.formatting import counted
from pipesched.problem.passes import BW, B, F, W
from runtime.profiling.profile import KINDS, Profile, Samples

MIB = 1024 * 1024
TIME_STEP = Decimal("0.001")  # ms: a microsecond
MEMORY_STEP = Decimal("0.001")  # MiB


def problem_text(profile: Profile, name: str, microbatches: int, capacity: str | None, objective: str) -> str:
    """Return the text of a problem file in ms and MiB.

    `capacity` is each device's memory for activations alone, a number of MiB as text; None for no limit. The problem
    has this `name`, so many `microbatches`, and the objective of this name.
    """
    return "\n".join([*header(profile), *_body(profile, name, microbatches, capacity, objective)]) + "\n"


def first_stage_rule(profile: Profile) -> bool:
    """Return True if the profile was measured with autograd's split of backwards, whatever its times are.

    The problem file then gives B of the first stage no time, and its W is the whole backward.
    """
    return profile.request.split == "autograd"


def _body(profile: Profile, name: str, microbatches: int, capacity: str | None, objective: str) -> Iterator[str]:
    where, stages = profile.request.placement, profile.stages
    yield f"name: {name}"
    yield f"devices: {where.devices}"
    yield f"microbatches: {microbatches}"
    yield from (f"{key}: {value}" for key, value in placement_keys(where).items())
    yield "time_unit: ms"
    yield "times:"
    for kind, key in ((F, "forward"), (B, "backward"), (W, "weight"), (BW, "fused")):
        seconds = [stage.times[kind].median for stage in stages]
        if kind is B and first_stage_rule(profile):
            seconds[0] = 0.0
        yield f"  {key}: {_list(map(_ms, seconds))}"
    yield f"  transfer: {_list(_ms(samples.median) for samples in profile.transfers)}"
    yield "memory:"
    yield "  unit: MiB"
    if capacity is not None:
        yield f"  capacity: {capacity}"
    taken = [_mib(stage.memory[F]) for stage in stages]
    freed = [min(-_mib(stage.memory[B]), most) for stage, most in zip(stages, taken, strict=True)]
    yield f"  activation: {_list(taken)}"
    yield f"  freed_by_backward: {_list(freed)}"
    yield f"objective: {objective}"


def _ms(seconds: float) -> Decimal:
    return (Decimal(seconds) * 1000).quantize(TIME_STEP, ROUND_HALF_EVEN)


def _mib(taken: int) -> Decimal:
    """Return bytes in MiB, rounded up to a thousandth: a schedule that fits the numbers must fit the machine."""
    return (Decimal(taken) / MIB).quantize(MEMORY_STEP, ROUND_CEILING)


def _list(numbers: Iterable[Decimal]) -> str:
    return "[" + ", ".join(str(number.normalize()) if number else "0" for number in numbers) + "]"


def header(profile: Profile) -> Iterator[str]:
    """Yield comment lines on what was measured, where, and how well it repeats."""
    request = profile.request
    options = ", ".join(f"{key} {value}" for key, value in request.options.items())
    yield "# Written by `pipesched profile`."
    stages = counted(request.depth, "stage")
    yield f"# model: {request.model}{f' ({options})' if options else ''}, {stages}, {request.dtype}"
    yield f"# split of the backward: {request.split}{'; activation checkpointing' if request.checkpoints else ''}"
    for key, value in ({**profile.machine, **profile.versions}).items():
        yield f"# {key}: {value}"
    yield f"# {request.repetitions} repetitions; median ± half the distance between the quartiles"
    for number, stage in enumerate(profile.stages):
        yield f"# stage {number}: " + ", ".join(f"{kind.value} {time_and_spread(stage.times[kind])}" for kind in KINDS)
        yield "#   takes (-: gives back) MiB: " + ", ".join(
            f"{kind.value} {stage.memory[kind] / MIB:.3f}" for kind in KINDS
        )
        most = max(stage.workspace.values()) / MIB
        fixed = stage.parameters / MIB
        yield f"#   in addition: parameters and gradients {fixed:.3f} MiB, workspace of a pass up to {most:.3f} MiB"
    sent = ", ".join(map(time_and_spread, profile.transfers[:-1]))
    yield f"# transfer after each stage: {sent or 'none'}{' (given)' if request.transfer is not None else ''}"
    if first_stage_rule(profile):
        yield "# With autograd's split, B of stage 0 does nothing and W does all of its backward."


def time_and_spread(samples: Samples) -> str:
    """Return as text a median in ms, ± half the distance between the quartiles in percent of it."""
    return f"{1000 * samples.median:.3f} ms ± {100 * samples.spread / 2:.1f} %"
