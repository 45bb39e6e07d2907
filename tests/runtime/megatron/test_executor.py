"""Exported orders in Megatron-Core itself, four processes on a CPU: every gradient is that of Megatron's own schedule."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.shared.file_arguments import write_schedule
from pipesched.files.schedule_file import ScheduleFile
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.megatron import program_document
from tests.support.daily import daily
from tests.support.makers import problem, random_order
from tests.support.own_session import waited_for
from tests.support.saving_orders import LOOP, MEMORY, RECOMPUTED, TIMELINES, named
from tests.support.torch_forks import fork

# It is imported by the processes alone, which takes long.
pytestmark = pytest.mark.skipif(find_spec("megatron") is None, reason="Megatron-Core is not installed")

ROOT = Path(__file__).resolve().parents[3]
_JOBS = """
import warnings
warnings.simplefilter("ignore")
from tests.support.megatron_jobs import main
main()
"""
LINEARS = [
    f"decoder.layers.0.{name}.weight"
    for name in ("self_attention.linear_proj", "self_attention.linear_qkv", "mlp.linear_fc1", "mlp.linear_fc2")
]


@dataclass
class Case:
    """A model and the timelines that it trains by.

    Gradients that are added up in Megatron's order are equal to the last bit; `rounded` are those that are not, which
    in float64 differ by its rounding, relative to each parameter. `as_files` installs schedule files instead of modules.
    `dropped` is a pass that is taken out of the exported module.
    """

    name: str
    timelines: list[Timeline]
    settings: dict[str, Any] = field(default_factory=dict)
    rounded: bool = False
    as_files: bool = False
    dropped: str = ""

    def document(self, folder: Path) -> dict[str, Any]:
        dtype = {"dtype": "float64"} if self.rounded else {}
        where = {"rank_of_stage": self.timelines[0].problem.placement.stage_device}
        schedules = [self._written(timeline, folder) for timeline in self.timelines]
        return {"name": self.name, "schedules": schedules} | where | dtype | self.settings

    def _written(self, timeline: Timeline, folder: Path) -> dict[str, Any]:
        path = folder / f"{self.name}-{timeline.problem.microbatches}"
        if self.as_files:
            path = path.with_suffix(".json")
            write_schedule(path, ScheduleFile(timeline))
        else:
            (text,) = EXPORTERS["megatron"].export(timeline).values()
            path = path.with_suffix(".py")
            path.write_text(text.replace(f"{self.dropped} ", "") if self.dropped else text)
        return {"path": str(path), "microbatches": timeline.problem.microbatches}


def mixed(microbatches: int, seed: int, devices: int = 4, **keys: Any) -> Timeline:
    """A random order, with full and split backwards; micro-batches overtake each other."""
    one = problem(devices, microbatches, times={"forward": 2, "backward": 2, "weight": 2, "fused": 4}, **keys)
    return simulate(one, random_order(one, Random(seed)))


HALF = MEMORY | {"offload": {"out": 1, "in": 1, "on": ["d2h", "h2d"], "amount": 2}}
# Megatron's own order takes six micro-batches on four ranks in one group only.
ONE_GROUP = {"chunks": 2, "config": {"microbatch_group_size_per_vp_stage": 6}}
OVERLAP = {"pp": 2, "steps": 2, "ddp": {"overlap_grad_reduce": True}}
GATHER = {"overlap_grad_reduce": True, "use_distributed_optimizer": True, "overlap_param_gather": True}
RECOMPUTE = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
EXPERTS = {"num_moe_experts": 2, "moe_router_topk": 2, "moe_aux_loss_coeff": 0.01, "add_bias_linear": False}
LAID_OUT = {"chunks": 2, "config": {"pipeline_model_parallel_layout": "Et|t|t|t|t|t|t|tL"}}
NO_LAYOUT = [{"microbatches": 8, "pipeline_model_parallel_layout": None}, {"microbatches": 8, "mtp_num_layers": 1}]
# Those with the same process groups together.
V_DATA = {"pp": 2, "ddp": GATHER, "chunks": 2, "config": {"pipeline_model_parallel_layout": "Et|t|t|tL"}}
IN_PATTERN = {"pattern": "*-|*-|*-|*|-|*-*-|*-|-", "chunks": 2}
WHOLE_LAYERS = IN_PATTERN | {"pattern": "*-|*-|*-|*-|*-|*-*-|*-|*-", "config": RECOMPUTE | {"recompute_num_layers": 2}}
ONE_MORE = {"pattern": "*-|*-|*-|*-/*-", "config": {"mtp_num_layers": 1}}
HYBRID_EXPERTS = OVERLAP | {"pattern": "*E|*E|*-|*E", "chunks": 2, "steps": 1, "ep": 2, "experts": 2, "config": EXPERTS}
EVERY_CASE = [
    Case("data parallel, tied, recomputed", [named("zb-h1", 2, 4)], OVERLAP | {"tied": True, "config": RECOMPUTE}),
    Case("data parallel, random", [mixed(4, 3, 2, **LOOP)], OVERLAP | {"chunks": 2, "anew": True}, rounded=True),
    Case("accumulation fused", [named("zb-h1", 2, 4)], OVERLAP | {"config": {"gradient_accumulation_fusion": True}}),
    Case("parameters gathered", [named("zb-h1", 2, 4)], {"pp": 2, "steps": 2, "ddp": GATHER, "anew": True}),
    Case(
        "gathered and reduced by functions",
        [named("interleaved-zb", 2, 4, **LOOP)],
        {"pp": 2, "steps": 2, "ddp": GATHER, "chunks": 2, "aligned": True, "anew": True},
    ),
    Case("experts", [named("zb-h1", 2, 4)], OVERLAP | {"ep": 2, "experts": 2, "config": EXPERTS}),
    Case("copies and recomputation, data parallel", [TIMELINES["mixed"]], OVERLAP),
    Case("tensor parallel", [named("zb-h1", 2, 4)], {"pp": 2, "tp": 2}),
    Case(
        "linear",
        [named("zb-h1", 4, 8), named("1f1b", 4, 5)],
        {"steps": 2, "evaluates": True, "refused": [{"microbatches": 6}]},
    ),
    Case("interleaved", [named("interleaved-zb", 4, 4, **LOOP)], {"chunks": 2, "evaluates": True}, as_files=True),
    Case("interleaved, random", [mixed(6, 2, **LOOP)], ONE_GROUP, rounded=True),
    Case("prediction of several tokens", [named("zb-h1", 4, 4)], {"config": {"mtp_num_layers": 1}}, rounded=True),
    Case("offloaded", [named("pipeoffload-full", 4, 4, memory=MEMORY)]),
    Case("half offloaded", [named("pipeoffload-half", 4, 4, memory=HALF, **LOOP)], {"chunks": 2}),
    Case("recomputed", [named("uniform-recompute", 4, 4, memory=RECOMPUTED)]),
    Case("without one W", [named("zb-h1", 4, 4)], dropped="W2.1"),
    Case(
        "V",
        [named("zbv", 4, 8, placement="v-shape"), named("v-half", 4, 4, placement="v-shape")],
        LAID_OUT | {"evaluates": True, "refused": NO_LAYOUT},
    ),
    Case("V, data parallel", [named("zbv", 2, 4, placement="v-shape")], V_DATA),
]
# Only where the Megatron installed has a HybridModel, as main of 2026-08 does and 0.16.1 does not.
HYBRID_CASES = [
    Case("hybrid, experts", [named("zbv", 2, 4, placement="v-shape")], HYBRID_EXPERTS),
    Case("hybrid, linear", [named("zb-h1", 4, 8)], {"pattern": "*-|*-*-|*-|-*-", "evaluates": True}),
    Case("hybrid, interleaved", [named("interleaved-zb", 4, 4, **LOOP)], IN_PATTERN),
    Case("hybrid, V", [named("zbv", 4, 8, placement="v-shape")], IN_PATTERN | {"refused": NO_LAYOUT[1:]}),
    Case("hybrid, V, recomputed", [named("zbv", 4, 8, placement="v-shape")], WHOLE_LAYERS),
    Case("hybrid, several tokens", [named("zb-h1", 4, 4)], ONE_MORE, rounded=True),
]


def has_hybrid() -> bool:
    """Whether the Megatron installed has a HybridModel; found without an import, which takes long."""
    found = find_spec("megatron")
    roots = () if found is None else found.submodule_search_locations or ()
    return any((Path(root) / "core/models/hybrid/hybrid_model.py").is_file() for root in roots)


# Those that tests name, and of the others a quarter a day.
NAMED = ("linear", "interleaved", "V", "offloaded", "half offloaded", "recomputed", "without one W")
OTHERS = daily([case for case in EVERY_CASE if case.name not in NAMED], 4)
CASES = [case for case in EVERY_CASE if case.name in NAMED or case in OTHERS] + (HYBRID_CASES if has_hybrid() else [])
WHOLE = [case for case in CASES if not case.dropped]


@cache
def results(folder: Path) -> list[dict[str, Any]]:
    """What each rank found, by the name of the case."""
    (folder / "cases.json").write_text(json.dumps([case.document(folder) for case in CASES]))
    words = ["megatron_jobs", str(folder / "cases.json"), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo"}
    code, errors = waited_for(fork(_JOBS, words, ROOT, environment))
    assert code == 0, errors
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]
    for rank in found:
        for case in rank.values():
            assert "error" not in case, case["error"]
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return results(tmp_path_factory.mktemp("megatron"))


def of(case: Case, found: list[dict[str, Any]]) -> list[tuple[int, Timeline, dict[str, Any]]]:
    """Pipeline rank, timeline and what was found, for each schedule of a case."""
    return [
        (cases[case.name]["rank"], timeline, one)
        for cases in found
        for timeline, one in zip(case.timelines, cases[case.name]["schedules"], strict=True)
    ]


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_every_gradient_and_loss_is_that_of_megatrons_own_schedule(case: Case, found: list[dict[str, Any]]) -> None:
    most = 1e-13 if case.rounded else 0.0
    for rank, _, one in of(case, found):
        assert one["parameters"] >= 10, rank
        assert len(one["unequal"]) == case.settings.get("steps", 1)
        for unequal in one["unequal"]:
            assert all(isinstance(far, float) and far <= most for far in unequal.values()), (rank, unequal)
        right, *losses = one["losses"]
        assert losses and all(found == right for found in losses), rank


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_the_executed_order_is_the_planned_one(case: Case, found: list[dict[str, Any]]) -> None:
    for rank, timeline, one in of(case, found):
        assert one["executed"] == program_document(timeline)["rows"][rank]


@pytest.mark.parametrize("name", ["linear", "interleaved", "V"])
def test_evaluation_gives_what_it_gave_before(name: str, found: list[dict[str, Any]]) -> None:
    """On a loop it is Megatron's own; on a V it is the forwards of the schedule."""
    for rank, timeline, one in of(next(case for case in CASES if case.name == name), found):
        before, after = one["evaluated"]
        assert before == after and len(after) == timeline.problem.microbatches, rank


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_every_stage_holds_its_layers(case: Case, found: list[dict[str, Any]]) -> None:
    for cases in found:
        placement, one = case.timelines[0].problem.placement, cases[case.name]
        stages = placement.stages_of[one["rank"]]
        assert one["layers"] == {str(stage): layers_of(case, stage) for stage in stages}


