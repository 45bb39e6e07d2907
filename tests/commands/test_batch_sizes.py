"""`solve` and `plan` of a file that lists sizes of micro-batches: the best one, and by how much each other is worse."""

from __future__ import annotations

import json
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from commands.shared.batch_sizes import best_of_sizes
from pipesched.files.problem_file import problem_from
from pipesched.results.batch_sizes import BatchSizes, SizeResult
from pipesched.results.free_memory import MostFree
from pipesched.results.solution import Status

BATCH: dict[str, Any] = {"size": 8, "overhead": {"forward": 1, "backward": 2}}
PROBLEM: dict[str, Any] = {
    "devices": 2, "microbatches": [2, 4, 8], "batch": BATCH, "times": {"forward": 8, "backward": 16},
}  # fmt: skip
PLAN: dict[str, Any] = {
    "devices": 2, "microbatches": [2, 4, 8], "batch": BATCH, "placement": "linear",
    "layers": [{"name": "block", "count": 2, "forward": 8, "backward": 16}],
}  # fmt: skip


def _file(folder: Path, document: dict[str, Any]) -> str:
    path = folder / "file.json"
    path.write_text(json.dumps(document))
    return str(path)


def _expected(microbatches: int) -> Fraction:
    """(M + 1) passes there and back on each of two equal devices."""
    return (microbatches + 1) * (3 + Fraction(24, microbatches))


