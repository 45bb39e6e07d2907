"""Conversion of the events of several ranks to a trace: the passes of a pipeline, or the blocks of one device."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.errors import BadInput
from runtime.traces.catalogue import Hints
from runtime.traces.memory_snapshot import read_snapshot, with_snapshots
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace, RanPass, assembled
from runtime.traces.rank_events import RankEvents, blocks_of, has_passes


def read_ranks(form: str, ranks: Sequence[RankEvents], hints: Hints) -> PipelineTrace | BlockTrace:
    """Return the passes annotated by torch's pipeline runtime, with the memory of the snapshots in `hints`, if any.

    If no rank has any, the annotated blocks of the first of `ranks`. Ranks of equal stages, which data parallelism
    makes, count once. `form` is the name of the trace format. `BadInput` if there are neither passes nor blocks.
    """
    notes: list[str] = []
    ranks = with_snapshots(ranks, [read_snapshot(path) for path in hints.snapshots], notes)
    with_passes = sorted((one for one in ranks if has_passes(one)), key=lambda one: one.rank)
    if not with_passes:
        blocks = blocks_of(ranks[0])
        if not blocks:
            raise BadInput(
                "found neither passes (annotations PP:1F0) nor blocks (attn(F)) with kernels; allowed: traces of "
                "torch's pipeline runtime, or of blocks annotated NAME(F), NAME(B), NAME(W)"
            )
        notes += [] if len(ranks) == 1 else [f"blocks are those of the first of {len(ranks)} files"]
        return BlockTrace(form, tuple(blocks), tuple(notes))
    rows: dict[frozenset[int], tuple[list[RanPass], int | None]] = {}
    repeated = 0
    for one in with_passes:
        row = one.passes()
        stages = frozenset(ran.of.stage for ran in row)
        repeated += stages in rows
        rows.setdefault(stages, (row, one.peak))
    if repeated:
        notes.append(f"{repeated} files are of stages that another has too (data parallel): left out")
    if len(with_passes) < len(ranks):
        notes.append(f"{len(ranks) - len(with_passes)} files hold no pass of a pipeline: left out")
    if not any(one.kernels for one in with_passes):
        notes.append("no kernels: times are those of the host, from a pass's first operation to its end")
    peaks = [peak for _, peak in rows.values() if peak is not None]
    if not peaks:
        notes.append("no memory: profile with profile_memory=True for it, or give snapshots (_dump_snapshot)")
    return assembled(form, [row for row, _ in rows.values()], notes, peaks)
