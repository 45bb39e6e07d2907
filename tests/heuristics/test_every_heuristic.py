"""Every schedule of the catalogue, on many problems: valid, free of deadlock, and equal to its closed form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS, Heuristic, no_closed_form, schedule_named
from pipesched.errors import DoesNotApply
from pipesched.problem import placement
from pipesched.problem.passes import F
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import Metrics, measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import Costs, Memory, build
from tests.support.daily import DAY, EVERY, daily
from tests.support.in_turn import in_turn
from tests.support.makers import measured

every_heuristic = pytest.mark.parametrize("heuristic", list(HEURISTICS), ids=lambda h: h.name)


def placements(p: int, random: Random) -> list[Placement]:
    """Every kind of placement over p devices; the explicit ones with a shuffled line and with stages put anywhere."""
    line = random.sample(range(p), p)
    anywhere = random.sample([*range(p), *random.choices(range(p), k=2)], p + 2)
    named = [placement.linear(p), placement.v_shape(p), placement.bidirectional(p)]
    chunked = [kind(p, v) for kind in (placement.interleaved, placement.wave) for v in (1, 2, 3)]
    return [*named, *chunked, placement.explicit(p, line), placement.explicit(p, anywhere)]


def uneven(where: Placement, m: int, random: Random, split: bool = True) -> Problem:
    """Stages of unequal times, some of them zero, and transfers."""

    def ticks(most: int) -> tuple[int, ...]:
        return tuple(random.randint(0, most) for _ in range(where.stages))

    forward, backward, weight, transfer = ticks(9), ticks(12), ticks(6), ticks(3)
    fused = tuple(max(0, b + w - less) for b, w, less in zip(backward, weight, ticks(2), strict=True))
    overlapped = ticks(20) if random.random() < 0.3 else None
    costs = Costs(forward, backward if split else fused, weight if split else None, fused, transfer, overlapped)
    activation = tuple(random.randint(1, 3) for _ in range(where.stages))
    freed = tuple(random.randint(-1, a) for a in activation)
    return build(where, m, costs, Memory(activation, freed, (None,) * where.devices))


def alike(where: Placement, m: int, f: int, b: int, w: int | None, fused: int | None = None, freed: int = 0) -> Problem:
    """Equal stages and free transfers: the papers' setting. Without w, b is a full backward. An activation takes 4."""
    s = where.stages
    whole = fused if fused is not None else b + (w or 0)
    costs = Costs((f,) * s, (b,) * s, None if w is None else (w,) * s, (whole,) * s, (0,) * s)
    return build(where, m, costs, Memory((4,) * s, (freed,) * s, (None,) * where.devices))


def run(problem: Problem, name: str) -> Metrics:
    return measured(problem, schedule_named(name).order(problem))


# What `needs` names of those that do not apply to equal micro-batches of plain passes: they have tests of their own.
OF_OTHER_PROBLEMS = ("memory.", "microbatch_order", "modules", "pipelines", "sequence_chunks")
EVEN_DEVICES = ("dualpipe", "chimera")  # one pipeline each way is defined for these only


