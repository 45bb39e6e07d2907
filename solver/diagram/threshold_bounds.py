"""Threshold bounds from the stages of some devices of a chain, or from those of one device and a few others.

If devices have several stages, two devices have too many orders of steps. So the stages of one device are modelled with
one or two others of the chain. Memory of the device limits the micro-batches away from it, the other stages bound their
return. Their diagrams then give completion bounds for larger ones, with many labels per state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.results.certificate import Certificate
from solver.diagram.device_sets import in_even_steps
from solver.diagram.modelled_stages import owner_of, stages_on, walked_chains
from solver.diagram.params import DIAGRAMS
from solver.diagram.threshold_search import ThresholdSearch


def bounds_of_devices(search: ThresholdSearch) -> Iterator[Certificate]:
    """Yield certificates of increasing value from the stages on a chain's first device and on others at even intervals.

    They lie between the proved bound and a schedule's value. Labels looked at are taken off `search.work`. Nothing is
    yielded unless the problem is plain.
    """
    problem = search.problem
    if problem.view is None:
        return
    for chain in walked_chains(problem):
        for stages in in_even_steps(problem, chain, _most_devices(problem)):
            smaller = None if search.over else search.smaller_diagram(stages, owner_of(problem, chain, stages))
            if smaller is None:
                continue
            yield from search.certificates(smaller.kept, [smaller], search.step(), search.shortest())
            if search.over:
                return


def bounds_of_stages(search: ThresholdSearch, device: DeviceId) -> Iterator[Certificate]:
    """Yield certificates of increasing value by all stages of one device and one or two further stages of the chain.

    They lie between the proved bound and a schedule's value. The further stage that gives the best bound is added
    first, then another one, until none improves the bound. The last stages of the chain are tried first: while a
    micro-batch is there, the device keeps its activation. Nothing is yielded unless the problem is plain.
    """
    problem = search.problem
    if problem.view is None:
        return
    for chain in walked_chains(problem):
        kept = stages_on(problem, chain, (device,))
        for _ in range(DIAGRAMS.most_devices // 2 if kept else 0):
            before = kept
            for stages in _with_one_more(chain, before):
                smaller = search.smaller_diagram(stages, owner_of(problem, chain, stages))
                own = search.certificates(smaller.kept, [smaller], search.step(), search.shortest()) if smaller else ()
                for certificate in own:
                    kept = stages
                    yield certificate
                if search.over:
                    return
            if kept == before:
                break


def bounds_of_more_stages(search: ThresholdSearch, stages: tuple[StageId, ...]) -> Iterator[Certificate]:
    """Yield certificates of increasing value by `stages` and further ones, pruned by the diagram of `stages`.

    They lie between the proved bound and a schedule's value. `stages` are of one chain, in its order. The first stage
    added is the one after the last of `stages` on a device that has several of them, if there is one. Then the stage
    with the best bound is added, until none improves it. Nothing is yielded unless the problem is plain.
    """
    problem = search.problem
    if problem.view is None:
        return
    for chain in walked_chains(problem):
        smaller = (
            search.smaller_diagram(stages, owner_of(problem, chain, stages)) if set(stages) <= set(chain) else None
        )
        if smaller is None:
            continue
        step, successor = search.step(DIAGRAMS.shortest_value_step), _stage_after(problem, chain, stages)
        first, shortest = stages, max(1, step // DIAGRAMS.value_step)
        counts = stages_on(
            problem, stages, (smaller.kept.device,)
        )  # of the device whose time counts, `smaller` covers all stages
        candidates = [*_with_one_more(chain, first)] if successor is None else [_with(chain, first, successor)]
        while candidates:
            best = None if successor is None else candidates[0]
            for trial in candidates:
                alike = stages_on(problem, trial, (smaller.kept.device,)) == counts
                kept = search.kept(trial, smaller.kept.device) if alike else None
                for certificate in search.certificates(kept, [smaller], step, shortest) if kept else ():
                    best = trial
                    yield certificate
                if search.over:
                    return
            if best is None:
                break
            step = max(1, step // DIAGRAMS.shortest_value_step)
            first, successor, candidates, shortest = best, None, [*_with_one_more(chain, best)], step


def _most_devices(problem: Problem) -> int:
    return DIAGRAMS.most_devices // 2 if problem.network.blocks else DIAGRAMS.most_devices


def _with(chain: Sequence[StageId], stages: Sequence[StageId], more: int) -> tuple[StageId, ...]:
    return tuple(stage for stage in chain if stage in (*stages, more))


def _with_one_more(chain: Sequence[StageId], stages: Sequence[StageId]) -> Iterator[tuple[StageId, ...]]:
    """Yield `stages` with one further stage of the chain added, for each after the first of them, the last first."""
    for stage in reversed(chain[chain.index(stages[0]) :]):
        if stage not in stages:
            yield _with(chain, stages, stage)


def _stage_after(problem: Problem, chain: Sequence[StageId], stages: Sequence[StageId]) -> StageId | None:
    """Return the chain's stage that follows the last of `stages` on a device with several of them.

    None if there is none. A diagram that also models this stage proves more where few micro-batches are in flight: each
    round of these loses time between the two stages, and over many rounds the losses add up.
    """
    where = problem.placement.stage_device
    for last, after in zip(reversed(chain[:-1]), reversed(chain), strict=False):
        several = sum(where[stage] == where[last] for stage in stages) > 1
        if last in stages and after not in stages and several:
            return after
    return None
