"""Bounds below a value, on some devices of a chain, or on the stages of one device and some others.

Where devices have several stages, the steps of two devices come in too many orders. So the stages of one device are
kept with one or two on their way. Memory of the device decides how many micro-batches are away, the other stages
whether they come back in time. Those guide then where still more stages are kept, with many labels of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.diagram.all_orders import plain_passes
from solver.diagram.device_sets import in_even_steps
from solver.diagram.modelled_stages import owner_of, stages_on, walked_chains
from solver.diagram.params import DIAGRAMS
from solver.diagram.threshold_search import ThresholdSearch


def bounds_of_devices(raising: ThresholdSearch) -> Iterator[Certificate]:
    """Above what is proved, up to the value of a schedule: each above those before, in ticks.

    On the first device of a chain and others in even steps. Nothing where a pass is several tasks.
    """
    problem = raising.problem
    if not plain_passes(problem):
        return
    for chain in walked_chains(problem):
        for stages in in_even_steps(problem, chain, _most_devices(problem)):
            by = None if raising.over else raising.guiding(stages, owner_of(problem, chain, stages))
            if by is None:
                continue
            yield from raising.certificates(by.kept, [by], raising.step(), raising.shortest())
            if raising.over:
                return


def bounds_of_stages(raising: ThresholdSearch, device: int) -> Iterator[Certificate]:
    """As `bounds_of_devices`, with all stages of one device, and those that prove most with them, one after the other.

    While a micro-batch is at later stages, the device holds its activation; more of the last ones prove something.
    """
    problem = raising.problem
    if not plain_passes(problem):
        return
    for chain in walked_chains(problem):
        kept = stages_on(problem, chain, (device,))
        for _ in range(DIAGRAMS.most_devices // 2 if kept else 0):
            before = kept
            for stages in _with_one_more(chain, before):
                by = raising.guiding(stages, owner_of(problem, chain, stages))
                own = raising.certificates(by.kept, [by], raising.step(), raising.shortest()) if by else ()
                for certificate in own:
                    kept = stages
                    yield certificate
                if raising.over:
                    return
            if kept == before:
                break


def bounds_of_more_stages(raising: ThresholdSearch, stages: tuple[int, ...]) -> Iterator[Certificate]:
    """The same, where some stages guide others that are kept besides.

    First with the stage behind those of the device besides, then with each other one besides that, and with the best of
    these again with each other one.
    """
    problem = raising.problem
    if not plain_passes(problem):
        return
    for chain in walked_chains(problem):
        by = raising.guiding(stages, owner_of(problem, chain, stages)) if set(stages) <= set(chain) else None
        if by is None:
            continue
        step, behind = raising.step(DIAGRAMS.shortest_value_step), _behind(problem, chain, stages)
        first, shortest = stages, max(1, step // DIAGRAMS.value_step)
        counts = stages_on(
            problem, stages, (by.kept.device,)
        )  # of the device whose time does, a guide knows all stages
        candidates = [*_with_one_more(chain, first)] if behind is None else [_with(chain, first, behind)]
        while candidates:
            best = None if behind is None else candidates[0]
            for trial in candidates:
                alike = stages_on(problem, trial, (by.kept.device,)) == counts
                kept = raising.kept(trial, by.kept.device) if alike else None
                for certificate in raising.certificates(kept, [by], step, shortest) if kept else ():
                    best = trial
                    yield certificate
                if raising.over:
                    return
            if best is None:
                break
            step = max(1, step // DIAGRAMS.shortest_value_step)
            first, behind, candidates, shortest = best, None, [*_with_one_more(chain, best)], step


def _most_devices(problem: Problem) -> int:
    return DIAGRAMS.most_devices // 2 if problem.overlaps else DIAGRAMS.most_devices


def _with(chain: Sequence[int], stages: Sequence[int], more: int) -> tuple[int, ...]:
    return tuple(stage for stage in chain if stage in (*stages, more))


def _with_one_more(chain: Sequence[int], stages: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """With each stage behind the first one, the last of them first."""
    for stage in reversed(chain[chain.index(stages[0]) :]):
        if stage not in stages:
            yield _with(chain, stages, stage)


def _behind(problem: Problem, chain: Sequence[int], stages: Sequence[int]) -> int | None:
    """The stage behind those of a device with several of the stages: it says what few of them lose in the long run."""
    where = problem.placement.stage_device
    for last, after in zip(reversed(chain[:-1]), reversed(chain), strict=False):
        several = sum(where[stage] == where[last] for stage in stages) > 1
        if last in stages and after not in stages and several:
            return after
    return None
