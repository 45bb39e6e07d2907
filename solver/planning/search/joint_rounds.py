"""Rounds of the joint search, in parallel: on several placements, or on one placement from several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pipesched.layers.plan_problem import Choice
from solver.planning.budget import Budget, SecondsOrWork
from solver.planning.search.better_plans import BetterPlans
from solver.planning.search.choice_search import ChoiceSearch

# A placement, and the number of one of its searches.
Job = tuple[ChoiceSearch, int]


def in_groups(choices: Sequence[ChoiceSearch], workers: int) -> Iterator[list[Job]]:
    """Yield groups of at most `workers` joint searches to run at once, as (placement, number of its search).

    There is one search per placement, or `workers` searches of a single placement.
    """
    jobs = [(choice, 0) for choice in choices]
    if len(jobs) == 1:
        jobs = [(choices[0], number) for number in range(workers)]
    for at in range(0, len(jobs), workers):
        yield jobs[at : at + workers]


def anneal_at_once(
    group: Sequence[Job], better: Mapping[Choice, BetterPlans], budget: Budget, most: SecondsOrWork
) -> list[ChoiceSearch]:
    """Run one round of each search in `group` in parallel, each for `most`; better plans are offered.

    Returns the placements of the group that the joint search supports. Empty if it supports none.
    """
    known = [(choice, better[choice.choice].joint(number)) for choice, number in group]
    found = [(choice, search) for choice, search in known if search is not None]
    if not found:
        return []
    shares = [budget.progress(most) for _ in found]
    with ThreadPoolExecutor(len(found)) as pool:
        runs = [pool.submit(search.run, share) for (_, search), share in zip(found, shares, strict=True)]
        improved = [run.result() for run in runs]
    for (choice, search), is_better in zip(found, improved, strict=True):
        if is_better:
            choice.offer(search.candidate())
    return [choice for choice, _ in found]
