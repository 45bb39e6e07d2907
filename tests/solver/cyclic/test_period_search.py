"""Periods: patterns against exhaustive search and long runs, bounds against brute force, unrolled schedules for any m."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import ceil, inf
from pathlib import Path
from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.cyclic.block_graph import BlockGraph, graph_of
from formulations.cyclic.pattern import Copy, Pattern
from formulations.cyclic.periodic_model import PeriodicModel
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.problem_file import read_problem, with_objective
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.cyclic.pattern_extraction import read_pattern, read_pattern_anywhere
from solver.cyclic.period_bounds import period_certificates
from solver.cyclic.period_search import PeriodSolution, best_pattern
from solver.cyclic.problem_period import ProblemPeriod, best_period, best_unrolled, unroll
from solver.cyclic.solve_period import solve_period
from solver.engine.long_run import search_long_run
from tests.support.counted import counted
from tests.support.daily import DAY, daily
from tests.support.exhaustive.optimum import least_value
from tests.support.makers import problem, schedule
from tests.support.task_brute_force import optimum as task_optimum
from tests.support.task_brute_force import tiny_tasks
from tests.support.tessel import SHAPES, load, shape_graph
from tests.support.tiny_problem import tiny_problem

LITTLE = counted(0.05)
PLACEMENTS: tuple[dict[str, object], ...] = (
    {"placement": "linear"},
    {"placement": "interleaved", "chunks": 2},
    {"placement": "v-shape"},
    {"placement": "wave", "chunks": 3},
    {"placement": "bidirectional"},
    {"placement": [0, 1, 1, 0, 2, 3]},
)


def test_no_bound_is_above_the_makespan_of_each_micro_batch() -> None:
    """Batches one after another repeat as fast as that."""
    seen = attained = 0
    for seed in (*range(80), *range(20 * DAY, 20 * DAY + 20)):
        one = tiny_problem(Random(seed))
        if one.microbatches % len(one.placement.chains) and one.microbatches > 1:
            continue  # unequal shares of the chains are no long run
        best = least_value(one, Objective.MAKESPAN)
        if best is not None:
            found = [certificate.value for certificate in period_certificates(one)]
            assert max(found) <= best / one.microbatches, seed
            seen, attained = seen + len(found), attained + (max(found) == best / one.microbatches)
    assert seen > 100 and attained > 10


@pytest.mark.parametrize("seed", daily(range(15), 3))
def test_no_pattern_is_below_a_bound_and_every_unrolled_one_is_valid(seed: int) -> None:
    """Tiny problems of all placements, with zeros, transfers, negative `freed` and tight memory, for m from 1 up."""
    one = tiny_problem(Random(seed))
    one = replace(one, microbatches=max(one.microbatches, len(one.placement.chains)))
    if why_infeasible(one) is not None:
        assert best_period(one, LITTLE).pattern is None
        return
    found = best_period(one, LITTLE)
    assert found.pattern is not None
    assert found.period is not None
    assert found.period >= found.bound
    chains = found.pattern.graph.microbatches
    for m in (chains, chains + 1, 5, 17):
        longer = replace(one, microbatches=m)
        for first in range(found.pattern.copies):
            assert validate(simulate(longer, unroll(found.pattern, longer, first))) == []


def test_scarce_memory_repeats_sooner_in_the_order_of_a_searched_long_run() -> None:
    """One micro-batch in two holds its activation longer, so the pattern is of several, and of no published order."""
    times, memory = {"forward": 3, "backward": 4, "weight": 2}, {"activation": 1, "capacity": 5}
    one = problem(6, 12, placement="v-shape", times=times, memory=memory, objective="period")
    found = best_period(one, LITTLE, search_long_run=search_long_run)
    assert found.period is not None and found.bound <= found.period < 31  # with CP-SAT alone in that work
    assert found.pattern is not None and found.pattern.fits()
    assert validate(simulate(one, unroll(found.pattern, one))) == []


@pytest.mark.parametrize("name", ["1f1b", "zb-h2", "interleaved-1f1b"])
def test_a_steady_schedule_is_read_anywhere_as_in_its_middle(name: str) -> None:
    placement = {"placement": "interleaved", "chunks": 2} if name.startswith("interleaved") else {}
    one = problem(4, 32, **placement, objective="period")
    timeline, graph = simulate(one, HEURISTICS[name].order(one)), graph_of(one)
    middle, anywhere = read_pattern(timeline, graph), read_pattern_anywhere(timeline, graph)
    assert middle is not None and anywhere is not None
    assert anywhere.period == middle.period


@pytest.mark.parametrize("seed", daily(range(10), 2))
def test_a_long_run_of_a_pattern_grows_by_its_period(seed: int) -> None:
    """The cycle ratio against the simulator, which knows nothing of patterns."""
    one = tiny_problem(Random(seed))
    pattern = best_period(one, LITTLE).pattern
    if pattern is None:
        return
    each = pattern.copies * pattern.graph.microbatches
    ends = []
    for repetitions in (60, 120):
        longer = replace(one, microbatches=repetitions * each)
        ends.append(measure(simulate(longer, unroll(pattern, longer))).makespan_ticks)
    assert ends[1] - ends[0] == 60 * pattern.length


def every_pattern(graph: BlockGraph, most_turns: int) -> list[Pattern]:
    """All orders and turns of one copy, the first block of each device in place."""
    rows = []
    for held in graph.on_device:
        first, *rest = [Copy(b, 0) for b in held]
        repetitions = product(range(most_turns + 1), repeat=len(rest))
        rows.append(
            [
                ((first, *order), dict(zip(rest, t, strict=True)) | {first: 0})
                for t in repetitions
                for order in permutations(rest)
            ]
        )
    found = []
    for choice in product(*rows):
        repetitions = {x: {d: t} for d, (_, of) in enumerate(choice) for x, t in of.items()}
        found.append(Pattern(graph, 1, tuple(cyclic_order for cyclic_order, _ in choice), repetitions))
    return found


def in_every_mode(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern with every choice of fused backwards and overlapped blocks that its order and counts allow."""
    graph, where = pattern.graph, {x: (d, n) for d, o in enumerate(pattern.cyclic_orders) for n, x in enumerate(o)}

    def behind(x: Copy, y: Copy) -> bool:
        return where[y] == (where[x][0], where[x][1] + 1)

    fusible = [
        (b, w)
        for b, w in ((Copy(f.backward, 0), Copy(f.weight, 0)) for f in graph.fusions)
        if behind(b, w) and pattern.repetitions[b] == pattern.repetitions[w]
    ]
    pairs = [
        pair for pair in ((Copy(o.forward, 0), Copy(o.backward, 0)) for o in graph.overlaps) if behind(*pair)
    ]  # each copy is in one of them at most, since it stands right before or behind one other
    for chosen in product((False, True), repeat=len(fusible)):
        fused = frozenset(b for (b, _), one in zip(fusible, chosen, strict=True) if one)
        open_ = [pair for pair in pairs if not graph.fusions or pair[1] in fused]
        for blocks in product((False, True), repeat=len(open_)):
            yield replace(
                pattern, fused=fused, overlapped=frozenset(pair for pair, one in zip(open_, blocks, strict=True) if one)
            )


