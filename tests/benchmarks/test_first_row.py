"""The way from a problem file to the first row of its exact model: features that a file lacks are not on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.first_row import ROOT, first_row
from formulations.constraints.catalogue import CONSTRAINTS
from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.files.problem_file import read_problem

START = ROOT / "examples" / "start.yaml"
# Whose modules a plain file must not reach.
ABSENT = ("pipesched/files/features/", "pipesched/problem/features/")


def of_features(path: Path) -> set[str]:
    return {name for name in first_row(path).files if name.startswith(ABSENT)}


def test_a_plain_file_meets_no_feature() -> None:
    found = first_row(START)
    assert of_features(START) == {"pipesched/files/features/catalogue.py"}
    assert next(iter(found.files)) == "pipesched/files/problem_file.py"
    assert [*found.files][-1] == "formulations/constraints/precedence.py"
    assert len(found.files) <= 42 and found.returns <= 200


def test_a_file_meets_the_features_that_it_gives() -> None:
    own = {"pipesched/files/features/parameters.py", "pipesched/problem/features/parameters.py"}
    assert own <= of_features(ROOT / "examples" / "reduce-and-step.yaml")


@pytest.mark.parametrize(("example", "expected"), [("start", []), ("gathered-weights", ["fused or split", "gathers"])])
def test_a_model_has_the_constraints_of_features_that_its_file_gives(example: str, expected: list[str]) -> None:
    jobs = jobs_of(read_problem(ROOT / "examples" / f"{example}.yaml"))
    assert [one.name for one in CONSTRAINTS if one.posted_if is not None and one.posted_if(jobs)] == expected


def test_the_first_row_leaves_nothing_behind() -> None:
    """A model of the same process has all its rows again."""
    first_row(START)
    assert len(ExactModel(jobs_of(read_problem(START)), 10_000, 0).cp.proto.constraints) > 100
