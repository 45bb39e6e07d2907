"""Exporter for AMD's Primus: a Python module whose table of nodes replaces one of its algorithms.

Primus builds stages in a loop, or in a V for some names of algorithms, and executes any table of F, B, W, BW, O (an
offload has ended), R (a reload begins), sends and receives. Consecutive sends and receives of one slot are one batch.
Each end of a transfer is placed in the slot after its pass, so that the two ranks of every transfer meet in a batch of
the same slot, and ranks go through the slots in one order: no rank waits for one that is in a later slot.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, PassKind, W
from pipesched.problem.placement import interleaved, v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MicrobatchId, StageId, Ticks
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.exporters.order_limits import ANYTHING, labels, one_chain, order_of
from runtime.exporters.primus_module import module_text
from runtime.exporters.rank_rows import proof_of_streams, runs_on_streams
from runtime.lowering.deadlock import proved
from runtime.lowering.programs import lower

_NAME, _SUFFIX, _RUNTIME = "primus", ".primus.py", "Primus"
_COMPUTED = (F, B, W, BW)
_WORDS = {OFFLOAD: "O", RELOAD: "R"}


def _write(timeline: Timeline, _: Settings) -> Files:
    problem, label = timeline.problem, labels(timeline, 0)
    placement = problem.placement
    slots = _slots(timeline)
    rows = (" ".join(_words(timeline, device, label, slots)) for device in range(problem.devices))
    text = module_text(
        schedule=timeline.schedule.name,
        problem=problem.name,
        version=VERSION,
        proof=_proof(timeline),
        algorithm=_algorithm(problem),
        devices=problem.devices,
        chunks=placement.stages // problem.devices,
        microbatches=problem.microbatches,
        offload=", with --offload" if _offloads(timeline) else "",
        ranks=list(placement.stage_device),
        chunk_of_stage=[placement.chunk(stage) for stage in range(placement.stages)],
        rows="\n".join(f"    {row!r}," for row in rows),
    )
    return {_SUFFIX: text}


def _computed(timeline: Timeline, device: DeviceId) -> list[Pass]:
    return [p for p in timeline.schedule.passes_on(device) if p.kind in _COMPUTED]


def _slots(timeline: Timeline) -> dict[Pass, int]:
    """Return the slot of every F, B, W and BW, a row number of Primus' table from 0.

    A pass is one slot after the latest of the pass before it on its device and the pass whose tensor it takes.
    """
    rows = [_computed(timeline, device) for device in range(timeline.problem.devices)]
    backward = {(p.stage, p.microbatch): p.kind for row in rows for p in row if p.kind in (B, BW)}
    found, done = dict[Pass, int](), [0] * len(rows)
    while len(found) < sum(map(len, rows)):
        for device, row in asking(enumerate(rows)):
            for p in row[done[device] :]:
                needed = [*row[max(0, done[device] - 1) : done[device]], *_sender(p, backward)]
                if any(q not in found for q in needed):
                    break
                found[p] = 1 + max((found[q] for q in needed), default=-1)
                done[device] += 1
    return found


def _sender(p: Pass, backward: dict[tuple[StageId, MicrobatchId], PassKind]) -> Iterator[Pass]:
    """Yield the pass of the neighbouring stage whose tensor pass `p` takes, if any.

    `backward` gives for (stage, micro-batch) the kind of its backward, B or BW.
    """
    if p.kind is F and p.stage:
        yield p._replace(stage=p.stage - 1)
    if p.kind in (B, BW) and (p.stage + 1, p.microbatch) in backward:
        yield Pass(backward[p.stage + 1, p.microbatch], p.stage + 1, p.microbatch)


def _words(timeline: Timeline, device: DeviceId, label: tuple[int, ...], slots: dict[Pass, int]) -> Iterator[str]:
    """Yield the table entries of a rank in order, as text.

    A copy has no slot of its own and shares that of the pass before. `label[j]` is the number of micro-batch j in the
    table. An O is placed where the copy to the host has ended, an R where the copy back begins.
    """

    def moment(p: Pass) -> Ticks:
        return timeline.end(p) if p.kind is OFFLOAD else timeline.start(p)

    due = sorted((p for p in timeline.schedule.passes_on(device) if p.kind in _WORDS), key=moment)
    slot = 0
    for p in asking(_computed(timeline, device), SHORT):
        while due and moment(due[0]) <= timeline.start(p):
            yield _word(due.pop(0), label, slot)
        slot = slots[p]
        yield _word(p, label, slot)
    yield from (_word(p, label, slot) for p in due)


def _word(p: Pass, label: tuple[int, ...], slot: int) -> str:
    return f"{_WORDS.get(p.kind, p.kind.value)}{p.stage}.{label[p.microbatch]}@{slot}"


def _algorithm(problem: Problem) -> str:
    """Return the name of a Primus algorithm that builds these stages and splits backwards if it can.

    `BadInput` if none does.
    """
    placement, devices = problem.placement, problem.devices
    if placement.stage_device == v_shape(devices).stage_device and devices > 1:
        return "v-half"
    chunks, remainder = divmod(placement.stages, devices)
    if not remainder and placement.stage_device == interleaved(devices, chunks).stage_device:
        return "zero-bubble" if chunks == 1 else "1f1b-interleaved"
    where = ", ".join(map(str, placement.stage_device))
    raise BadInput(
        f"{_NAME}: found stages on devices {where}; {_RUNTIME} builds a loop (stage s on device s mod {devices}) or "
        f"a V of two stages a device; torch-csv and {ANYTHING} can express it"
    )


def _refuse(timeline: Timeline) -> None:
    problem, schedule = timeline.problem, timeline.schedule
    one_chain(_NAME, _RUNTIME, problem.placement)
    algorithm, passes = _algorithm(problem), [*schedule.passes()]
    if any(timeline.in_block(p) for p in passes):
        raise BadInput(f"{_NAME}: overlapped blocks are not supported; torch-csv and {ANYTHING} can express them")
    if any(p.kind in RECOMPUTATIONS for p in passes):
        raise BadInput(f"{_NAME}: {_RUNTIME} has no node for recomputation; megatron and {ANYTHING} can express it")
    if algorithm == "1f1b-interleaved" and any(p.kind is B for p in passes):
        raise BadInput(f"{_NAME}: {_RUNTIME} splits no backward in a loop of several chunks; torch-csv can express it")
    if _offloads(timeline) and algorithm != "v-half":
        raise BadInput(f"{_NAME}: {_RUNTIME} moves activations to the host in a V only; {ANYTHING} can express it")
    first, last = (order_of(schedule, stage, F) for stage in (0, problem.placement.stages - 1))
    if first != last:
        raise BadInput(
            f"{_NAME}: the first stage takes the micro-batches in the order {_list(first)}, the last one in the order "
            f"{_list(last)}; {_RUNTIME} reads data in one order; torch-csv and {ANYTHING} can express it"
        )


def _list(microbatches: tuple[MicrobatchId, ...]) -> str:
    return ", ".join(map(str, microbatches[:12])) + (", …" if len(microbatches) > 12 else "")


def _offloads(timeline: Timeline) -> bool:
    return any(p.kind in _WORDS for p in timeline.schedule.passes())


def _notes(timeline: Timeline) -> Iterator[str]:
    algorithm = _algorithm(timeline.problem)
    vpp = timeline.problem.placement.stages // timeline.problem.devices
    yield (
        f"Give Primus --patch_primus_pipeline, --pp_algorithm {algorithm} and {vpp} virtual stages a rank, and import "
        "the module before it trains: the table takes the place of that algorithm's."
    )
    if _offloads(timeline):
        yield "Primus copies of an activation what --offload_ops names: its memory is that of these operations alone."


def _proof(timeline: Timeline) -> str:
    """Return a clause that names the proof for the order with our own transfers.

    Primus' ranks also meet slot by slot, which closes no cycle. `BadInput` with the cycle of waits if it does not end.
    """
    return proof_of_streams(_NAME, timeline) if runs_on_streams(timeline) else proved(_NAME, lower(timeline))


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="AMD Primus: a Python module whose table of nodes (F, B, W, BW, O, R) replaces an algorithm's",
        suffix=_SUFFIX,
        write=_write,
        refuse=_refuse,
        warnings=lambda timeline: [*_notes(timeline)],
        proof=_proof,
        copies=True,
    )
)
