"""Evaluation: the forwards of a program alone, for placements that Megatron's own evaluation does not support."""

from __future__ import annotations

from typing import Any

import torch

from runtime.execution.program import Program
from runtime.execution.transfers import Transfers
from runtime.megatron.call import Call
from runtime.megatron.forwards import Forwards


@torch.no_grad()
def evaluate(program: Program, call: Call) -> list[Any]:
    """Run this rank's forwards of a program; return the loss function's results by ascending micro-batch number.

    The list is empty except on the last stage's rank. No deadlock is possible: a part of a proved order is proved too,
    since nothing in it waits for what is left out.
    """
    forwards, transfers = Forwards(program, call), Transfers(call.group, lambda _: call.empty())
    here, outputs = program.stages_of(call.rank), dict[tuple[int, int], Any]()
    for step in program.rows[call.rank]:
        where = step.stage, step.microbatch
        if step.kind != "F":
            continue
        if step.transfer == "send":
            transfers.send(step.peer, outputs.pop(where))
        elif step.transfer:
            transfers.receive(step.peer, step.yields)
        else:
            x = transfers.take(("F", step.stage - 1, step.microbatch)) if step.stage else None
            outputs[where] = forwards.run(step, x)
            if step.stage + 1 in here:
                transfers.hand_over(step.yields, outputs.pop(where))
    transfers.finish()
    return forwards.losses
