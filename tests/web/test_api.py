"""The server's answers: schedules of a problem, charts, solves, files; and bad input, one line a mistake."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.files.schedule_file import read_schedule
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from tests.commands.test_hostile_files import HOSTILE
from tests.support.daily import daily
from tests.support.web_answers import GOOD, compared, events, of_kind

ROOT = Path(__file__).resolve().parents[2]
START = (ROOT / "examples" / "start.yaml").read_text(encoding="utf-8")


PLAN = (
    "devices: 2\nmicrobatches: 3\nplacement: [linear, v-shape]\nmemory: {capacity: 20}\nlayers:\n  - {name: embedding, forward: 1, "
    "backward: 1, weight: 1, memory: 1, activation: 1}\n  - {name: block, count: 3, forward: 2, backward: 2, weight: 1, memory: 1, activation: 1}\n"
)


def begin(client: Any, text: str, seconds: float = 20, tab: str = "tab-number-1", target: str | None = None) -> str:
    asked = {"text": text, "seconds": seconds, "workers": 1, "tab": tab, "target": target}
    answer = client.post("/api/solves", json=asked)
    assert answer.status_code == 200, answer.text
    name: str = answer.json()["solve"]
    return name


def test_examples_are_described_by_the_comments_at_their_tops(client: Any) -> None:
    found = {one["name"]: one["what"] for one in client.get("/api/start").json()["examples"]}
    assert found["plans/overlapped"].startswith("Layers of experts")  # not the editors' comment above
    assert found["blocking-transfers"].endswith("they overlap with computation.")  # of the second line
    assert found["primus-pp8"].endswith(" …") and max(map(len, found.values())) <= 300


def test_examples_are_those_of_the_repository(client: Any) -> None:
    found = {one["name"]: one["text"] for one in client.get("/api/start").json()["examples"]}
    ours = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.yaml")}
    ours |= {
        f"plans/{path.stem}": path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "plans").glob("*.yaml")
    }
    assert {name: ours.get(name) for name in found} == found
    assert set(ours) - set(found) == {"kimi-k2", "kimi-k2-offload", "memory-frontier"}


def test_every_published_schedule_is_a_row(client: Any) -> None:
    found = compared(client, START)
    rows = {row["schedule"]: row for row in of_kind(found, "row")}
    assert set(rows) == set(HEURISTICS.names())
    best = rows["zb-h1"]
    assert (best["makespan"], best["fits"], best["peak_memory"]) == (279, True, [40, 40, 40, 40])
    assert best["chart"]["end"] * best["chart"]["tick"] == 279
    assert not rows["gpipe"]["fits"] and "capacity" in rows["gpipe"]["reason"]
    assert rows["chimera"]["status"] == "does not apply" and rows["chimera"]["reason"]
    assert of_kind(found, "bound")[0]["value"] == 279
    assert of_kind(found, "problem")[0]["timeUnit"] == "ms"


def test_an_edit_of_the_form_comes_back_as_text_and_form(client: Any) -> None:
    found = compared(client, GOOD, ("microbatches", "5"), ("memory.capacity", "4"))
    assert of_kind(found, "text") == [GOOD.replace("3", "5") + "memory: {capacity: 4}\n"]
    assert of_kind(found, "form")[0]["memory.capacity"] == "4"
    assert of_kind(found, "problem")[0]["microbatches"] == 5


def test_an_infeasible_problem_is_an_answer(client: Any) -> None:
    found = compared(client, GOOD + "memory: {capacity: 1, static: 0.5, activation: 1}\n")
    assert "device 0" in of_kind(found, "bound")[0]["infeasible"]


def test_periods_and_unequal_microbatches(client: Any) -> None:
    rows = of_kind(compared(client, GOOD + "objective: period\n"), "row")
    assert next(row for row in rows if row["schedule"] == "1f1b")["period"] == 3
    rows = of_kind(compared(client, GOOD + "microbatch_scale: [1, 0.5, 1.5]\n"), "row")
    assert next(row for row in rows if row["schedule"] == "1f1b")["fits"]


def test_a_solve_is_watched_to_its_end_and_again(client: Any) -> None:
    name = begin(client, START)
    found = events(client.get(f"/api/solves/{name}/events"))
    kinds = [kind for kind, _ in found]
    assert kinds[0] == "history" and kinds[-1] == "solution" and {"moment", "chart"} <= set(kinds)
    solution = of_kind(found, "solution")[0]
    assert (solution["status"], solution["value"], solution["lower_bound"]) == ("optimal", 279, 279)
    again = events(client.get(f"/api/solves/{name}/events"))
    assert of_kind(again, "solution") == [solution] and of_kind(again, "history")[0][-1]["value"] == 279


def test_a_plan_is_told_and_searched_for(client: Any) -> None:
    (told,) = of_kind(compared(client, PLAN), "plan")
    assert "4 layers on 2 devices" in told["sentence"]
    (fields,) = of_kind(compared(client, PLAN), "form")
    assert fields["memory.capacity"] == "20" and fields["times.forward"] is None
    found = events(client.get(f"/api/solves/{begin(client, PLAN)}/events"))
    solution = of_kind(found, "solution")[0]
    assert solution["status"] == "optimal" and solution["value"] == solution["lower_bound"]
    assert {one["placement"] for one in solution["choices"]} == {"linear", "v-shape"}
    assert sum(solution["partition"]) == 4 and of_kind(found, "chart")
    assert of_kind(compared(client, solution["problem_text"]), "row"), "the chosen problem can be gone on with"


def test_a_problem_and_a_plan_are_solved_for_a_runtime(client: Any) -> None:
    targets = client.get("/api/start").json()["targets"]
    assert "deepspeed" in targets["problem"] and "megatron" in targets["plan"]
    free = of_kind(events(client.get(f"/api/solves/{begin(client, START)}/events")), "solution")[0]
    found = events(client.get(f"/api/solves/{begin(client, START, target='deepspeed')}/events"))
    solution = of_kind(found, "solution")[0]
    assert solution["scope"] == " that deepspeed can express" and free["scope"] == ""
    assert free["value"] <= solution["lower_bound"] <= solution["value"]
    assert any("restricted to what deepspeed can express" in note for note in solution["notes"])
    found = events(client.get(f"/api/solves/{begin(client, PLAN, 5, target='megatron')}/events"))
    plan = of_kind(found, "solution")[0]
    assert plan["schedule"] == "1f1b" and plan["placement"] == "linear"
    settings = plan["settings_texts"][0]
    assert settings["name"] == "megatron" and settings["refusal"] is None
    assert "--pipeline-model-parallel" in settings["text"]
    assert any("of all plans" in note for note in plan["notes"])
    for text, target in ((START, "megatron"), (PLAN, "nobody")):
        found = events(client.get(f"/api/solves/{begin(client, text, target=target)}/events"))
        (mistakes,) = of_kind(found, "mistakes")
        assert len(mistakes) == 1 and "deepspeed" in mistakes[0], "those that there are"


def test_files_of_what_was_solved_and_of_what_was_published(client: Any, tmp_path: Path) -> None:
    name = begin(client, START)
    client.get(f"/api/solves/{name}/events")
    path = tmp_path / "schedule.json"
    path.write_bytes(client.post("/api/files", json={"solve": name, "format": "schedule.json"}).content)
    assert validate(read_schedule(path).timeline) == [] and read_schedule(path).lower_bound is not None
    svg = client.post("/api/files", json={"solve": name, "format": "gantt.svg"})
    assert b"</svg>" in svg.content and svg.headers["content-disposition"] == 'attachment; filename="gantt.svg"'
    png = client.post("/api/files", json={"text": START, "schedule": "1f1b", "format": "gantt.png"})
    assert png.content.startswith(b"\x89PNG")
    csv = client.post("/api/files", json={"text": START, "schedule": "1f1b", "format": "torch-csv"})
    with zipfile.ZipFile(io.BytesIO(csv.content)) as held:
        assert held.read("schedule.csv").decode() == EXPORTERS["torch-csv"].export(_timeline("1f1b"))[".csv"]
    assert "deadlock" in " ".join(json.loads(csv.headers["x-notes"]))
    trace = client.post("/api/files", json={"text": START, "schedule": "1f1b", "format": "chrome-trace"})
    assert trace.json()["traceEvents"]


def _timeline(name: str) -> Any:
    from pipesched.files.problem_file import read_problem
    from pipesched.simulation.simulator import simulate

    problem = read_problem(ROOT / "examples" / "start.yaml")
    return simulate(problem, HEURISTICS[name].order(problem))


@pytest.mark.parametrize(
    "asked",
    [
        {"format": "gantt.png"},
        {"format": "gantt.png", "solve": "../../etc/passwd"},
        {"format": "../x.png", "text": GOOD, "schedule": "1f1b"},
        {"format": "gantt.png", "text": GOOD, "schedule": "nonsense"},
        {"format": "nonsense", "text": GOOD, "schedule": "1f1b"},
        {"format": "gantt.png", "text": GOOD, "schedule": "chimera"},
    ],
)
def test_files_that_cannot_be(client: Any, asked: dict[str, str]) -> None:
    answer = client.post("/api/files", json=asked)
    assert answer.status_code == 400 and len(answer.json()["mistakes"]) == 1


def test_a_solve_beyond_the_limits_is_refused(client: Any) -> None:
    wrong = {"text": GOOD, "seconds": 1e6, "workers": 99, "seed": -1, "tab": "tab-number-2"}
    answer = client.post("/api/solves", json=wrong)
    assert answer.status_code == 400 and len(answer.json()["mistakes"]) == 3
    assert client.get("/api/solves/unknown/events").status_code == 400


def test_a_text_of_another_kind_says_what_to_do(client: Any) -> None:
    schedule = '{"format": "pipesched-schedule", "problem": {}}'
    assert "schedule file" in of_kind(compared(client, schedule), "mistakes")[0][0]
    answer = client.post("/api/chart", json={"text": PLAN, "schedule": "1f1b"})
    assert "plan file" in answer.json()["mistakes"][0]
    large = GOOD.replace("microbatches: 3", "microbatches: 30000")
    assert "allowed on this page" in of_kind(compared(client, large), "mistakes")[0][0]
    older = "num_stages: 2\nnum_batches: 4\noutput_file: /etc/passwd\n"
    assert of_kind(compared(client, older), "problem")[0]["devices"] == 2


# With every section that a problem may have, and small, since what is not broken is simulated.
SMALL = (
    GOOD
    + "name: x\nplacement: linear\nmemory: {capacity: 3, activation: [1, 2], static: 1, unit: GiB}\nobjective: span\n",
    GOOD + "placement: [0, 1, 1, 0]\nmicrobatch_scale: [1, 2, 0.5]\nmicrobatch_order: free\ntime_unit: ms\n",
    GOOD
    + "memory:\n  capacity: 3\n  offload: {out: 1, in: 1, on: [d2h, h2d]}\n  recompute:\n    - {name: all, time: 1, keeps: 0.5}\n",
    "devices: 2\nmicrobatches: 2\nstreams: [compute, comm]\ntasks:\n  forward:\n    - {name: a, time: 1}\n    - {name: b, on: comm, time: 2}\n"
    "  backward: [{name: c, time: 2}]\n  weight: [{name: d, time: 1, after: c}]\ntimes: {transfer: {time: 1, on: comm}}\n",
)


def malformed(seed: int) -> str:
    """A problem that somebody or something broke."""
    rng = Random(seed)
    if seed < len(HOSTILE):
        return list(HOSTILE.values())[seed]
    text = list(rng.choice(SMALL))
    pieces = ["", *["0", "-", ",", "[", "}", "{", "*a", "1e400", "null", '"', "\\ud800", ":", "../", "é"]]
    pieces += ["&a ", "\x00", "\n", "!!python/object/apply:os.system [id]", "<<: *x"]
    for _ in range(rng.randrange(2, 9)):
        text[rng.randrange(len(text))] = rng.choice(pieces)
    return "".join(text)


def test_malformed_problems_are_answered_a_quarter_of_two_hundred_a_day(client: Any) -> None:
    refused = 0
    for seed in daily(range(200), 4):
        found = compared(client, malformed(seed))
        mistakes = [line for one in of_kind(found, "mistakes") for line in one]
        refused += bool(mistakes)
        assert found[-1] == ("end", True)
        assert of_kind(found, "failed") == [] and of_kind(found, "late") == [], malformed(seed)
        assert mistakes or of_kind(found, "row"), malformed(seed)
        assert all(line.startswith("problem: ") and "\n" not in line and len(line) < 700 for line in mistakes), mistakes
        assert "Traceback" not in json.dumps(found)
    assert refused > 15
