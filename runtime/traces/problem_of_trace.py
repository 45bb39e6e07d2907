"""The problem of a trace, as a problem file's text, and the traced run as measured passes.

All figures are in comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from statistics import median, quantiles

from pipesched.errors import BadInput
from pipesched.measurement.trace import Measured
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from runtime.profiling.problem_text import MEMORY_STEP, MIB, TIME_STEP, time_and_spread
from runtime.profiling.profile import Samples
from runtime.traces.pipeline_trace import Block, BlockTrace, PipelineTrace

_KEYS = {F: "forward", B: "backward", W: "weight", BW: "fused"}


def trace_text(trace: PipelineTrace | BlockTrace, name: str, capacity: str | None, objective: str) -> str:
    """Return the text of a problem file in ms, and in MiB if the trace has memory.

    `capacity` is each device's memory for activations alone, a number of MiB as text; None: no limit. A trace of blocks
    ignores it; for one that lacks the memory of some forward it is `BadInput`, as is a trace without a pass that is
    needed. The problem has this `name`, and the objective of this name.
    """
    body = _blocks(trace, name) if isinstance(trace, BlockTrace) else _pipeline(trace, name, capacity)
    notes = (f"# {note}" if note.startswith(("assumed: ", "used: ")) else f"# not read: {note}" for note in trace.notes)
    return (
        "\n".join(
            [f"# Read by `pipesched profile --from-trace` ({trace.form}).", *notes, *body, f"objective: {objective}"]
        )
        + "\n"
    )


def measured_run(trace: PipelineTrace, problem: Problem) -> Measured | None:
    """Return the traced run as measured passes of `problem`, read from it; None if the format has no single passes."""
    if not trace.steps:
        return None
    return Measured(problem, "measured", trace.steps, split="", seconds_per_unit=0.001)


def stage_times(trace: PipelineTrace) -> tuple[dict[PassKind, list[float]], list[str]]:
    """Return the median seconds of every kind of pass, and notes on values assumed for passes that never ran.

    The seconds of a kind are a list by stage. B and W are split if some stage ran both; else there are F and B alone, B
    being the whole backward. `BadInput` for a stage without forward or whole backward.
    """
    stages, assumptions = range(len(trace.stage_device)), list[str]()
    known = {key: samples.median for key, samples in trace.times.items()}
    missing = [stage for stage in stages if (F, stage) not in known]
    if missing:
        raise BadInput(f"found no forward of stage {missing[0]}; allowed: whole steps of a pipeline")
    split = [stage for stage in stages if (B, stage) in known and (W, stage) in known]
    share = 0.5
    if split:
        share = median(known[B, s] / max(known[B, s] + known[W, s], 1e-12) for s in split if s or len(split) == 1)
    times: dict[PassKind, list[float]] = {kind: [] for kind in _KEYS}
    for stage in stages:
        seconds_of = {kind: known[kind, stage] for kind in _KEYS if (kind, stage) in known}
        if BW not in seconds_of and not (B in seconds_of and W in seconds_of):
            raise BadInput(f"found no whole backward of stage {stage}; allowed: B and W, or BW")
        full = seconds_of.get(BW, seconds_of.get(B, 0.0) + seconds_of.get(W, 0.0))
        if split and stage not in split:
            assumptions.append(
                f"stage {stage} split no backward: B is taken as {100 * share:.0f} % of it, as on other stages"
            )
        times[F].append(seconds_of[F])
        times[B].append(seconds_of.get(B, share * full) if split else full)
        times[W].append(seconds_of.get(W, (1 - share) * full))
        times[BW].append(full)
    if not split:
        del times[W], times[BW]
    return times, assumptions


def fastest_quartile(samples: Samples) -> float:
    """Return the lower quartile in seconds; of one sample, that sample.

    That is the time of an undisturbed transfer, since most longer ones include waiting.
    """
    if len(samples.seconds) < 2:
        return samples.median
    return quantiles(samples.seconds, n=4, method="inclusive")[0]


def _pipeline(trace: PipelineTrace, name: str, capacity: str | None) -> Iterator[str]:
    times, assumptions = stage_times(trace)
    yield from (f"# assumed: {text}" for text in assumptions)
    yield "# median ± half the distance between the quartiles, over micro-batches and steps"
    for (kind, stage), samples in sorted(trace.times.items(), key=lambda item: (item[0][1], item[0][0])):
        yield f"# stage {stage}: {kind.value} {time_and_spread(samples)}, {len(samples.seconds)} times"
    for device, peak in enumerate(trace.peaks or ()):
        yield f"# device {device}: peak {Decimal(peak) / MIB:.3f} MiB"
    yield f"name: {name}"
    yield f"devices: {1 + max(trace.stage_device)}"
    yield f"microbatches: {trace.microbatches}"
    yield f"placement: {list(trace.stage_device)}"
    yield "time_unit: ms"
    yield "times:"
    for kind, seconds in times.items():
        yield f"  {_KEYS[kind]}: [{', '.join(map(_ms, seconds))}]"
    lags = [
        fastest_quartile(trace.transfers[s]) if s in trace.transfers else 0.0 for s in range(len(trace.stage_device))
    ]
    yield f"  transfer: [{', '.join(map(_ms, lags))}]"
    yield from _memory(trace, BW if B not in times or W not in times else B, capacity)


def _memory(trace: PipelineTrace, backward: PassKind, capacity: str | None) -> Iterator[str]:
    """Yield the lines on memory: the activation of every stage, and the part of it that B frees.

    Nothing if the trace does not tell it for every stage; `BadInput` if a capacity is given nevertheless.
    """
    stages = range(len(trace.stage_device))
    taken = [trace.memory[F, s].median for s in stages if (F, s) in trace.memory]
    if len(taken) < len(stages) or min(taken, default=0) <= 0:
        if capacity is not None:
            raise BadInput(
                "--capacity: found with a trace that does not tell what every forward takes; allowed: without"
            )
        return
    yield "memory:"
    yield "  unit: MiB"
    if capacity is not None:
        yield f"  capacity: {capacity}"
    amounts = [(Decimal(one) / MIB).quantize(MEMORY_STEP, ROUND_CEILING) for one in taken]
    yield f"  activation: [{', '.join(map(str, amounts))}]"
    if backward is B:
        freed = [-trace.memory[B, s].median if (B, s) in trace.memory else 0.0 for s in stages]
        back = [min((Decimal(one) / MIB).quantize(MEMORY_STEP), most) for one, most in zip(freed, amounts, strict=True)]
        yield f"  freed_by_backward: [{', '.join(map(str, back))}]"


def _blocks(trace: BlockTrace, name: str) -> Iterator[str]:
    """Yield the lines of a problem with one device and two micro-batches, whose passes are the traced blocks as tasks.

    With two, one micro-batch can compute while the other communicates. `BadInput` unless there are blocks of F and of
    B. `name` is the problem's.
    """
    blocks_of: Mapping[PassKind, list[Block]] = {
        kind: [b for b in trace.blocks if b.kind is kind] for kind in (F, B, W)
    }
    if not blocks_of[F] or not blocks_of[B]:
        raise BadInput(
            "found no blocks of both forward and backward; allowed: NAME(F) and NAME(B), with NAME(W) or not"
        )
    streams = list(dict.fromkeys(["compute", *(block.stream for block in trace.blocks)]))
    yield f"name: {name}"
    yield "devices: 1"
    yield "microbatches: 2"
    yield "time_unit: ms"
    yield f"streams: [{', '.join(streams)}]"
    yield "tasks:"
    names = {block.name for block in blocks_of[B]}
    for kind in (F, B, W):
        if blocks_of[kind]:
            yield f"  {_KEYS[kind]}:"
        for block in blocks_of[kind]:
            where = "" if block.stream == "compute" else f", on: {block.stream}"
            base, _, layer = block.name.rpartition("-")
            backward = f"{base.removesuffix('-w')}-{layer}"
            after = f", after: {backward}" if kind is W and backward in names else ""
            yield f"    - {{name: {block.name}{where}, time: {_ms(block.seconds)}{after}}}"


def _ms(seconds: float) -> str:
    number = (Decimal(seconds) * 1000).quantize(TIME_STEP, ROUND_HALF_EVEN).normalize()
    return f"{number:f}" if number else "0"