def layers_of(case: Case, stage: int) -> list[int]:
    """The numbers of a stage's layers, from 1: the letters of a pattern, else one layer a stage."""
    segments = case.settings.get("pattern", "").partition("/")[0].split("|")
    if len(segments) == 1:
        return [stage + 1]
    before = sum(map(len, segments[:stage]))
    return [before + 1 + at for at in range(len(segments[stage]))]


def test_copies_move_what_forwards_have_saved(found: list[dict[str, Any]]) -> None:
    """All but the last stage, which needs what it has saved at once, copies; half of it is less."""
    moved = {
        name: [cases[name]["schedules"][0]["moved"] for cases in found]
        for name in ("offloaded", "half offloaded", "recomputed")
    }
    assert min(moved["offloaded"][:3]) > 10_000 and moved["recomputed"] == [0] * 4
    assert 0 < moved["half offloaded"][1] < moved["offloaded"][1]


def test_a_weight_pass_left_out_is_seen(found: list[dict[str, Any]]) -> None:
    """The check of gradients sees it on the rank that lacks it, in all linears of its stage, and nowhere else."""
    for rank, _, one in of(next(case for case in CASES if case.dropped), found):
        wrong = set(one["unequal"][0])
        assert wrong == ({f"2.{name}" for name in LINEARS} if rank == 2 else set()), rank


def test_a_model_built_without_the_places_of_a_v_is_refused(found: list[dict[str, Any]]) -> None:
    for cases in found:
        without, mtp = cases["V"]["refusals"]
        assert "the stages of this schedule are not where Megatron puts them by itself" in without
        assert mtp == "pipesched: stages in places of their own were never run in Megatron with multi-token prediction"


def test_another_number_of_microbatches_is_refused(found: list[dict[str, Any]]) -> None:
    for cases in found:
        assert cases["linear"]["refusals"] == [
            "pipesched: found 6 micro-batches; schedules are installed for 5, 8: install one for each number that occurs"
        ]
