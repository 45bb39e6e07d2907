"""Exporter of PyTorch's CSV with communication: sends and receives where our own lowering places them.

The file is for `_PipelineScheduleRuntime._load_csv(path, format="compute_comms")` of torch from 2.13 on, which takes it
as it is: a send in another order than its receive, or a missing REDUCE_GRAD (it also divides the gradients by the
number of micro-batches), silently gives wrong gradients. Hence the checks here. Rows are of different lengths, since
torch refuses empty cells at their ends. From 2.15 on a WAIT_REDUCE_GRAD follows each reduction, and a row ends with a
WAIT_SEND for each of its sends; older versions do not know them, and 2.15 refuses a row without. Hence the version is
an option, and not that of the PyTorch installed where the file is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import BW, ONCE, REDUCE, RESHARD, UNSHARD, Pass, W
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Option, Settings
from runtime.exporters.torch_csv_cells import cell, last_stage_labels, notes, refuse, side_file
from runtime.lowering.deadlock import Semantics, proved
from runtime.lowering.programs import Compute, Instruction, Program, Send, Tensor, lower

_NAME = "torch-csv-comms"
_CSV, _META = ".comms.csv", ".comms.meta.json"
_OF_PARAMETERS = {UNSHARD: "UNSHARD", RESHARD: "RESHARD", REDUCE: "REDUCE_GRAD"}
_FORM = {False: "For torch 2.13 and 2.14; 2.15 refuses it.", True: "For torch from 2.15 on; 2.14 and older refuse it."}
_CHOSEN = (
    "The file is for the torch of --option torch=VERSION, 2.13 unless given: one form for 2.13 and 2.14, another from "
    "2.15 on, and each refuses the other's."
)
_LETTER = {Tensor.ACTIVATION: "F", Tensor.GRADIENT: "B"}


def _write(timeline: Timeline, settings: Settings) -> Files:
    refuse(_NAME, timeline.problem.placement)
    label = last_stage_labels(timeline)
    program = lower(timeline)
    gathers = any(stage.gather for stage in timeline.problem.stages)
    fsdp, waits = settings["fsdp"] == "on" and not gathers, _waits(settings["torch"])
    rows = [list(_row(program, device, label, _words(fsdp, waits))) for device in range(timeline.problem.devices)]
    csv = "".join(",".join(row) + "\n" for row in rows)
    comments = [_FORM[waits], *notes(timeline), _fsdp_note(fsdp or gathers)]
    return {_CSV: csv, _META: side_file(timeline, _NAME, "compute_comms", label, _proof(timeline), comments)}


def _waits(version: str) -> bool:
    """Return True for a PyTorch version from 2.15 on, which needs entries that wait for reductions and sends.

    `BadInput` for one before 2.13 or a text that is no version.
    """
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})([.+].*)?", version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    if number < (2, 13):
        raise BadInput(f"{_NAME}: found torch={version}; allowed: 2.13 or a later version, such as 2.15")
    return number >= (2, 15)


def _notes(timeline: Timeline) -> list[str]:
    return [_CHOSEN, *notes(timeline)]


def _proof(timeline: Timeline) -> str:
    return proved(_NAME, lower(timeline), (Semantics.RENDEZVOUS, Semantics.POSTED))


def _words(fsdp: bool, waits: bool) -> tuple[str, ...]:
    """Return the entries after a stage's last backward: its reduction, the wait for it, the drop of its parameters.

    The wait is left out without `waits`, the drop without `fsdp`.
    """
    return ("REDUCE_GRAD", *(["WAIT_REDUCE_GRAD"] if waits else []), *(["RESHARD"] if fsdp else []))


def _row(program: Program, device: DeviceId, label: tuple[int, ...], words: tuple[str, ...]) -> Iterator[str]:
    """Yield the cells of one rank.

    Each stage's gradients are reduced after its last backward and the sends that follow it. Under FSDP the rank gathers
    the parameters of all its stages before anything else, in the order in which it will use them (a gather is posted,
    the first pass of a stage waits for it), and drops a stage's after its reduction. Where the schedule itself gathers
    or reduces, it is done where the schedule does. `words` are the entries that follow a stage's last backward:
    reduction, wait, drop; micro-batch j is `label[j]` in the CSV.
    """
    row = _without_steps(program.rows[device])
    passes = [p for step in asking(row, SHORT) if isinstance(step, Compute) for p in step.passes]
    reduced = [p.stage for p in passes if p.kind is REDUCE]
    last = {p.stage: p for p in passes if p.kind in (W, BW) and p.stage not in reduced}
    if "RESHARD" in words:
        yield from (f"{stage}UNSHARD" for stage in dict.fromkeys(p.stage for p in passes))
    due: list[str] = []  # what follows a stage's last backward, behind the sends of what it yields
    for step in asking(row, SHORT):
        if not isinstance(step, Send):
            yield from due
            due = []
        yield _cell(step, label)
        if isinstance(step, Compute):
            ended = [p.stage for p in step.passes if last.get(p.stage) == p]
            due = [f"{stage}{word}" for stage in ended for word in words]
    yield from due
    if "WAIT_REDUCE_GRAD" in words:  # older versions wait for all of these at the end by themselves
        yield from (f"{stage}WAIT_REDUCE_GRAD" for stage in reduced)
        yield from (_cell(step, label).replace("SEND", "WAIT_SEND") for step in row if isinstance(step, Send))


def _without_steps(row: Sequence[Instruction]) -> list[Instruction]:
    """Return a row as PyTorch runs it.

    It has no norms and optimizer steps, and reductions before the stage's last drop of parameters. PyTorch itself
    places reductions there. They are ready then; gathers and reductions have streams of their own in PyTorch.
    """
    found: list[Instruction] = []
    computes = [step for step in asking(row, SHORT) if isinstance(step, Compute)]
    reductions = {step.passes[0].stage: step for step in computes if step.passes[0].kind is REDUCE}
    last = {step.passes[0].stage: step.passes[0] for step in computes if step.passes[0].kind is RESHARD}
    for step in asking(row, SHORT):
        p: Pass | None = step.passes[0] if isinstance(step, Compute) else None
        if p is not None and (p.kind is REDUCE or p == last.get(p.stage)) and p.stage in reductions:
            found.append(reductions.pop(p.stage))
        if p is None or p.kind not in ONCE:
            found.append(step)
    return found


def _cell(step: Instruction, label: tuple[int, ...]) -> str:
    """Return an instruction in PyTorch's syntax.

    It names the executing rank's stage: `1SEND_F0` is sent from stage 1. `label[j]` is the number of micro-batch j in
    the CSV.
    """
    if isinstance(step, Compute) and step.passes[0].kind in _OF_PARAMETERS:
        return f"{step.passes[0].stage}{_OF_PARAMETERS[step.passes[0].kind]}"
    if isinstance(step, Compute):
        return cell(step, label)
    transfer = step.transfer
    word, near = ("SEND", transfer.producer) if isinstance(step, Send) else ("RECV", transfer.consumer)
    return f"{near.stage}{word}_{_LETTER[transfer.tensor]}{label[transfer.microbatch]}"


def _fsdp_note(gathers: bool) -> str:
    if gathers:
        return (
            "UNSHARD and RESHARD are for stages wrapped by fully_shard; nested modules need "
            "reshard_after_forward=False, or split backwards give wrong gradients."
        )
    return "There is no UNSHARD: for stages wrapped by fully_shard export with --option fsdp=on."


EXPORTERS.register(
    Exporter(
        name=_NAME,
        collectives=True,
        transfers=True,
        description="PyTorch's _PipelineScheduleRuntime: passes, sends, receives and reductions (compute_comms)",
        suffix=_CSV,
        write=_write,
        warnings=_notes,
        proof=_proof,
        options=(
            Option(
                name="fsdp",
                description="on: gather each stage's parameters before its first pass, release them after its last",
                default="off",
                allowed=("off", "on"),
            ),
            Option(
                name="torch",
                description="the version that will load it; from 2.15 on with waits for reductions and sends",
                default="2.13",
            ),
        ),
    )
)
