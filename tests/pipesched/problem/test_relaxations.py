"""Relaxations raise no optimum, whatever features meet; those that would are found; the check's own are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random

import pytest

from pipesched.checking.relaxed.arcs import without_arcs_between_chains
from pipesched.checking.relaxed.least_memory import with_least_memory
from pipesched.checking.relaxed.lookups import without_lookups
from pipesched.checking.relaxed.microbatches import with_equal_microbatches
from pipesched.checking.relaxed.parameters import around_passes, without_parameters
from pipesched.checking.relaxed.posed import posed
from pipesched.checking.relaxed.single_tasks import without_single_tasks
from pipesched.checking.streams.tasks_as_stages import as_plain
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import B, F, W
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from pipesched.problem.relaxed.relaxations import (
    ARCS_BETWEEN_CHAINS,
    FURTHER_RESOURCES,
    LOOKUPS,
    PARAMETERS,
    PARTNERS_MEMORY,
    RELAXATIONS,
    SAVED_ACTIVATIONS,
    UNEQUAL_MICROBATCHES,
    WITH_PARTNERS,
    relaxed,
)
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import Evidence, OnDevice, OnStream, ResourceWeights, StreamTasks, TasksAsStages
from solver.tasks.as_stages import stream_decomposition
from tests.support.exact_optimum import exact_optimum
from tests.support.relaxed_cases import NOTHING_FITS, Drawn, Value, drawn, least, of_features, raised
from tests.support.rows_of_tasks import tiny_mirrored
from tests.support.task_brute_force import tiny_gathers
from tests.support.tiny_partners import further_partners, tiny_partners
from tests.support.wrong_relaxations import ACTIVATIONS_KEPT_WHOLE, PARTNERS_IN_OWN_MEMORY, ROOM_LESS_ALL_WORKSPACE

# Pairs of optima that are compared of each relaxation.
ENOUGH = 7
# Evidence that reads what is left after all relaxations but these.
READS: dict[frozenset[Relaxation], Evidence] = {
    frozenset(): OnDevice(0),
    frozenset({ARCS_BETWEEN_CHAINS}): StreamTasks(0, "compute", None, None, 0, 0),
    frozenset({SAVED_ACTIVATIONS}): ResourceWeights(0, ()),
    frozenset({FURTHER_RESOURCES}): OnStream(0, "compute"),
}


def test_no_relaxation_raises_an_optimum() -> None:
    """The exact optimum of the document is the first richer one, every order of the poorer problems the next."""
    compared = Counter[Relaxation]()
    for relaxation, names, above in raised(RELAXATIONS, of_features(1), ENOUGH):
        assert not above, (relaxation.name, names)
        compared[relaxation] += 1
    assert all(compared[one] >= 6 for one in RELAXATIONS), compared


def of_partners() -> Iterator[Drawn]:
    """Activations that move to other devices: with every other feature, and where joint memory is little."""
    yield from islice((one for one in of_features(1) if "offload to devices" in one.names), 25)
    random = Random(5)
    for draw in (tiny_partners, further_partners) * 20:
        one = draw(random)
        if why_infeasible(one) is None:
            yield Drawn((draw.__name__,), one, partial(_by_model, one))


def _by_model(problem: Problem) -> Value:
    found = exact_optimum(problem)
    return NOTHING_FITS if found is None else found * problem.tick


def test_partners_memory_raises_no_optimum() -> None:
    found = [(names, above) for _, names, above in raised(WITH_PARTNERS, of_partners(), 100, PARTNERS_MEMORY)]
    assert not [names for names, above in found if above]
    compared = Counter("features" if "offload to devices" in names else names[0] for names, _ in found)
    assert len(compared) == 3 and min(compared.values()) >= 5, compared


def test_partners_memory_that_is_too_little_is_found() -> None:
    order = (*WITH_PARTNERS[:-1], PARTNERS_IN_OWN_MEMORY)
    assert any(above for _, _, above in raised(order, of_partners(), 100, PARTNERS_IN_OWN_MEMORY))


def _tasks_as_stages(problem: Problem) -> Problem:
    found = stream_decomposition(problem)
    return problem if found is None else found.plain


def _tasks_as_stages_of_the_check(problem: Problem) -> Problem:
    found = stream_decomposition(problem)
    return problem if found is None else as_plain(problem, TasksAsStages(found.rows))


def _if_other(relax: Callable[[Problem], Problem], problem: Problem) -> Problem:
    """The problem itself where what is left equals it."""
    found = relax(problem)
    return problem if found == problem else found


# The rewrites of the check, in its order, and tasks as stages by either hand.
FURTHER = (
    Relaxation("parameters, checked", without_parameters, "", around_passes),
    Relaxation("unequal micro-batches, checked", with_equal_microbatches, ""),
    Relaxation("lookups, checked", without_lookups, ""),
    Relaxation("arcs between chains, checked", without_arcs_between_chains, ""),
    Relaxation("single tasks, checked", without_single_tasks, ""),
    Relaxation("saved activations, checked", partial(_if_other, with_least_memory), ""),
)
AS_STAGES = Relaxation("tasks as stages", _tasks_as_stages, "")
AS_STAGES_CHECKED = Relaxation("tasks as stages, checked", _tasks_as_stages_of_the_check, "")


def of_tasks() -> Iterator[Drawn]:
    """Passes of several tasks, of which some mirror each other."""
    random = Random(7)
    for _ in range(400):
        one = tiny_mirrored(random)
        yield Drawn(("mirrored tasks",), one, partial(least, one))


def test_no_rewrite_of_the_check_raises_an_optimum() -> None:
    compared = Counter[str]()
    for relaxation, names, above in raised(FURTHER, of_features(1), ENOUGH):
        assert not above, (relaxation.name, names)
        compared[relaxation.name] += 1
    assert all(compared[one.name] >= 6 for one in FURTHER), compared


@pytest.mark.parametrize("relaxation", [AS_STAGES, AS_STAGES_CHECKED], ids=lambda one: one.name)
def test_tasks_as_stages_raise_no_optimum(relaxation: Relaxation) -> None:
    found = [(names, above) for _, names, above in raised([relaxation], of_tasks(), 2 * ENOUGH)]
    assert len(found) >= ENOUGH and not any(above for _, above in found)


@pytest.mark.parametrize("of", [AS_STAGES, AS_STAGES_CHECKED], ids=lambda one: one.name)
def test_tasks_that_take_longer_as_stages_are_found(of: Relaxation) -> None:
    def longer(problem: Problem) -> Problem:
        found = of.relax(problem)
        return found if found is problem else found.with_stages(forward=[s.forward + 1 for s in found.stages])

    assert any(above for _, _, above in raised([replace(of, relax=longer)], of_tasks(), 300))


def _more(of: Relaxation, ticks: Callable[[Problem], int]) -> Relaxation:
    return replace(of, added_back=lambda problem: of.added_back(problem) + ticks(problem))


def _twice_as_long(problem: Problem) -> Problem:
    found = UNEQUAL_MICROBATCHES.relax(problem)
    return found if found is problem else found.with_stages(forward=[2 * s.forward for s in found.stages])


def _never_given_back(problem: Problem) -> Problem:
    """What is taken for other chains stays to the end of the iteration."""
    found = ARCS_BETWEEN_CHAINS.relax(problem)
    if found is problem:
        return found
    kept = max(s.kv_cache.taken for s in problem.stages)
    return found.with_room([None if own is None else own - kept for own in found.room])


def of_gathers() -> Iterator[Drawn]:
    """Little memory for parameters that are gathered several times."""
    random = Random(1)
    for _ in range(500):
        one = tiny_gathers(random)
        yield Drawn(("gather",), one, partial(least, one))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(PARAMETERS, relax=partial(passes_alone, room_for=max)),
        _more(PARAMETERS, lambda _: 1),
        replace(UNEQUAL_MICROBATCHES, relax=_twice_as_long),
        _more(LOOKUPS, lambda problem: sum(s.tasks_of(F)[0].ticks for s in problem.stages if s.entry(F))),
        replace(ARCS_BETWEEN_CHAINS, relax=_never_given_back),
        ROOM_LESS_ALL_WORKSPACE,
        ACTIVATIONS_KEPT_WHOLE,
    ],
    ids=lambda wrong: wrong.name,
)
def test_one_that_would_is_found(wrong: Relaxation) -> None:
    cases = of_gathers() if wrong.relax is not PARAMETERS.relax and wrong.name == PARAMETERS.name else of_features(1)
    own = tuple(wrong if one.name == wrong.name else one for one in RELAXATIONS)
    assert any(above for _, _, above in raised(own, cases, 300, wrong))


def test_the_check_reads_the_same_poorer_problems() -> None:
    applied, together = Counter[str](), 0
    for names, problem in drawn(2, 300):
        for keeping, evidence in READS.items():
            poorer = relaxed(problem, keeping)
            found = posed(problem, Certificate("load", 0, "", None, evidence))
            assert found.added_back == poorer.added_back, names
            assert _compared(found.problem) == _compared(without_single_tasks(poorer.problem)), names
            applied.update(step.relaxation.name for step in poorer.steps)
            together += len(poorer.steps) > 1
    assert all(applied[one.name] > 10 for one in RELAXATIONS) and together > 20


def _compared(problem: Problem) -> Problem:
    """Without hosts and shared streams, which the check leaves out where nothing uses them."""
    return (
        problem
        if problem.network.options
        else replace(problem, resources=replace(problem.resources, hosts=(), shared_streams=()))
    )


def test_a_relaxation_that_finds_nothing_to_leave_out_is_no_step() -> None:
    for _, problem in drawn(3, 40):
        again = relaxed(relaxed(problem).problem)
        assert again.steps == () and again.added_back == 0


def test_what_is_added_back_is_that_of_all_steps() -> None:
    one = next(problem for names, problem in drawn(1) if "gather" in names and "lookups" in names)
    poorer = RelaxedProblem(one).without(PARAMETERS).without(LOOKUPS)
    assert [step.relaxation for step in poorer.steps] == [PARAMETERS, LOOKUPS]
    assert poorer.added_back == PARAMETERS.added_back(one) > 0 and len(poorer.notes) == 2


def test_what_relaxations_leave_of_the_network_is_what_drop_leaves() -> None:
    """But for the room that parameters take, and the memory that a chain's own backward gives back."""
    compared = Counter[str]()
    for names, problem in drawn(4, 600):
        for relaxation, of in relaxed(problem).steps:
            if relaxation.drop is None:
                continue
            dropped, poorer = relaxation.drop(of), relaxation.relax(of).network
            if relaxation is PARAMETERS:
                rooms = zip(dropped.room, poorer.room, strict=True)
                assert all(more is None or (less is not None and less <= more) for more, less in rooms), names
                dropped = replace(dropped, room=poorer.room)
            if relaxation is ARCS_BETWEEN_CHAINS:
                for kind, s in dropped.change:
                    if kind in (F, B, W):
                        assert dropped.change[kind, s].at_start == poorer.change[kind, s].at_start, names
                dropped = replace(dropped, change=poorer.change, given_up=poorer.given_up)
            assert dropped == poorer, (relaxation.name, names)
            compared[relaxation.name] += 1
    assert all(compared[one.name] > 10 for one in (PARAMETERS, LOOKUPS, ARCS_BETWEEN_CHAINS)), compared
