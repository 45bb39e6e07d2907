"""Takes the place of the two functions that Megatron's `get_forward_backward_func` looks up for pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from megatron.core.pipeline_parallel import schedules

from runtime.megatron.call import call_of, check_fits
from runtime.megatron.iteration import Iteration
from runtime.megatron.program import Program, program_of
from runtime.megatron.weight_gradients import split_linears

_FUNCTIONS = ("forward_backward_pipelining_without_interleaving", "forward_backward_pipelining_with_interleaving")


class ForwardBackward:
    """Trains by the schedule for the number of micro-batches that it is called with; evaluation stays Megatron's own.

    `executed` is what this rank ran in the last iteration.
    """

    def __init__(self, original: Any) -> None:
        self.original, self.programs, self.executed = original, dict[int, Program](), list[str]()

    def add(self, document: Mapping[str, Any]) -> None:
        """A schedule more; of two for one number of micro-batches the last one counts."""
        program = program_of(document)
        self.programs[program.microbatches] = program

    def __call__(self, **arguments: Any) -> list[Any]:
        if arguments.get("forward_only"):
            return list(self.original(**arguments))
        call = call_of(arguments)
        program = self.programs.get(call.microbatches)
        if program is None:
            known = ", ".join(map(str, sorted(self.programs)))
            raise ValueError(
                f"pipesched: found {call.microbatches} micro-batches; schedules are installed for {known}: install one "
                f"for each number that occurs"
            )
        check_fits(call, program)
        timers = call.config.timers
        if timers is not None:
            timers("forward-backward", log_level=1).start(barrier=call.config.barrier_with_L1_time)
        iteration = Iteration(program, call)
        iteration.run()
        self.executed = iteration.executed
        if call.config.finalize_model_grads_func is not None:
            call.config.finalize_model_grads_func(
                call.chunks,
                iteration.tokens if call.config.calculate_per_token_loss else None,
                pg_collection=call.groups,
                force_all_reduce=call.force_all_reduce,
            )
        if timers is not None:
            timers("forward-backward").stop()
        return iteration.losses


def install(*documents: Mapping[str, Any]) -> None:
    """Have Megatron train by these schedules, one for each number of micro-batches; before the first iteration."""
    if not hasattr(getattr(schedules, _FUNCTIONS[0]), "programs"):
        split_linears()
        for name in _FUNCTIONS:
            setattr(schedules, name, ForwardBackward(getattr(schedules, name)))
    # What stands there may be that of another exported module.
    for name in _FUNCTIONS:
        for document in documents:
            getattr(schedules, name).add(document)
