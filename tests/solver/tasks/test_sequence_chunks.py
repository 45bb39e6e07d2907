"""Micro-batches of several pieces: proved optima, bounds, the validator, pass names, and the file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.problem_file import read_problem
from pipesched.problem.formatting import size
from pipesched.problem.pass_names import pass_from, pass_text
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule, parse_slot
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate, validate_schedule
from plots.html.document import document as chart_document
from solver.bounds.saving.certificates import certificates
from solver.construction.list_scheduling import list_schedules
from solver.construction.lists.tables import covers
from solver.construction.timing import best_times
from solver.construction.tuned_lists import TunedLists
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.piece_problems import tiny_pieces

TIMES: dict[str, Any] = {"forward": {"first": 4, "each_earlier": 1}, "backward": {"first": 8, "each_earlier": 2}}
SURE = counted(20)


def pieces(microbatches: int, count: int = 4, **keys: Any) -> Problem:
    return problem(4, microbatches, **{"times": TIMES, "sequence_chunks": count} | keys)


@pytest.mark.parametrize(("capacity", "value"), [(7, 213), (16, 195)])
def test_published_instances_are_proved(capacity: int, value: int) -> None:
    found = solve(pieces(2, memory={"capacity": capacity}), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, value)
    assert found.timeline is not None and validate(found.timeline) == []
    assert max(measure(found.timeline).peak_quanta) <= capacity


def test_rules_of_list_scheduling_are_searched_for_pieces_too() -> None:
    """Whatever pieces wait for each other; with little memory far better than the best policy."""
    ran = 0
    for one in (pieces(16, memory={"capacity": 9}), *(tiny_pieces(Random(seed)) for seed in range(16))):
        if not covers(one):
            continue
        lists = TunedLists(one, one.splittable, 1, 0)
        lists.descend(lambda: False)
        lists.vary(lambda: False, 60)
        schedule = lists.schedule()
        if schedule is not None and lists.value is not None:
            timeline = best_times(one, schedule)
            assert validate(timeline) == []
            assert value_of(one, timeline) <= lists.value
            ran += 1
            if ran == 1:
                assert lists.value < min(value_of(one, best_times(one, other)) for other in list_schedules(one))
    assert ran > 8


@pytest.mark.parametrize(("growth", "value"), [(Fraction(0), 6045), (Fraction("0.011"), 6310.595)])
def test_a_prompt_in_pieces_is_forwards_alone(growth: Fraction, value: float) -> None:
    """Inference: eleven pieces of one prompt, each as long as the one before or longer by an equal step."""
    forward = [{"first": ms, "each_earlier": ms * growth} for ms in (412, 391, 413, 439)]
    found = solve(problem(4, 1, sequence_chunks=11, times={"forward": forward, "backward": 0}), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, value)


@pytest.mark.parametrize(("name", "value"), [("dense-1m", 103_080), ("deepseek-v3-32k", 12_317)])
def test_pieces_collectives_and_offload_are_in_one_file(name: str, value: int) -> None:
    """Seq1F1B's time, which keeps all activations; with the file's memory some have to move."""
    one = read_problem(Path(__file__).resolve().parents[3] / "examples" / "long" / f"{name}.yaml")
    assert one.network.has_collectives and one.network.options and one.network.has_arcs_between_chains
    timeline = simulate(one, HEURISTICS["seq1f1b"].order(one))
    assert measure(timeline).makespan_ticks * one.tick == value
    assert {violation.rule for violation in validate(timeline)} == {"memory"}
    bounds = certificates(one, one.objective)
    assert 0.95 * value < max(bound.value_ticks for bound in bounds) * one.tick <= value


def row(one: Problem, text: str) -> Schedule:
    return Schedule((tuple(parse_slot(name, one) for name in text.split()),))


def test_keys_and_values_stay_until_the_first_pieces_backward_ends() -> None:
    memory = {"capacity": 5, "activation": 1, "kept_for_later": 0.5}
    one = problem(1, 2, sequence_chunks=2, times={"forward": 1, "backward": 1}, memory=memory)
    timeline = simulate(one, row(one, "F0.0.0 F0.0.1 BW0.0.1 F0.1.0 BW0.0.0 F0.1.1 BW0.1.1 BW0.1.0"))
    # Two pieces hold 3; behind the backward of the second 2 of them stay, and a piece of the next takes 1.5.
    assert validate(timeline) == [] and measure(timeline).peak_quanta[0] * one.resolution == 3.5
    tight = problem(1, 2, sequence_chunks=2, times={"forward": 1, "backward": 1}, memory=memory | {"capacity": 3})
    above = simulate(tight, timeline.schedule)
    assert [violation.rule for violation in validate(above)] == ["memory"]
    least = problem(1, 2, sequence_chunks=2, times={"forward": 1, "backward": 1}, memory=memory | {"capacity": 2.5})
    assert solve(least, SURE).status is Status.INFEASIBLE


def test_passes_are_named_by_stage_micro_batch_and_piece() -> None:
    one = pieces(3, 2)
    for stage, walked in enumerate(one.microbatches_of):
        for j in walked:
            p = parse_slot(f"F{stage}.{j}")[0]
            text = pass_text(one, p)
            assert pass_from(one, text) == p
            assert text == f"F{stage // 2}.{j % 3}.{stage % 2}"
    for wrong in ("F0.0", "F4.0.0", "F0.0.2"):
        with pytest.raises(BadInput, match="piece"):
            pass_from(one, wrong)


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ({"sequence_chunks": 0}, "sequence_chunks: found 0"),
        ({"sequence_chunks": 5000}, "sequence_chunks: found 5000"),
        ({"times": {"forward": [1, 2, 3], "backward": 1}}, "times.forward: found"),
        ({"times": {"forward": {"first": 1}, "backward": 1}}, "times.forward: found keys first"),
        ({"times": {"forward": {"first": 1, "each_earlier": -0.5}, "backward": 1}}, "times.forward: found -0.5"),
        ({"memory": {"kept_for_later": -1}}, "memory.kept_for_later: found -1"),
        ({"microbatch_scale": [1, 2]}, "microbatch_scale: found with sequence_chunks"),
        ({"objective": "period"}, "objective: found period with sequence_chunks"),
        ({"times": TIMES | {"overlapped": 3}}, "times.overlapped: found with sequence_chunks"),
        ({"sequence_chunks": 1, "memory": {"kept_for_later": 1}, "times": {"forward": 1, "backward": 1}},
         "memory.kept_for_later: found without sequence_chunks"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_each(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        pieces(2, **keys)
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]


def test_what_the_validator_says_names_pieces_as_the_file_does() -> None:
    one = problem(2, 2, sequence_chunks=2, times={"forward": 1, "backward": 1}, memory={"capacity": 1})
    right = ["F0.0.0", "F0.0.1", "BW0.0.1", "BW0.0.0", "F0.1.0", "F0.1.1", "BW0.1.1", "BW0.1.0"]
    rows = [tuple(parse_slot(name.replace("0.", f"{d}.", 1), one) for name in right) for d in (0, 1)]
    for wrong, texts in (
        (rows, ["device 0 holds 2 activations when F0.0.1 starts"]),
        ([rows[0], rows[1][:-1]], ["stage 1, micro-batch 1, piece 0 runs F; it must run F BW"]),
        ([rows[0], (*rows[1], rows[1][0])], ["F1.0.0 runs 2 times"]),
        ([(*rows[0], rows[1][7]), rows[1][:7]], ["BW1.1.0 runs on device 0; stage 1 is placed on device 1"]),
    ):
        schedule = Schedule(tuple(wrong), "wrong")
        found = validate_schedule(one, schedule) or validate(simulate(one, schedule))
        assert [text for text in texts if not any(v.text.startswith(text) for v in found)] == [], found


def test_sizes_are_told_in_micro_batches_of_the_file() -> None:
    one = pieces(2)
    assert size(one) == "4 devices, 2 micro-batches of 4 pieces"
    assert repr(one) == "<Problem 'test': 4 devices, 4 stages (linear), 2 micro-batches of 4 pieces, minimise makespan>"
    chart = chart_document(simulate(one, HEURISTICS["seq1f1b"].order(one)))
    assert chart["microbatches"] == 2
    assert {(style["pass"], style["piece"]) for style in chart["styles"]} >= {("F3", 0), ("BW0", 3)}
