"""`check` of a store of sweeps: every cell that can be is verified, the others are named, and forged ones are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from commands.main import main
from pipesched.results.solution import Status
from pipesched.sweeps.store import Store
from solver.sweeps.executor import InTurn
from solver.sweeps.neighbours import CARRIED, Neighbours
from solver.sweeps.run_sweep import Options, run_sweep
from tests.support.counted import counted
from tests.support.sweeps import outcome, sweep

LAYERS = [{"name": "a", "count": 4, "forward": 2, "backward": 3, "weight": 2, "memory": 1, "activation": 1}]
PLANS = {"devices": 2, "microbatches": 3, "placement": "linear", "layers": LAYERS, "memory": {"capacity": 9}}


def solved(path: Path, of: Any) -> Path:
    with Store(path) as store:
        run_sweep(of, store, InTurn(Event()), Options(counted(1)))
    return path


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return solved(
        tmp_path_factory.mktemp("problems") / "sweep.sqlite", sweep("memory=0.5,2", "placement=linear,[0, 2]")
    )


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return solved(tmp_path_factory.mktemp("plans") / "sweep.sqlite", sweep("memory=2,6,9", document=PLANS))


def checked(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["check", str(path), "--json"])
    return code, json.loads(capsys.readouterr().out)


def copied(path: Path, folder: Path) -> Path:
    (folder / "sweep.sqlite").write_bytes(path.read_bytes())
    return folder / "sweep.sqlite"


def test_every_cell_is_checked_and_nothing_is_written(problems: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in problems.parent.iterdir()}
    code, found = checked(problems.parent, capsys)  # the folder that `sweep -o` wrote
    assert code == 0
    assert [cell["bound"] for cell in found["cells"]] == ["verified", None, "verified", None]
    assert [cell["valid"] for cell in found["cells"]] == [None, None, True, None]
    assert [cell["optimal"] for cell in found["cells"]] == [False, False, True, False]
    assert found["cells"][1]["skipped"] and "no schedule" in found["cells"][0]["findings"][0]["text"]
    assert {path.name: path.read_bytes() for path in problems.parent.iterdir()} == before
    assert main(["check", str(problems)]) == 0
    assert "4 cells; 1 with a valid schedule, 0 wrong; bounds: 2 verified" in capsys.readouterr().out
    assert main(["check", str(problems), "--again"]) == 2


def test_bounds_over_all_plans_are_checked(plans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(plans, capsys)
    assert code == 0
    assert found["cells"][0]["bound"] == "not verified"  # that no plan fits
    assert all(cell["valid"] and cell["bound"] in ("verified", "trusted") for cell in found["cells"][1:])


def test_a_bound_carried_from_plans_with_more_memory_is_checked(
    plans: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of, path = sweep("memory=2,6,9", document=PLANS), copied(plans, tmp_path)
    few, many = of.cells[1:]
    with Store(path) as store:
        theirs, weaker = store.get(many.key), replace(store.get(few.key) or outcome(None), lower_bound=Fraction(1))
        assert theirs is not None
        known = {many.key: theirs, few.key: weaker}
        found = {one.key: known for one, known in Neighbours((few, many), known).settled(many)}[few.key]
        assert found.kind == CARRIED and found.lower_bound == theirs.lower_bound
        store._database.execute("DELETE FROM results WHERE key = ?", (few.key,))
        store.keep(few.key, found)
    assert checked(path, capsys)[1]["cells"][1]["bound"] in ("verified", "trusted")
    with Store(path) as store:
        assert found.evidence is not None
        less = replace(found, evidence={**found.evidence, "capacities": ["5", "5"]})
        store._database.execute("DELETE FROM results WHERE key = ?", (few.key,))
        store.keep(few.key, less)
    code, again = checked(path, capsys)
    assert (code, again["cells"][1]["bound"]) == (1, "refused")
    assert "less memory on device 0" in again["cells"][1]["findings"][0]["text"]


def test_a_cell_of_a_plan_is_written_with_its_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(json.dumps(PLANS))
    options = ["--jobs", "1", "--time-limit", "2", "--write", "0"]
    assert main(["sweep", "p.yaml", "--set", "memory=9", *options]) == 0
    capsys.readouterr()
    for name in ("cell-0.json", "cell-0-plan.json"):
        assert main(["check", name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["valid"] and found["bound"] in (("verified", "trusted") if "plan" in name else (None,))


def _bound(document: dict[str, Any]) -> None:
    document["lower_bound"] = document["value"] = "19"


def _evidence(document: dict[str, Any]) -> None:
    document["evidence"] = {"form": "device", "device": 7}


FORGED: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_bound, "claim: a value of 19; its schedule has 18"),
    (_evidence, "refused"),
    (lambda document: document.update(lower_bound="17.5", evidence=None), ""),
    (lambda document: document.update(lower_bound="20"), "claim: a lower bound of 20 above the value of 18"),
    (lambda document: document.update(status=Status.INFEASIBLE.value), ""),
]


@pytest.mark.parametrize(("forge", "said"), FORGED, ids=range(len(FORGED)))
def test_what_does_not_hold_is_named(
    forge: Callable[[dict[str, Any]], None],
    said: str,
    problems: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = copied(problems, tmp_path)
    database = sqlite3.connect(path)
    key, text = database.execute("SELECT key, document FROM results WHERE status = 'optimal'").fetchone()
    document = json.loads(text)
    forge(document)
    database.execute("UPDATE results SET document = ? WHERE key = ?", (json.dumps(document), key))
    database.commit()
    database.close()
    code, found = checked(path, capsys)
    cell = found["cells"][2]
    if said:
        assert code == 1 and said in (*cell["wrong"], cell["bound"])
    else:
        assert (code, cell["bound"], cell["optimal"]) == (0, "not verified", False)


def test_a_problem_that_was_not_solved_is_refused(
    problems: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied(problems, tmp_path)
    database = sqlite3.connect(path)
    database.execute("UPDATE cells SET document = replace(document, '\"weight\": 1', '\"weight\": 2')")
    database.commit()
    database.close()
    code, found = checked(path, capsys)
    assert code == 1 and found["cells"][2]["wrong"] == [
        "store: the problem in the store is not the one that was solved"
    ]


def of_version(version: int, path: Path) -> Path:
    """Change a store to one of an older version, with the other keys that it had."""
    database = sqlite3.connect(path)
    for table in ("cells", "results", "sweeps"):
        database.execute(f"UPDATE {table} SET key = 'old ' || key")
    if version == 1:
        database.execute("ALTER TABLE cells DROP COLUMN document")
    database.execute(f"PRAGMA user_version = {version}")
    database.commit()
    database.close()
    return path


def test_a_store_with_other_keys_is_checked_and_goes_on(
    problems: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_version(2, copied(problems, tmp_path))
    (infeasible, *today), (without, *found) = (checked(one, capsys)[1]["cells"] for one in (problems, path))
    assert found == today and "verified" in [cell["bound"] for cell in today]
    assert infeasible["bound"] == "verified" and "older version" in without["findings"][0]["text"]
    of = sweep("memory=0.5,2", "placement=linear,[0, 2]")
    with Store(path) as store:
        assert store.known(cell.key for cell in of.cells if not cell.refused).keys() == {of.cells[2].key}


def test_a_result_of_another_problem_is_not_taken_over(
    problems: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A document may mean other numbers than for the version that wrote it, as where durations are derived."""
    path = of_version(2, copied(problems, tmp_path))
    database = sqlite3.connect(path)
    changed = sweep("memory=0.5,2", "placement=linear,[0, 2]", "transfer=1").cells[2]
    database.execute("UPDATE cells SET document = ? WHERE number = 2", (json.dumps(changed.document),))
    database.commit()
    database.close()
    assert "older version" in checked(path, capsys)[1]["cells"][2]["findings"][0]["text"]
    with Store(path) as store:
        assert not store.known([changed.key])
    assert "older version" in checked(path, capsys)[1]["cells"][2]["findings"][0]["text"]


def test_a_store_without_problems_says_so_and_takes_new_ones(
    problems: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_version(1, copied(problems, tmp_path))
    code, found = checked(path, capsys)
    assert (code, found["cells"][2]["bound"]) == (0, "not verified")
    assert "older version" in found["cells"][2]["findings"][0]["text"]
    solved(path, sweep("memory=0.5,2", "placement=linear,[0, 2]"))
    assert "verified" in [cell["bound"] for cell in checked(path, capsys)[1]["cells"]]
