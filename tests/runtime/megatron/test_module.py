"""What `export --format megatron` writes, without Megatron: the words of every rank, and one module with nothing of ours."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.problem.passes import B, W, parse_pass
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from tests.support.makers import problem, schedule

TIMES = {"forward": 2, "backward": 2, "weight": 1, "fused": 3, "transfer": 1}


def document_of(text: str) -> Any:
    (node,) = (n for n in ast.parse(text).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "DOCUMENT")
    return ast.literal_eval(node.value)


def published(**keys: Any) -> list[Timeline]:
    one = problem(4, 8, times=TIMES, **keys)
    found = []
    for heuristic in HEURISTICS:
        with suppress(DoesNotApply):
            if not heuristic.name.endswith("-cost-aware"):
                found.append(simulate(one, heuristic.order(one)))
    return found


def run(rows: list[list[str]]) -> None:
    """Every row to its end, where a send and its receive happen together, and a pass has what it needs."""
    done: set[str] = set()
    rows = [list(row) for row in rows]
    last = max(parse_pass(word).stage for row in rows for word in row if ":" not in word)

    def needed(word: str) -> bool:
        kind, stage, microbatch = parse_pass(word)
        before = f"F{stage - 1}.{microbatch}" if kind == "F" else f"B{stage + 1}.{microbatch}"
        return kind is W or (stage == (0 if kind == "F" else last)) or before in done

    while any(rows):
        heads = [(rank, row[0]) for rank, row in enumerate(rows) if row]
        ready = [(rank, word) for rank, word in heads if ":" not in word and needed(word)]
        if ready:
            rank, word = ready[0]
            done.add(word.replace("BW", "B"))
            rows[rank].pop(0)
            continue
        met = [
            (rank, int(word[4 : word.index(":")]))
            for rank, word in heads
            if word.startswith("send")
            and (int(word[4 : word.index(":")]), f"recv{rank}:{word.partition(':')[2]}") in heads
        ]
        assert met, f"nothing can happen: {heads}"
        for rank in met[0]:
            rows[rank].pop(0)


PLACED: list[dict[str, Any]] = [{}, {"placement": "interleaved", "chunks": 2}, {"placement": "v-shape"}]


@pytest.mark.parametrize("keys", PLACED, ids=["linear", "interleaved", "v-shape"])
def test_published_schedules_run_to_their_end_in_their_order(keys: dict[str, Any]) -> None:
    for timeline in published(**keys):
        document = document_of(EXPORTERS["megatron"].export(timeline)[".megatron.py"])
        rows = [row.split() for row in document["rows"]]
        run(rows)
        for device, row in enumerate(rows):
            passes = [parse_pass(word) for word in row if ":" not in word]
            planned = list(timeline.schedule.passes_on(device))
            assert [(p.kind, p.stage) for p in passes] == [(p.kind, p.stage) for p in planned]
            assert [p for p in passes if p.kind is not W] == [p for p in planned if p.kind is not W]
            for stage in timeline.problem.placement.stages_of[device]:
                backwards = [p.microbatch for p in passes if p.stage == stage and p.kind is B]
                assert [p.microbatch for p in passes if p.stage == stage and p.kind is W] == backwards
        assert document["rank_of_stage"] == list(timeline.problem.placement.stage_device)


def test_copies_stand_behind_what_they_wait_for_on_their_rank() -> None:
    """One thread that starts a row in its order never waits for what it starts later."""
    memory = {"activation": 4, "offload": {"out": 1, "in": 1, "on": ["d2h", "h2d"]}, "decide": {"offload": "free"}}
    one = problem(4, 8, times=TIMES, memory=memory)
    timeline = simulate(one, HEURISTICS["pipeoffload-full"].order(one))
    document = document_of(EXPORTERS["megatron"].export(timeline)[".megatron.py"])
    assert document["offloaded"] == [1.0] * 4
    copies = 0
    for row in document["rows"]:
        done = set[str]()
        for word in row.split():
            name, *waits = word.split("!")
            assert done.issuperset(waits), word
            copies += name.endswith(("@1", "@2"))
            done.add(name.partition("@")[0])
    with pytest.raises(BadInput, match=r"torch-csv: .*; chrome-trace, megatron, primus, program can express it"):
        EXPORTERS["torch-csv"].export(timeline)
    assert copies == 2 * sum(p.kind == "O" for p in timeline.schedule.passes()) > 0


def test_split_backwards_and_recomputation_are_noted() -> None:
    one = problem(4, 4, times=TIMES)
    (note,) = EXPORTERS["megatron"].warnings(simulate(one, HEURISTICS["zb-h1"].order(one)))
    assert "delay_transformer_engine()" in note
    assert not EXPORTERS["megatron"].warnings(simulate(one, HEURISTICS["1f1b"].order(one)))
    memory = {
        "activation": 4,
        "recompute": [{"name": "full", "time": 2, "keeps": 1}],
        "decide": {"recompute": "always"},
    }
    one = problem(4, 4, times=TIMES, memory=memory)
    timeline = simulate(one, HEURISTICS["uniform-recompute"].order(one))
    (note,) = EXPORTERS["megatron"].warnings(timeline)
    assert note.startswith("R runs the forward of the whole stage again")
    with pytest.raises(
        BadInput, match=r"deepspeed: .*neither copies nor recomputation; .*megatron, primus, program can express it"
    ):
        EXPORTERS["deepspeed"].export(timeline)


def test_the_module_needs_megatron_and_torch_alone() -> None:
    text = EXPORTERS["megatron"].export(published()[0])[".megatron.py"]
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - sys.stdlib_module_names == {"megatron", "torch"}
    defined = [n.name for n in ast.parse(text).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    assert len(defined) == len(set(defined)), "two sources of the module use one name"


@pytest.mark.parametrize(
    ("placement", "rows", "reason"),
    [
        ([0, 1, 0], ("F0.0 F2.0 BW2.0 BW0.0", "F1.0 BW1.0"), "found 2, 1 stages on the devices"),
        ("bidirectional", ("F0.0 F3.1 BW3.1 BW0.0", "F1.0 F2.1 BW1.0 BW2.1"), "several devices hold a stage"),
    ],
)
def test_what_megatron_has_no_ranks_for_is_refused(placement: Any, rows: tuple[str, ...], reason: str) -> None:
    one = problem(2, 2 if placement == "bidirectional" else 1, placement=placement, times=TIMES)
    with pytest.raises(BadInput, match=reason):
        EXPORTERS["megatron"].export(simulate(one, schedule(*rows)))
