"""Change in which all devices share the excess work of a first or last stage (embedding, output layer) equally."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipesched.problem.chains.with_modules import with_shared
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import coarsest, finer, finer_memory
from pipesched.problem.stage import Stage
from pipesched.results.analysis.explanation import Perturbation, PerturbationKind

_ENDS = (("embedding", 0), ("output layer", -1))


def sharing_ends(problem: Problem) -> Iterator[Perturbation]:
    """Yield at most one change: all devices share the work that a chain's ends have in excess of the stages between.

    The shared parts run as in vocabulary parallelism (arXiv 2411.05288, algorithm 1), with collectives as long as the
    longest transfer. A stage with modes of saving memory keeps these, and all of its activation. The changed problem
    may have other ticks and other steps of memory. Nothing is yielded if no end has more work, or if the problem has
    several chains or features that exclude shared modules.
    """
    if not _may_have_modules(problem):
        return
    chain = problem.placement.chains[0]
    usual = max(chain[1:-1] or [min(chain, key=problem.least_work)], key=problem.least_work)
    ends = {chain[at]: name for name, at in _ENDS if problem.least_work(chain[at]) > problem.least_work(usual)}
    if not ends:
        return
    fine = finer_memory(finer(problem, problem.devices), problem.devices)
    longest = max([stage.transfer for stage in fine.stages] + [lag for row in fine.links for lag in row])
    stages, shared = list(fine.stages), []
    for stage, name in ends.items():
        stages[stage], part = _divided(fine.stages[stage], fine.stages[usual], fine.devices)
        shared.append((name, [replace(part, transfer=longest)] * fine.devices))
    made = with_shared(replace(fine, stages=tuple(stages)), shared, [_ENDS[1][0]])
    which = " and ".join(map(str, sorted(ends)))
    text = (
        f"what stage{'s' * (len(ends) > 1)} {which} take{'s' * (len(ends) == 1)} beyond the others "
        f"({', '.join(ends.values())}) in equal parts on all devices"
    )
    yield Perturbation(PerturbationKind.SHARE, text, coarsest(made), False)


def _may_have_modules(problem: Problem) -> bool:
    """True if the problem has one chain, several devices and no feature that excludes modules on all devices.

    Those are the objectives other than makespan and span, blocks, micro-batches of several pieces or of unequal size,
    transfers on a stream, memory of passes, and stages with several tasks, work for parameters, or memory that the
    backward of another stage frees (`kv_cache`).
    """
    one = len(problem.placement.chains) == 1 and problem.chain_arcs.pieces == 1 and problem.devices > 1
    plain = problem.objective.of_one_iteration and not problem.network.blocks
    own = any(stage.tasks or stage.kinds_of_parameters or any(stage.kv_cache) for stage in problem.stages)
    own = own or problem.network.has_pass_memory
    return one and plain and not own and not problem.network.scale and problem.resources.transfer_stream is None


def _divided(stage: Stage, usual: Stage, devices: int) -> tuple[Stage, Stage]:
    """Return two stages: one with times and memory that nowhere exceed those of stage `usual`, one with the excess.

    The second has an equal part of the excess, rounded down, for each of the `devices`.
    """
    times = ("forward", "backward", "weight", "fused")
    keys = (*times, *(() if stage.saving_kinds else ("activation",)), "static")
    kept = {key: min(getattr(stage, key), getattr(usual, key)) for key in keys if getattr(stage, key) is not None}
    left = {key: (getattr(stage, key) - value) // devices for key, value in kept.items()}
    activation = kept.get("activation", stage.activation)
    part = Stage(**{"weight": None, "activation": 0} | left, stream=stage.stream)
    return replace(stage, **kept, freed=min(stage.freed, activation)), part
