"""All analytic lower bounds of a problem, those included that know of offload and recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.formatting import amount
from pipesched.problem.passes import BW, REDUCE, STEP, B, PassKind, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.least_memory import with_least_memory
from pipesched.problem.relaxed.without_lookups import without_lookups
from pipesched.problem.relaxed.without_parameters import without_parameters
from pipesched.problem.relaxed.without_stage_arcs import without_stage_arcs
from pipesched.results.certificate import Certificate
from solver.bounds.analytic import catalogue
from solver.bounds.analytic.catalogue import Certify
from solver.bounds.analytic.stream_weights import NAME, stream_weights
from solver.bounds.saving.memory_and_copies import KIND, memory_and_copies

_BESIDES = (
    "Besides at least {} for the gathering before the first forward, and the reduction and the step of the stage whose "
    "backward ends last."
)
_ON_DEVICE = (
    "Besides at least {} on every device for the gathering before its first forward, and the reduction and the step of "
    "the stage whose backward ends last there."
)
_LEFT_OUT = "Tasks that need nothing of the stage before are left out of this."
_RELAXED = "So much it takes even if copies and recomputations take no time."


def certificates(
    problem: Problem, objective: Objective, run: Callable[[str, Certify], list[Certificate]] | None = None
) -> list[Certificate]:
    """Every certificate that holds for the problem, strongest first; `run` is as for `catalogue.certificates`.

    Where activations may be offloaded or recomputed, the bounds of the catalogue are those of the problem that holds
    each of them as little as any mode allows (`with_least_memory`). What waits for weight tasks is bounded in any mode.
    """
    if problem.network.has_collectives:
        rest = without_parameters(problem)
        return [with_parameters(problem, one) for one in certificates(rest, rest.objective, run)]
    whole = without_scale(problem)
    problem = without_lookups(whole)
    if problem is not whole:
        return [replace(one, text=f"{one.text} {_LEFT_OUT}") for one in certificates(problem, objective, run)]
    if not problem.network.options:
        return catalogue.certificates(problem, objective, run)
    problem = without_stage_arcs(problem)
    kept = problem.keeping_activations()
    own: dict[str, Certify] = {
        KIND: partial(memory_and_copies, problem, objective),
        NAME: partial(stream_weights, kept, objective),
    }
    found = [one for name, certify in own.items() for one in (certify() if run is None else run(name, certify))]
    for one in catalogue.certificates(with_least_memory(problem), objective, run):
        found.append(replace(one, text=f"{one.text} {_RELAXED}"))
    return sorted(found, key=lambda certificate: -certificate.value_ticks)


def with_parameters(problem: Problem, found: Certificate) -> Certificate:
    """What a certificate of the passes of micro-batches alone proves of the whole, which runs more before and after."""
    besides, text = least_besides(problem), _BESIDES
    if problem.objective is Objective.SPAN:
        besides, text = least_of_a_device(problem), _ON_DEVICE
    if not besides:
        return found
    return replace(
        found, value_ticks=found.value_ticks + besides, text=f"{found.text} {text.format(amount(problem, besides))}"
    )


def passes_alone(problem: Problem) -> Problem | None:
    """What is left of a problem without all that is more than passes; no schedule is better than its best one.

    Left out are what runs for parameters (see `with_parameters`), tasks that need nothing of the stage before, and arcs
    between chains; activations are held as little as any way allows. None where micro-batches differ.
    """
    if problem.microbatch_scale:
        return None
    rest = without_stage_arcs(without_lookups(without_parameters(problem)))
    return with_least_memory(rest) if rest.network.options else rest


def has_plain_passes(problem: Problem) -> bool:
    """Whether each pass is one task, of which nothing is to be chosen."""
    return problem.network.one_task_each and not problem.network.options and problem.transfer_stream is None


def least_besides(problem: Problem) -> int:
    """Ticks of an iteration before all forwards and after all backwards."""
    return least_before_forwards(problem) + least_after_backwards(problem)


def least_of_a_device(problem: Problem) -> int:
    """The least over the devices of the ticks that each takes before its first forward and after its last backward."""
    found = []
    for stages in problem.placement.stages_of:
        here = [s for s in stages if problem.microbatches_of[s]]
        if here:
            after = 0 if any(_is_sent(problem, s) for s in here) else min(_once(problem, s) for s in here)
            found.append(min(_gathering(problem, s) for s in here) + after)
    return min(found)


def _is_sent(problem: Problem, stage: int) -> bool:
    """Whether a stream of its device sends the gradient of a stage, maybe until reduction and step have ended."""
    to, where = problem.placement.previous[stage], problem.placement.stage_device
    return problem.transfer_stream is not None and to is not None and where[to] != where[stage]


def least_after_backwards(problem: Problem) -> int:
    """Ticks from the end of all backwards to that of the iteration, at the least.

    The pass of a micro-batch that ends last is a backward of some stage; of that one reduction and step follow.
    """
    return min(_once(problem, stage) for stage, walked in enumerate(problem.microbatches_of) if walked)


def least_before_forwards(problem: Problem) -> int:
    """Ticks until the first forward, at the least: parameters are gathered before it."""
    first = {chain[0] for chain in problem.placement.chains if problem.microbatches_of[chain[0]]}
    return min(_gathering(problem, stage) for stage in first)


def _gathering(problem: Problem, stage: int) -> int:
    own = problem.stages[problem.holders[stage] if problem.holders else stage].gather
    return 0 if own is None else own.task.ticks


def _once(problem: Problem, stage: int) -> int:
    """Ticks behind the last task of a stage's backwards."""
    if problem.splittable and not _awaited(problem, stage):
        return 0
    holder = problem.holders[stage] if problem.holders else stage
    kinds = problem.stages[holder].kinds_once
    ticks = {kind: problem.tasks_of(kind, holder)[0].ticks for kind in kinds}
    return ticks.get(STEP, 0) + ticks.get(REDUCE, 0) * _buckets_behind(problem, stage, holder)


def _awaited(problem: Problem, stage: int) -> bool:
    """Whether any task for the weights waits for the last one of B; else B may end when reduction and step have."""
    last = len(problem.tasks_of(B, stage)) - 1
    return any(task.after in (None, last) for task in problem.tasks_of(W, stage))


def _buckets_behind(problem: Problem, stage: int, holder: int) -> int:
    """Of the reduction how many buckets begin behind the last task for the weights of a stage, whichever that is."""
    of, number = problem.dependencies, problem.stages[holder].buckets
    waiting = Counter[tuple[PassKind, int]]()
    kinds = [kind for kind in (W, BW) if (kind, stage) in problem.network.tasks]
    for kind in kinds:
        waiting.update((kind, part) for at in range(number) for part in of.ends_of(kind, stage, (at, number)))
    return min(count for (kind, part), count in waiting.items() if kind is W or part == of.ends_of(kind, stage)[-1])