def least_of(patterns: Iterable[Pattern]) -> Pattern | None:
    """The pattern of least period that fits, of those that can run."""
    best: Pattern | None = None
    for pattern in filter(Pattern.fits, patterns):
        try:
            better = pattern.period < (best.period if best is not None else inf)
        except ValueError:
            continue
        best = pattern if better else best
    return best


@pytest.mark.parametrize("seed", (*daily(range(10), 2), 36, 120, 132, 140))
def test_the_model_finds_the_shortest_period_over_all_modes_and_no_shorter(seed: int) -> None:
    """Cheaper fused backwards, and blocks of .6 to 1.1 of a forward and a full backward: two devices, or one of two."""
    rng = Random(seed)

    def some(low: int, high: int) -> list[int]:
        return [rng.randint(low, high) for _ in range(2)]

    times: dict[str, list[int]] = {"forward": some(1, 6), "backward": some(1, 6), "transfer": some(0, 2)}
    split = seed % 2 == 0
    if split:
        times["weight"] = some(1, 5)
        times["fused"] = [b + w - rng.randint(0, 2) for b, w in zip(times["backward"], times["weight"], strict=True)]
    whole = times["fused" if split else "backward"]
    times["overlapped"] = [
        rng.randint(ceil(0.6 * (f + b)), (f + b) * 11 // 10) for f, b in zip(times["forward"], whole, strict=True)
    ]
    if split:
        memory = {"capacity": some(2, 7), "activation": 2, "freed_by_backward": rng.choice((-1, 0, 1, 2))}
        one = problem(2, 1, times=times, memory=memory)
    else:
        one = problem(1, 1, times=times, memory={"capacity": rng.randint(4, 8), "activation": 2}, placement=[0, 0])
    graph = graph_of(one)
    best = least_of(mode for pattern in every_pattern(graph, 2 if split else 3) for mode in in_every_mode(pattern))
    assert best is not None
    assert best.period >= period_certificates(one)[0].value
    for length, status in ((ceil(best.period), cp_model.OPTIMAL), (ceil(best.period) - 1, cp_model.INFEASIBLE)):
        model, solver = PeriodicModel(graph, 1, length), cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = 5
        assert solver.solve(model.cp) == status
        if status == cp_model.OPTIMAL:
            found = model.decode(solver.value)
            assert found.fits()
            assert found.period <= length


@pytest.mark.parametrize("keys", daily(PLACEMENTS, 3), ids=lambda keys: str(keys["placement"]))
@pytest.mark.parametrize("capacity", daily((6, 9), 2))
def test_every_placement_for_any_number_of_micro_batches(keys: dict[str, object], capacity: int) -> None:
    times = {"forward": 10, "backward": 11, "weight": 5, "transfer": 2}
    memory = {"capacity": capacity, "activation": 1, "freed_by_backward": 0.5}
    one = problem(4, 8, **keys, times=times, memory=memory)
    pattern = best_period(one, LITTLE).pattern
    assert pattern is not None
    for m in (pattern.graph.microbatches, 3, 6, 13):
        for objective in (Objective.MAKESPAN, Objective.SPAN):
            assert validate(best_unrolled(pattern, replace(one, microbatches=m, objective=objective))) == []


def test_a_pattern_of_one_chain_is_not_unrolled_over_two() -> None:
    one = problem(2, 1, placement="bidirectional")
    pattern = best_period(one, LITTLE).pattern
    assert pattern is not None
    assert validate(best_unrolled(pattern, one)) == []
    with pytest.raises(ValueError, match="stage 2"):
        unroll(pattern, replace(one, microbatches=2))


@pytest.mark.parametrize(("name", "keys"), (("v-half", {"placement": "v-shape"}), ("zb-h1", {}), ("1f1b", {})))
def test_a_published_schedule_repeats_at_the_load(name: str, keys: dict[str, object]) -> None:
    one = problem(4, 40, **keys)
    pattern = read_pattern(simulate(one, HEURISTICS[name].order(one)), graph_of(one))
    assert pattern is not None
    assert pattern.period == 3 * len(one.placement.stages_of[0])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("devices", (4, 8))
def test_shapes_with_shared_blocks_repeat_at_the_load(name: str, devices: int) -> None:
    graph = shape_graph(name, devices, 2 * devices)
    found = best_pattern(graph, load(graph), counted(20))
    assert found.pattern is not None
    assert found.pattern.fits()
    assert found.period == load(graph) == {"V": 4, "X": 8, "M": 6, "NN": 8, "K": 6}[name]


def test_solve_gives_the_period_in_finer_ticks_where_it_is_a_fraction(tmp_path: Path) -> None:
    one = problem(4, 8, times={"forward": 2, "backward": 3}, memory={"capacity": 3}, objective="period")
    solution = solve_period(one, LITTLE)
    assert solution.metrics is not None
    assert solution.timeline is not None
    period = best_period(one, LITTLE).period
    assert period is not None
    assert solution.value_ticks is not None
    assert solution.value_ticks * solution.problem.tick == period * one.tick
    assert solution.lower_bound_ticks <= solution.value_ticks
    assert validate(solution.timeline) == []
    assert solution.metrics.bubble(Objective.PERIOD) == pytest.approx(1 - 5 / float(period))
    path = tmp_path / "schedule.json"
    file = ScheduleFile(solution.timeline, solution.lower_bound_ticks, solution.certificate, solution.value_ticks)
    path.write_text(to_text(file), encoding="utf-8")
    again = read_schedule(path)
    assert again == file
    assert again.value_ticks == solution.value_ticks


def test_a_bound_that_is_a_fraction_is_told_as_it_is() -> None:
    """Two in flight for 13: 6.5 a micro-batch, which ticks of 1 would round down to 6."""
    one = problem(3, 6, times={"forward": 2, "backward": 2, "weight": 1}, memory={"capacity": 2}, objective="period")
    found = solve_period(one, search=False)
    assert found.certificate is not None
    assert found.problem.tick * found.lower_bound_ticks == found.problem.tick * found.certificate.value_ticks == 6.5


def test_solve_tells_the_period_of_the_published_schedules() -> None:
    one = problem(4, 8, objective="period")
    solution = solve_period(one, search=False)
    assert solution.status is Status.UNKNOWN
    periods = {c.name: c.metrics.period_ticks for c in solution.candidates if c.metrics is not None}
    assert periods["1f1b"] == periods["zb-h1"] == 3


def test_a_period_that_does_not_fit_is_told_apart_from_no_period() -> None:
    one = problem(4, 3, times={"forward": 2, "backward": 2, "weight": 1}, memory={"capacity": 4}, objective="period")
    found = {c.name: c for c in solve_period(one, search=False).candidates}
    over = found["zb-h2"].metrics
    assert over is not None
    assert over.period_ticks == 5
    assert not found["zb-h2"].fits
    # All forwards, then all backwards: three micro-batches fit the memory, but nothing repeats.
    assert (found["gpipe"].metrics, found["gpipe"].reason) == (None, "a long run of it comes to no repetition")
    assert found["1f1b"].fits


def test_a_published_schedule_that_fits_is_taken_where_the_search_finds_none_as_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = problem(4, 8, memory={"capacity": 4}, objective="period")
    slow = unrolled_one_at_a_time(one)
    for pattern in (None, slow):
        found = ProblemPeriod(one, PeriodSolution(pattern, Fraction(0), 0.0), ())
        monkeypatch.setattr("solver.cyclic.solve_period.best_period", lambda *_, found=found: found)
        solution = solve_period(one, LITTLE)
        assert (solution.status, solution.value_ticks) == (Status.OPTIMAL, 3)
        assert solution.timeline is not None and not validate(solution.timeline)
        assert solution.history[-1].value == 3
        without = solve_period(one, LITTLE, published=False)
        assert without.value_ticks == (None if pattern is None else slow.period)


def unrolled_one_at_a_time(one: Problem) -> Pattern:
    """The pattern of a schedule in which a micro-batch begins once the one before it has ended."""
    rows = [" ".join(f"{kind}{s}.{j}" for j in range(24) for kind in "FBW") for s in range(one.placement.stages)]
    long = replace(one, microbatches=24)
    pattern = read_pattern(simulate(long, schedule(*rows)), graph_of(long))
    assert pattern is not None
    return pattern


def test_what_does_not_fit_is_infeasible() -> None:
    one = problem(2, 2, placement="v-shape", memory={"capacity": 1}, objective="period")
    solution = solve_period(one, LITTLE)
    assert solution.status is Status.INFEASIBLE
    assert "device" in solution.reason


def test_periods_of_several_tasks_are_those_of_long_runs_and_no_bound_is_above_brute_force() -> None:
    found = 0
    for seed in range(2, 9):
        one = replace(tiny_tasks(Random(seed)), objective=Objective.PERIOD)
        if one.network.one_task_each:
            continue
        try:
            solution = solve_period(one, LITTLE)
        except BadInput as error:
            assert "memory that is taken on one stream" in str(error)
            continue
        try:
            best = task_optimum(one, Objective.MAKESPAN, most_orders=1_000)
        except ValueError:
            best = None
        if best is not None:
            assert solution.lower_bound_ticks * solution.problem.tick * one.microbatches <= best * one.tick
        assert not solution.notes
        if solution.timeline is None or solution.value_ticks is None:
            continue
        assert solution.lower_bound_ticks <= solution.value_ticks and not validate(solution.timeline)
        pattern, chains = best_period(one, LITTLE).pattern, len(one.placement.chains)
        assert pattern is not None and pattern.fits()
        # Where memory is not limited a pattern may have many periods under way, and is itself only once they are.
        apart = [count for counts in pattern.repetitions.values() for count in counts.values()]
        steady = 4 + 2 * (max(apart) - min(apart))
        short, long = (replace(one, microbatches=n * pattern.copies * chains) for n in (steady, steady + 12))
        runs = [best_unrolled(pattern, each) for each in (short, long)]
        assert not any(map(validate, runs))
        grown = measure(runs[1]).makespan_ticks - measure(runs[0]).makespan_ticks
        assert grown <= 12 * pattern.copies * chains * pattern.period
        found += 1
    assert found > 1


def test_communication_hides_behind_computation_in_a_period() -> None:
    one = replace(read_problem(Path("examples/kimi-k2-mini.yaml")), objective=Objective.PERIOD)
    solution = solve_period(one, LITTLE)
    # Of two stages a device: attention and experts forwards, backwards and their weight gradients.
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(2 * (2.43 + 4.64 + 5.36 + 5.04 + 5.07 + 1.30))


def test_what_has_no_period_is_refused() -> None:
    for name, words in (
        ("offload", "offload or recomputation"),
        ("sequence-chunks", "pieces or modules"),
        ("reduce-and-step", "collectives"),
    ):
        one = replace(read_problem(Path(f"examples/{name}.yaml")), objective=Objective.PERIOD)
        with pytest.raises(BadInput, match=f"period: found {words}"):
            solve_period(one)


@pytest.mark.parametrize("backward", daily((0, 1, 7), 3))
@pytest.mark.parametrize("transfer", (0, 3, 50))
@pytest.mark.parametrize(
    ("devices", "keys"), [(2, {}), (3, {}), (2, {"placement": "v-shape"}), (2, {"placement": "bidirectional"})]
)
def test_the_period_of_a_published_schedule_is_what_a_long_run_of_it_grows_by(
    backward: int, transfer: int, devices: int, keys: dict[str, object]
) -> None:
    """Per micro-batch, over so many that every cycle of the steady state divides their number."""
    times = {"forward": 10, "backward": backward, "transfer": transfer}
    one = problem(devices, 12, times=times, objective="period", **keys)
    found, compared = solve_period(one, LITTLE), 0
    for candidate in found.candidates:
        if candidate.metrics is None or candidate.metrics.period_ticks is None:
            continue
        order, ends = HEURISTICS[candidate.name].order, list[int]()
        for microbatches in (96, 96 + 240):
            longer = replace(one, microbatches=microbatches)
            ends.append(measure(simulate(longer, order(longer))).makespan_ticks)
        compared += 1
        grows = Fraction(ends[1] - ends[0], 240)
        # Rounded up where the ticks of what was found are too coarse.
        period = candidate.metrics.period_ticks * found.problem.tick
        assert 0 <= period - grows * one.tick < found.problem.tick, candidate.name
    assert compared


def test_short_passes_and_long_transfers_let_few_micro_batches_under_way() -> None:
    """Two on the first device: a round trip of 10 + 50 + 10 + 0 + 50 + 0 for both."""
    times = {"forward": 10, "backward": 0, "transfer": 50}
    found = solve_period(problem(2, 4, times=times, objective="period"), LITTLE)
    of = {one.name: one.metrics.period for one in found.candidates if one.metrics is not None}
    assert of["1f1b"] == 60 and found.value == found.lower_bound == 10


def test_a_published_period_is_a_fraction_of_a_tick_whatever_the_best_is() -> None:
    one = problem(4, 8, placement="bidirectional", times={"forward": 1, "backward": 2}, objective="period")
    solution = solve_period(one, search=False)
    [chimera] = [each for each in solution.candidates if each.name == "chimera"]
    assert chimera.value == 3.5


@pytest.mark.parametrize(
    "keys",
    (
        {
            "placement": "bidirectional",
            "chains": [{"stages": [0, 1], "microbatches": 3}, {"stages": [2, 3], "microbatches": 1}],
        },
        {"pipelines": {"count": 2}},
    ),
)
def test_chains_have_no_period_by_an_option_either(keys: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="objective: found period with chains"):
        with_objective(problem(2, 4, **keys), Objective.PERIOD)
