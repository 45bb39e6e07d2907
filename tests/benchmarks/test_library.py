"""The library of published instances: every description, some bounds, and which files count."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.library.__main__ import COMMAND, PAGE, main
from benchmarks.library.instance import CARD, LIBRARY, PROBLEM, SOURCE, instances
from benchmarks.library.page import row
from benchmarks.library.solving import improve
from benchmarks.library.standing import standing
from benchmarks.reporting.page import END, begin
from pipesched.errors import BadInput
from pipesched.problem.problem import Problem
from solver.limits import Limits

SEED = int(os.environ.get("PIPESCHED_LIBRARY_SEED") or datetime.now(UTC).strftime("%Y%m%d"))
DRAWN = 8
# Largest file that a drawn instance has: to check more than that takes seconds.
MOST_BYTES = 20_000
SMALL = "pipeline-tutor/07-ragged"


def table() -> dict[str, list[str]]:
    """The rows of the page, by the path of the instance."""
    text = PAGE.read_text().partition(begin(COMMAND))[2].partition(END)[0]
    lines = re.findall(r"^\| \[[^]]+\]\(\.\./library/([^)]+)\) (.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.strip("| ").split("|")] for name, cells in lines}


def test_every_instance_is_read_and_has_a_row_and_a_file() -> None:
    every = instances()
    assert len(every) >= 150
    assert {one.name for one in every} == set(table()), f"run `{COMMAND}`"
    names = [one.problem.name for one in every]
    assert len(names) == len(set(names))
    assert [one.name for one in every if isinstance(one.problem, Problem) and one.problem.name != one.name] == []
    assert [one.name for one in every if not one.files] == []


def test_drawn_instances_stand_as_the_page_says() -> None:
    able = [one for one in instances() if all(path.stat().st_size < MOST_BYTES for path in one.files)]
    for one in Random(SEED).sample(able, DRAWN):
        found = standing(one)
        assert not found.mistakes, f"PIPESCHED_LIBRARY_SEED={SEED}: {found.mistakes}"
        assert [cell for cell in row(found)[1:] if cell] == [cell for cell in table()[one.name] if cell], one.name


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The folder of a small instance in a library of its own; proved optimal at 20."""
    family = LIBRARY / SMALL.partition("/")[0]
    folder = tmp_path / SMALL
    shutil.copytree(LIBRARY / SMALL, folder)
    shutil.copy(family / SOURCE, folder.parent)
    return folder


def schedule_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((folder / "schedule.json.gz").read_bytes()))
    return found


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))


def later(document: dict[str, Any], by: int) -> dict[str, Any]:
    """The same schedule, that begins so many ticks later: valid, and longer."""
    starts = {name: start + by for name, start in document["starts"].items()}
    return document | {"starts": starts, "value": document["value"] + by}


def without_bound(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"lower_bound": None, "certificate": None}


