"""Replacement of the two functions that Megatron's `get_forward_backward_func` looks up for pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from megatron.core.pipeline_parallel import schedules

from runtime.execution.program import Program, program_of
from runtime.megatron.call import Call, call_of, check_fits
from runtime.megatron.evaluation import evaluate
from runtime.megatron.iteration import Iteration
from runtime.megatron.placement import place
from runtime.megatron.weight_gradients import split_linears

_FUNCTIONS = ("forward_backward_pipelining_without_interleaving", "forward_backward_pipelining_with_interleaving")


class ForwardBackward:
    """A replacement for a forward-backward function of Megatron.

    It trains by the schedule in `programs` for the call's number of micro-batches; `ValueError` without one. `original`
    is Megatron's own function, which still evaluates, unless stages are placed differently. `executed` has the steps
    that this rank ran in the last training iteration, as text, in order; `moved` is the number of bytes that it copied
    to the host in it.
    """

    def __init__(self, original: Any) -> None:
        self.original, self.programs = original, dict[int, Program]()
        self.executed, self.moved = list[str](), 0

    def add(self, document: Mapping[str, Any]) -> None:
        """Add a schedule, given as an exported document.

        It replaces an earlier one for the same number of micro-batches. `ValueError` if its stages are on other ranks
        than those of earlier schedules.
        """
        program = program_of(document)
        known = next(iter(self.programs.values()), program)
        if program.rank_of_stage != known.rank_of_stage:
            raise ValueError(
                f"pipesched: found stages on ranks {program.rank_of_stage} in schedule {program.schedule}; allowed: "
                f"{known.rank_of_stage}, as in the schedules installed before"
            )
        self.programs[program.microbatches] = program

    def __call__(self, **arguments: Any) -> list[Any]:
        forward_only = arguments.get("forward_only")
        if forward_only and all(program.is_loop for program in self.programs.values()):
            return list(self.original(**arguments))
        call = call_of(arguments)
        program = self._program_for(call)
        timers = call.config.timers
        if timers is not None:
            timers("forward-backward", log_level=1).start(barrier=call.config.barrier_with_L1_time)
        losses = evaluate(program, call) if forward_only else self._train(program, call)
        if timers is not None:
            timers("forward-backward").stop()
        return losses

    def _program_for(self, call: Call) -> Program:
        program = self.programs.get(call.microbatches)
        if program is None:
            known = ", ".join(map(str, sorted(self.programs)))
            raise ValueError(
                f"pipesched: found {call.microbatches} micro-batches; schedules are installed for {known}: install one "
                f"for each number that occurs"
            )
        check_fits(call, program)
        return program

    def _train(self, program: Program, call: Call) -> list[Any]:
        iteration = Iteration(program, call)
        iteration.run()
        self.executed, self.moved = iteration.executed, iteration.activations.moved
        if call.config.finalize_model_grads_func is not None:
            call.config.finalize_model_grads_func(
                call.chunks,
                iteration.activations.forwards.tokens if call.config.calculate_per_token_loss else None,
                pg_collection=call.groups,
                force_all_reduce=call.force_all_reduce,
            )
        return iteration.activations.forwards.losses


def install(*documents: Mapping[str, Any]) -> None:
    """Replace Megatron's two pipeline schedules by ones that run these documents, one for each number of micro-batches.

    Its linear layers are changed so that W can compute weight gradients. Call it before the first iteration, and before
    the model is built where stages are placed as Megatron does not place them. Documents of a later call are added.
    `ValueError` if their stages are on other ranks than those of earlier ones.
    """
    if not hasattr(getattr(schedules, _FUNCTIONS[0]), "programs"):
        split_linears()
        for name in _FUNCTIONS:
            setattr(schedules, name, ForwardBackward(getattr(schedules, name)))
    if documents and not getattr(schedules, _FUNCTIONS[0]).programs:
        place(program_of(documents[0]))
    # What stands there may be that of another exported module.
    for name in _FUNCTIONS:
        for document in documents:
            getattr(schedules, name).add(document)
