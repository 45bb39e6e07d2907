"""Names of passes: kind, stage, micro-batch, and the piece where micro-batches have several: `F2.0.3`.

Passes of a module are numbered from 0, like the micro-batches of the trunk.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipesched.errors import BadInput
from pipesched.problem.passes import OF_PARAMETERS, Pass, PassKind, kinds_pattern, letters_text, parse_pass
from pipesched.problem.quantities import MicrobatchId, StageId

if TYPE_CHECKING:
    from pipesched.problem.problem import Problem

_OF_PIECES = tuple(kind for kind in PassKind if kind not in OF_PARAMETERS)
_PIECE = re.compile(rf"({kinds_pattern(_OF_PIECES)})(\d{{1,9}})\.(\d{{1,9}})\.(\d{{1,9}})")


def pass_text(problem: Problem, p: Pass) -> str:
    """Return the name of a pass, such as `F2.0`, or `F2.0.3` with a piece.

    A pass of a stage that does not exist is named as in a problem without pieces.
    """
    count = problem.chain_arcs.pieces
    if _counted_apart(problem, p):
        return str(p._replace(microbatch=microbatch_number(problem, p)))
    if count == 1 or p.stage >= problem.placement.stages:
        return str(p)
    stage, piece = divmod(p.stage, count)
    if p.kind in OF_PARAMETERS:
        return str(p._replace(stage=stage))
    return f"{p.kind.value}{stage}.{microbatch_number(problem, p)}.{piece}"


def microbatch_number(problem: Problem, p: Pass) -> int:
    """Return the number of a pass's micro-batch, from 0, as files count them.

    All pieces of a micro-batch have one number, and each module starts at 0. For a pass for parameters it is the stage.
    """
    if p.kind in OF_PARAMETERS:
        return p.stage // problem.chain_arcs.pieces
    if p.stage < problem.placement.stages and problem.chain_arcs.modules:
        return p.microbatch - problem.microbatches_of[p.stage].start
    if problem.chain_arcs.pieces == 1 or p.stage >= problem.placement.stages:
        return p.microbatch
    return p.microbatch - problem.microbatches_of[p.stage].start + _first(problem, p.stage)


def piece_number(problem: Problem, p: Pass) -> int | None:
    """Return the number, from 0, of a pass's piece; None without pieces, or for a pass for parameters."""
    whole = problem.chain_arcs.pieces == 1 or p.kind in OF_PARAMETERS
    return None if whole else p.stage % problem.chain_arcs.pieces


def stage_text(problem: Problem, stage: StageId, microbatch: MicrobatchId) -> str:
    """Return a stage and micro-batch as text, with the piece: `stage 2, micro-batch 0, piece 3`.

    In a module it is the pass of the module: `stage 4 (module vision), pass 0`.
    """
    for module in problem.chain_arcs.modules:
        if module.first <= stage < module.first + module.stages * module.copies:
            number = microbatch - problem.microbatches_of[stage].start
            return f"stage {stage} (module {module.name}), pass {number}"
    if problem.chain_arcs.pieces == 1:
        return f"stage {stage}, micro-batch {microbatch}"
    number, piece = divmod(stage, problem.chain_arcs.pieces)
    whole = microbatch_number(problem, Pass(PassKind.F, stage, microbatch))
    return f"stage {number}, micro-batch {whole}, piece {piece}"


def microbatch_count(problem: Problem) -> int:
    """Return the number of micro-batches as files count them.

    All pieces of a micro-batch are one, and of modules only the trunk's count.
    """
    return len(problem.walking[0]) if problem.chain_arcs.modules else problem.microbatches // problem.chain_arcs.pieces


def microbatches_text(problem: Problem) -> str:
    """Return the number of micro-batches, and of their pieces, as text: `2 micro-batches of 4 pieces`."""
    count, pieces = microbatch_count(problem), problem.chain_arcs.pieces
    return f"{count} micro-batch{'' if count == 1 else 'es'}" + (f" of {pieces} pieces" if pieces > 1 else "")


def pass_from(problem: Problem, text: str) -> Pass:
    """Return the pass of a name written by `pass_text`; `BadInput` for text of another form.

    Where micro-batches have pieces, also `BadInput` for a stage or piece that does not exist. Other stages, and
    micro-batches, are not checked.
    """
    count = problem.chain_arcs.pieces
    if count == 1:
        found = parse_pass(text)
        first = problem.microbatches_of[found.stage].start if _counted_apart(problem, found) else 0
        return found._replace(microbatch=found.microbatch + first)
    if text[:1] in OF_PARAMETERS:
        once = parse_pass(text)
        return once._replace(stage=once.stage * count)
    match = _PIECE.fullmatch(text)
    piece = int(match[4]) if match else 0
    stage = int(match[2]) * count + piece if match else 0
    if match is None or piece >= count or stage >= problem.placement.stages:
        most = problem.placement.stages // count - 1
        raise BadInput(
            f"found {text!r}; a pass is written as kind ({letters_text(_OF_PIECES)}), stage (0 to {most}), micro-batch "
            f"and piece (0 to {count - 1}): F{most}.0.{count - 1}"
        )
    j = int(match[3]) - _first(problem, stage) + problem.microbatches_of[stage].start
    return Pass(PassKind(match[1]), stage, j)


def _counted_apart(problem: Problem, p: Pass) -> bool:
    """Return True if the problem has modules and `p` is a pass of a micro-batch, numbered from 0 on its chain."""
    return bool(problem.chain_arcs.modules) and p.stage < problem.placement.stages and p.kind not in OF_PARAMETERS


def _first(problem: Problem, stage: StageId) -> int:
    """Return the number, as files count micro-batches, of the first one that goes through a stage."""
    group = problem.placement.chain_index[stage] // problem.chain_arcs.pieces
    return sum(len(walk) for walk in problem.walking[: group * problem.chain_arcs.pieces : problem.chain_arcs.pieces])