def test_a_better_schedule_dropped_in_counts(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best = schedule_of(small)
    (small / "schedule.json.gz").unlink()
    write(small / "schedule.json", later(best, 1))
    assert main(["--library", str(small.parents[1]), "--verify"]) == 0
    assert "07-ragged: 21, bound 20 (head and tail), gap 4.76, equal" in capsys.readouterr().out
    write(small / "stranger.json", without_bound(best))
    assert main(["--library", str(small.parents[1]), "--verify"]) == 0
    assert (
        "07-ragged: 20 (stranger), bound 20 (head and tail), gap 0.00, best known by 5.00 %" in capsys.readouterr().out
    )


def test_a_better_bound_dropped_in_counts(small: Path) -> None:
    best = schedule_of(small)
    (small / "schedule.json.gz").unlink()
    write(small / "schedule.json", without_bound(best))
    (one,) = instances(small.parents[1])
    assert standing(one).gap is None
    write(small / "stranger.json", later(best, 1))
    found = standing(one)
    assert (found.gap, found.mistakes) == (0, ())


def forged_value(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"value": 19, "lower_bound": 19}


def forged_bound(document: dict[str, Any]) -> dict[str, Any]:
    claim = document["certificate"] | {"value": 21}
    return later(document, 1) | {"lower_bound": 21, "certificate": claim}


def other_problem(document: dict[str, Any]) -> dict[str, Any]:
    times = document["problem"]["times"] | {"forward": 2}
    return without_bound(document) | {"problem": document["problem"] | {"times": times}}


def broken_rule(document: dict[str, Any]) -> dict[str, Any]:
    return without_bound(document) | {"starts": document["starts"] | {"F3.0": 0}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda document: later(document, 1), "neither a better schedule nor a better bound"),
        (forged_value, "the file states"),
        (forged_bound, "cannot|does not|proves"),
        (other_problem, "its problem is not that of the instance"),
        (broken_rule, "stranger.json"),
        (lambda _: {"format": "pipesched-schedule"}, "format_version"),
        (lambda _: [], "not a schedule file"),
    ],
)
def test_a_worse_or_forged_file_is_refused(
    small: Path, change: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(small / "stranger.json", change(schedule_of(small)))
    assert main(["--library", str(small.parents[1]), "--verify"]) == 1
    found = capsys.readouterr()
    assert re.search(f"WRONG: .*stranger.json.*{why}|WRONG: .*{why}", found.err)
    assert "07-ragged: 20, bound 20 (head and tail)" in found.out


@pytest.mark.parametrize(
    ("published", "why"),
    [
        ("{by: X, value: 19, kind: computed}", "is below the bound"),
        ("{by: X, value: 21, kind: bound}", "is above the schedule"),
        (
            "{by: X, value: 21, kind: computed, schedule: generalised-interleaved}",
            "generalised-interleaved takes 22 here",
        ),
        ("{by: X, kind: simulated, schedule: gpipe}", "does not apply"),
    ],
)
def test_published_figures_that_contradict_ours_are_named(
    small: Path, published: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / CARD).write_text(f"where: here\npublished: [{published}]\n")
    assert main(["--library", str(small.parents[1]), "--verify"]) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ("published: []", "where: Field required"),
        ("where: x\npublished: [{by: X, kind: computed}]", "no value and no bubble"),
        ("where: x\npublished: [{by: X, kind: simulated, value: 3}]", "a simulated figure"),
        ("where: x\npublished: [{by: X, kind: guessed, value: 3}]", "published.0.kind"),
        ("where: x\nvalue: 3", "Extra inputs"),
    ],
)
def test_mistakes_in_descriptions(small: Path, card: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    (small / CARD).write_text(card)
    assert main(["--library", str(small.parents[1])]) == 2
    assert why in capsys.readouterr().err


def test_an_instance_has_a_problem_or_a_plan(small: Path) -> None:
    (small / PROBLEM).unlink()
    with pytest.raises(BadInput, match="none or both"):
        instances(small.parents[1])


def test_rounded_figures_are_as_exact_as_they_are_printed(small: Path) -> None:
    figures = "{by: X, value: 20.0, kind: computed}, {by: Y, bubble: 0.20, kind: computed}"
    (small / CARD).write_text(f"where: here\npublished: [{figures}]")
    (one,) = instances(small.parents[1])
    value, bubble = standing(one).published
    assert (value.low, value.high) == (Fraction(399, 20), Fraction(401, 20))
    # 16 ticks of work: from 16 / (1 - .195) to 16 / (1 - .205)
    assert (bubble.low, bubble.high) == (Fraction(16000, 805), Fraction(16000, 795))
    assert standing(one).ahead == 0


def test_open_instances_are_solved_and_kept(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (small / "schedule.json.gz").unlink()
    options = ["--library", str(small.parents[1]), "--verify", "--solve", "--time-limit", "5", "--workers", "1"]
    assert main(options) == 0
    assert "07-ragged: 20" in capsys.readouterr().out
    assert (small / "schedule.json.gz").exists()


def test_a_bound_found_for_the_schedule_of_another_leaves_it_to_its_sender(small: Path) -> None:
    best = schedule_of(small)
    (small / "schedule.json.gz").unlink()
    write(small / "schedule.json", without_bound(later(best, 1)))
    write(small / "stranger.json", without_bound(best))
    options = ["--library", str(small.parents[1]), "--verify", "--solve", "--time-limit", "5", "--workers", "1"]
    assert main(options) == 0
    found = standing(instances(small.parents[1])[0])
    assert found.best is not None and found.bound is not None
    assert (found.best.path.name, found.bound.path.name) == ("stranger.json", "schedule.json.gz")
    assert [one.value for one in found.entries] == [21, 20]


def test_a_plan_keeps_its_schedule_where_the_bound_alone_is_raised(tmp_path: Path) -> None:
    """The file states a bound below that of its own evidence, and the search proves more."""
    folder = tmp_path / "slackpipe" / "uniform"
    shutil.copytree(LIBRARY / "slackpipe" / "uniform", folder)
    shutil.copy(LIBRARY / "slackpipe" / SOURCE, folder.parent)
    answer = json.loads(gzip.decompress((folder / "plan.json.gz").read_bytes()))
    (folder / "plan.json.gz").write_bytes(gzip.compress(json.dumps(answer | {"lower_bound": "30"}).encode()))
    (one,) = instances(tmp_path)
    before = standing(one)
    assert before.best is not None and before.bound is not None and (before.best.value, before.bound.bound) == (34, 30)
    assert improve(before, Limits(seconds=10, workers=1))
    assert (standing(one).gap, standing(one).mistakes) == (0, ())
    assert json.loads(gzip.decompress((folder / "plan.json.gz").read_bytes()))["plan"] == answer["plan"]
