"""What is proved of plain passes alone, of problems with more than these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random
from threading import Event

from benchmarks.cases.drawn_tasks import drawn_tasks
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxation import Relaxation
from pipesched.problem.relaxed.relaxations import PARTNERS_MEMORY, SAVED_ACTIVATIONS, with_partners
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    MemoryOfPartners,
    MoreMemory,
    OfRelaxed,
    ResourceWeights,
    StreamWeights,
    relaxation_of,
)
from solver.bounds.saving.certificates import certificates
from solver.engine.engine import ENGINE
from solver.engine.relaxed import relaxed_search
from solver.engine.search import Search
from solver.solve import solve
from tests.support.counted import counted
from tests.support.tiny_partners import tiny_partners


def test_it_proves_more_than_arguments_about_one_device() -> None:
    one = next(problem for problem in drawn_tasks(2) if problem.name.startswith("2-18 "))
    found = solve(one, counted(0.5), engine=replace(ENGINE, subsolvers=ENGINE.subsolvers[-1:]))
    assert found.lower_bound_ticks > certificates(one, one.objective)[0].value_ticks


def _best(one: Problem, of_partners: bool) -> Certificate:
    """The strongest bound that reads the memory of partners, or of those that do not, nor modes of activations."""
    without = OfRelaxed | ResourceWeights | StreamWeights
    return next(
        claim
        for claim in certificates(one, one.objective)
        if (
            isinstance(relaxation_of(claim.evidence), MemoryOfPartners)
            if of_partners
            else not isinstance(claim.evidence, without)
        )
    )


def _drawn() -> Iterator[tuple[Problem, bool]]:
    """Problems with partners that share memory, and whether bounds of it are the strongest."""
    for number in range(60):
        one = tiny_partners(Random(number))
        if with_partners(one) is not None and why_infeasible(one) is None:
            yield one, _best(one, True).value_ticks > _best(one, False).value_ticks


def _searched(one: Problem, *claimed: Certificate) -> Relaxation:
    """The last relaxation of the problem that is searched, after these bounds are known too."""
    search = Search(one, counted(1), lambda _: None, Event(), ENGINE)
    for certificate in claimed:
        search.incumbent.argue(certificate)
    found = relaxed_search(search)
    assert found is not None
    return found.poorer.steps[-1].relaxation


def test_the_memory_of_partners_is_searched_where_it_proves_more() -> None:
    searched = Counter[bool]()
    for one, more in islice(_drawn(), 12):
        assert _searched(one) is (PARTNERS_MEMORY if more else SAVED_ACTIVATIONS)
        searched[more] += 1
    assert len(searched) == 2, searched


def test_a_bound_carried_from_more_memory_does_not_hide_it() -> None:
    one = next(one for one, more in _drawn() if more)
    found = _best(one, True)
    assert found.evidence is not None
    carried = OfRelaxed(MoreMemory((None,) * one.devices), found.kind, found.evidence)
    claimed = replace(found, value_ticks=found.value_ticks + 1, kind="carried", evidence=carried)
    assert _searched(one, claimed) is PARTNERS_MEMORY