def stated_peak(heuristic: Heuristic, problem: Problem) -> tuple[int, ...] | None:
    """Activations each device holds at most, by the closed form at unit times or the ceiling it states."""
    devices, ceiling = problem.devices, HEURISTICS[heuristic.improves or heuristic.name].ceiling
    if ceiling is not None:
        return (ceiling(devices, problem.placement.stages // devices),) * devices
    unit = alike(problem.placement, problem.microbatches, 1, 1, 1 if problem.splittable else None)
    form = heuristic.closed_form(unit)
    return None if form is None or form.peak is None else tuple(peak // 4 for peak in form.peak)


def settings(heuristic: Heuristic, p: int, random: Random) -> Iterator[tuple[Placement, int, bool]]:
    """The micro-batches of `counts` on every placement it applies to, with a backward that splits and one that does not.

    From 2 devices on the backwards take turns where a schedule takes both, and so do the placements.
    """
    fits = [where for where in placements(p, random) if applies(heuristic, where, 1)]
    fused = {where for where in fits if applies(heuristic, where, None)}
    for turn, m in enumerate(counts(p)):
        for where in fits if p < 2 else fits[turn % max(1, len(fits)) :][:1]:
            for split in (True, False) if p < 2 else (where not in fused or random.random() < 0.5,):
                yield where, m, split


def counts(p: int) -> list[int]:
    """Every number of micro-batches up to 3p; from 4 devices on those at and beside the multiples of p, and the least.

    From 5 on one of each kind: the least, fewer than devices, a multiple, and beside one.
    """
    every = range(1, 3 * p + 1)
    if p >= 5:
        return [1, p - 1, p, 2 * p + 1, 3 * p]
    return [m for m in every if p < 4 or m < 4 or m % p in (0, 1, p - 1)]


def applies(heuristic: Heuristic, where: Placement, w: int | None) -> bool:
    """On enough micro-batches for any schedule; w is the time of a W, None where the backward does not split."""
    try:
        heuristic.order(alike(where, 2 * where.devices, 1, 1, w))
    except DoesNotApply as reason:
        assert str(reason)
        assert "\n" not in str(reason)
        return False
    return True


@every_heuristic
@pytest.mark.parametrize("p", (1, 2, 3, *daily((4, 5, 8), 3)))
def test_valid_free_of_deadlock_and_within_its_peak_wherever_it_applies(
    heuristic: Heuristic, p: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unequal times with zeros and transfers; a backward that splits and one that does not."""
    monkeypatch.setattr("heuristics.v_cost_aware.TURNS", 0)  # they take most of the time; test_v_cost_aware.py has them
    random = Random(f"{heuristic.name} {p}")
    applied: set[tuple[str, int]] = set()
    simulated_and_validated = 0
    for where, m, split in settings(heuristic, p, random):
        problem = uneven(where, m, random, split)
        problem = replace(problem, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
        if heuristic.name in ("zb-1p", "zb-2p"):  # its cap may leave no room for a B that takes memory
            freed = tuple(max(0, given) for given in problem.network.freed_by_backward)
            problem = problem.with_stages(freed=freed)
        try:
            schedule = heuristic.order(problem)
        except DoesNotApply:
            continue
        timeline = simulate(problem, schedule)
        assert validate(timeline) == []
        assert schedule.name == heuristic.name
        applied.add((where.name, m))
        most = stated_peak(heuristic, problem)
        if most is not None:
            simulated_and_validated += 1
            network = problem.network
            each = max(
                a + max(0, -freed) for a, freed in zip(network.memory_in_flight, network.freed_by_backward, strict=True)
            )
            peaks = measure(timeline).peak_quanta
            assert all(peak <= chunks * each for peak, chunks in zip(peaks, most, strict=True))
    other = any(key in heuristic.needs for key in OF_OTHER_PROBLEMS)
    defined = not other and (p % 2 == 0 or heuristic.name not in EVEN_DEVICES)
    stated = "its peak is stated, by its closed form or a ceiling, wherever it is defined"
    assert (simulated_and_validated > 0) == (defined and heuristic.name != "zb"), stated
    if heuristic.name not in ("dualpipe", "dualpipe-v"):  # which need two micro-batches a device
        assert {m for _, m in applied} == (set(counts(p)) if defined else set())


@every_heuristic
def test_what_it_says_of_itself(heuristic: Heuristic) -> None:
    for text in (heuristic.name, heuristic.reference, heuristic.needs, heuristic.bubble, heuristic.peak):
        assert text
        assert "\n" not in text


# The share of times of passes that are left out, by number of devices; of the others every second one is simulated, the
# rest on the next day, and equal passes of one tick always.
SKIPPED = {3: 0.94, 4: 0.97, 6: 0.985}


@every_heuristic
@pytest.mark.parametrize("p", (1, 2, 3, 4, *daily((6,), 2)))
def test_closed_form_is_what_the_simulator_finds(heuristic: Heuristic, p: int) -> None:
    random, drawn, fits = Random(f"{heuristic.name} {p}"), 0, dict[tuple[str, Placement, bool], bool]()
    for where in placements(p, random):
        for m, f, b, w in product(
            {1, 2, p, 2 * p, 3 * p, random.randint(1, 4 * p)}, (1, 3), (1, 2, 4), (None, 0, 1, 3)
        ):
            if heuristic.closed_form is no_closed_form or (
                random.random() < SKIPPED.get(p, 0.9) and (f, b, w) != (1, 1, 1)
            ):
                continue
            fused = None if w is None or random.random() < 0.5 else max(b, b + w - 1)
            freed, drawn = random.choice((-1, 0, 3, 4)), drawn + 1
            if (drawn + DAY) % 2 and (f, b, w) != (1, 1, 1) and not EVERY:
                continue
            kind = where.name, where, w is None  # a linear placement equals an interleaved one of one chunk
            if kind not in fits:
                fits[kind] = applies(heuristic, where, w)
            if not fits[kind]:
                continue
            problem = alike(where, m, f, b, w, fused, freed)
            try:
                schedule = heuristic.order(problem)
            except DoesNotApply:
                continue
            form = heuristic.closed_form(problem)
            if form is not None:
                found = measure(simulate(problem, schedule))
                assert form.makespan in (None, found.makespan_ticks)
                assert form.span in (None, found.span_ticks)
                assert form.peak in (None, found.peak_quanta)


CLOSED_FORMS = ("gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p")


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_there_is_a_closed_form_in_the_papers_setting(name: str) -> None:
    where = placement.interleaved(4, 2) if name.startswith("interleaved") else placement.linear(4)
    problem = alike(where, 8, 1, 1, 1)
    form = HEURISTICS[name].closed_form(problem)
    assert form is not None
    assert form.span is not None
    assert HEURISTICS[name].closed_form(problem.with_stages(transfer=(1,) * where.stages)) is None


SIZES = [(p, m) for p in (1, 2, 3, 4, 6, 8) for m in (2 * p, 2 * p + 1, 3 * p)]
# F, B, W with W no longer than F or B.
TIMES = ((1, 1, 1), (3, 2, 1), (2, 5, 2), (7, 7, 4))


@in_turn(("p", "m"), SIZES)
@in_turn(("f", "b", "w"), TIMES)
def test_bubbles_and_peaks_of_the_papers_table(p: int, m: int, f: int, b: int, w: int) -> None:
    """Zero Bubble, tables 1 and 2, and the memory of its worker i, counted from 1: M_B after F, M_W after B."""
    m_b, m_w = 4, 1
    problem = alike(placement.linear(p), m, f, b, w, freed=m_b - m_w)
    work, workers = m * (f + b + w), range(1, p + 1)

    found = run(problem, "1f1b")
    assert found.makespan_ticks == found.span_ticks == work + (p - 1) * (f + b + w)
    assert found.peak_quanta == tuple((p - i + 1) * m_b for i in workers)

    found = run(problem, "zb-h1")
    assert found.makespan_ticks == found.span_ticks == work + (p - 1) * (f + b - w)
    assert found.peak_quanta == tuple((p - i + 1) * m_b + (i - 1) * m_w for i in workers)

    found = run(problem, "zb-h2")
    assert found.span_ticks == work + (p - 1) * (f + b - 2 * w)
    assert found.peak_quanta == tuple((2 * p - 2 * i + 1) * m_b + (2 * i - 2) * m_w for i in workers)


@pytest.mark.parametrize("cap", (1, 2, 3))
@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_zb_keeps_to_an_uneven_capacity(cap: int, objective: Objective) -> None:
    random = Random(cap)
    for p, m in product((1, 2, 3, 5), (1, 4, 9)):
        problem = uneven(placement.linear(p), m, random)
        network = problem.network
        freed = tuple(max(0, x) for x in network.freed_by_backward)
        capacity = tuple(a * random.randint(cap, 3) for a in network.memory_in_flight)
        problem = replace(problem.with_stages(freed=freed).with_room(capacity), objective=objective)
        schedule = HEURISTICS["zb"].order(problem)
        assert validate(simulate(problem, schedule)) == []
        held = [sum(p.kind is F for p in schedule.passes_on(d)) for d in range(problem.devices)]
        assert held == [m] * problem.devices


@every_heuristic
def test_the_passes_of_an_iteration_are_ordered_as_for_the_makespan(heuristic: Heuristic) -> None:
    random = Random(4)
    for where in placements(4, random):
        one = uneven(where, 8, random)
        with suppress(DoesNotApply):
            of = [heuristic.order(replace(one, objective=aim)) for aim in (Objective.MAKESPAN, Objective.ITERATION)]
            assert of[0].orders == of[1].orders, one