@pytest.mark.parametrize(("command", "document"), [("solve", PROBLEM), ("plan", PLAN)])
@pytest.mark.usefixtures("pictures_are_empty")
def test_the_best_size_and_the_others(
    command: str, document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--time-limit", "20", "--workers", "1", "--json", "-o", str(tmp_path / "out")]
    assert main([command, _file(tmp_path, document), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {one["microbatches"]: one["value"] for one in found["sizes"]}
    assert values == {count: float(_expected(count)) for count in (2, 4, 8)}
    least = min(values.values())
    assert found["value"] == least
    assert [one["microbatch_size"] for one in found["sizes"]] == [4, 2, 1]
    for one in found["sizes"]:
        assert one["above_least"] == pytest.approx(one["value"] / least - 1, abs=1e-12)
        assert (one["status"], one["at_least_above"]) == ("optimal", one["above_least"])
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Sizes of micro-batches" in report
    assert "8 micro-batches of 1 sequence: 20.00 % longer" in report


def test_of_periods_the_time_of_all_micro_batches_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a period alone, small micro-batches always have the least."""
    options = ["--objective", "period", "--time-limit", "20", "--workers", "1", "--json"]
    assert main(["solve", _file(tmp_path, PROBLEM), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["value"] for one in found["sizes"]] == [24 + 3 * count for count in (2, 4, 8)]
    assert found["value"] == (24 + 3 * 2) / 2


@pytest.mark.parametrize(
    ("command", "document", "option"),
    [("solve", PROBLEM, "--explain"), ("solve", PROBLEM, "--then-memory"), ("plan", PLAN, "--explain")],
)
def test_options_of_one_size(
    command: str, document: dict[str, Any], option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, _file(tmp_path, document), option]) == 2
    assert "found with a list of sizes in the file; allowed: one size" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_other_commands_take_one_size(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--schedule", "1f1b"] if command == "simulate" else []
    assert main([command, _file(tmp_path, PROBLEM), *more]) == 2
    said = capsys.readouterr().err
    assert "microbatches: found [2, 4, 8]; allowed: one here; solve, plan and sweep search a list" in said


def test_after_an_interruption_no_size_is_searched() -> None:
    problem = problem_from(PROBLEM | {"microbatches": 2})

    def result_of(asked: object, sequences: int | None, found: int) -> SizeResult:
        assert asked is problem
        return SizeResult(2, sequences, Status.FEASIBLE, Fraction(found), Fraction(1))

    calls = iter((7, 5, 3))
    best, results, interrupted = best_of_sizes(
        [(problem, 4), (problem, 2), (problem, 1)],
        Namespace(time_limit=30.0),
        lambda _, own: next(calls) if 0 < own.time_limit <= 30 else 0,
        result_of,
        lambda found: found == 5,
    )
    assert (best, interrupted) == (5, True)
    assert [one.value for one in results.results] == [7, 5, None]
    assert results.results[2].reason == "not searched: interrupted before"


def test_how_much_worse_as_far_as_is_proved() -> None:
    sizes = BatchSizes((
        SizeResult(4, 2, Status.FEASIBLE, Fraction(110), Fraction(105)),
        SizeResult(8, 1, Status.FEASIBLE, Fraction(100), Fraction(90)),
        SizeResult(2, 4, Status.INFEASIBLE, None, Fraction(0), "no memory"),
    ))  # fmt: skip
    assert [*sizes.sentences()] == [
        "best size: 8 micro-batches of 1 sequence; every other is worse",
        "  4 micro-batches of 2 sequences: 10.00 % longer, at least 5.00 %",
        "  2 micro-batches of 4 sequences: no memory",
    ]
    assert [one["at_least_above"] for one in sizes.document()] == [0.05, 0.0, None]


@pytest.mark.parametrize(
    ("command", "document"),
    [
        ("solve", PROBLEM | {"memory": {"activation": 10, "capacity": 100}}),
        ("plan", PLAN | {"layers": [PLAN["layers"][0] | {"activation": 10}], "memory": {"capacity": 100}}),
    ],
)
def test_with_free_memory_the_size_that_leaves_most_is_best(
    command: str, document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least one activation, its share of 10, is kept on every device, and larger micro-batches end sooner."""
    file = _file(tmp_path, document | {"objective": "free_memory"})
    options = ["--time-limit", "20", "--workers", "1"]
    assert main([command, file, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["free_memory"]["value"] == 100 - 10 / 8
    assert {one["microbatches"]: one["less_free"] for one in found["sizes"]} == {2: 3.75, 4: 1.25, 8: 0}
    assert [one["above_least"] for one in found["sizes"]] == [None, None, 0]
    assert found["sizes"][0]["value"] < found["value"]
    assert main([command, file, *options]) == 0
    said = capsys.readouterr().out
    assert "best size: 8 micro-batches of 1 sequence; every other is worse" in said
    assert "2 micro-batches of 4 sequences: leaves 3.75 less" in said


def test_how_much_less_is_free_as_far_as_is_proved() -> None:
    def result(microbatches: int, value: int, free: int, bound: int) -> SizeResult:
        return SizeResult(
            microbatches,
            None,
            Status.FEASIBLE,
            Fraction(value),
            Fraction(80),
            "",
            MostFree(Fraction(free), Fraction(bound)),
        )

    sizes = BatchSizes((result(2, 90, 5, 5), result(4, 100, 8, 8), result(8, 110, 8, 8), result(16, 90, 4, 9)))
    assert [*sizes.sentences()] == [
        "best size: 4 micro-batches; of the others none is known better",
        "  2 micro-batches: leaves 3 less",
        "  8 micro-batches: 10.00 % longer, at least 0.00 %",
        "  16 micro-batches: leaves 4 less, at least 0 less",
    ]
    assert next(BatchSizes(sizes.results[:2]).sentences()) == "best size: 4 micro-batches; every other is worse"
    assert BatchSizes(sizes.results[:2]).at_least_above(sizes.results[1]) == 0
    # Of what was not searched, or may leave more, nothing is known.
    for one in (
        SizeResult(8, None, Status.UNKNOWN, None, Fraction(120)),
        SizeResult(8, None, Status.FEASIBLE, Fraction(110), Fraction(105), "", MostFree(Fraction(8), Fraction(9))),
    ):
        found = BatchSizes((sizes.results[1], one))
        assert next(found.sentences()) == "best size: 4 micro-batches; of the others none is known better"
        assert found.at_least_above(one) is None
    # What may leave as much may also be as fast: its lower bound is of the schedules that leave less.
    assert "none is known better" in next(BatchSizes((result(4, 70, 8, 8), result(2, 90, 7, 8))).sentences())


@pytest.mark.usefixtures("pictures_are_empty", "cells_in_turn")
def test_a_sweep_of_free_memory_compares_times_of_what_leaves_the_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = {"activation": 10, "capacity": 100}
    file = _file(tmp_path, PROBLEM | {"memory": memory, "objective": "free_memory"})
    options = ["--time-limit", "30", "--workers", "1", "-o", str(tmp_path / "out")]
    assert main(["sweep", file, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert [one["above_least"] for one in found] == [None, None, 0]
    assert main(["sweep", file, *options]) == 0
    assert "most free memory: 98.75 at microbatches 8" in capsys.readouterr().out
