"""Each runtime refuses, before a search, a hybrid model that it cannot build, or its settings have what builds it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.model_configs.megatron_arguments import from_megatron
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.mixer_kinds import KINDS
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.plan_limits import restricted
from runtime.partitions.plan_settings import notes_on, written
from runtime.partitions.staged_model import StagedModel, staged

NAMES = {
    "mamba1": "Mamba 1", "mamba2": "Mamba 2", "gated_delta": "gated delta net", "kimi_delta": "Kimi's delta attention",
    "lightning": "lightning attention",
}  # fmt: skip
SIZES = {"heads": 8, "key_size": 64}
EXPERTS = {"number": 8, "per_token": 2, "ffn": 512}
ANY_MODEL = {"deepspeed", "torchtitan", "vllm", "sglang"}


def document(model: dict[str, Any]) -> dict[str, Any]:
    whole = {
        "layers": 8, "hidden": 512, "vocabulary": 32000, "attention": {"heads": 8}, "ffn": 2048, "sequence": 1024,
    } | model  # fmt: skip
    return {
        "devices": 2, "microbatches": 4, "placement": ["linear", "v-shape"], "model": whole,
        "hardware": {"sustained_tflops": 500, "memory": 79, "pipeline_bandwidth": 40},
    }  # fmt: skip


def mixer(kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind} | SIZES | ({"rank": 32} if kind == "mamba1" else {}) | more


def _cases() -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    """Models, and of each the runtimes that build it with what their settings must contain."""
    cases: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}
    own = "--experimental-attention-variant gated_delta_net --linear-attention-freq '[1,1,1,0,1,1,1,0]'"
    for kind in KINDS:
        letter = {"mamba2": "M", "gated_delta": "G"}.get(kind)
        pairs = {} if letter is None else dict.fromkeys(
            ("megatron-hybrid", "megatron-hybrid-order"), f"{letter}-{letter}-{letter}-*-|{letter}-{letter}-{letter}-*-"
        )  # fmt: skip
        flags = dict.fromkeys(("megatron", "megatron-hook", "megatron-order"), own) if kind == "gated_delta" else {}
        cases[kind] = {"mixer": mixer(kind, attention_layers=4)}, pairs | flags
        cases[f"{kind} parallel"] = {"mixer": mixer(kind, parallel=True)}, {}
        if kind in ("mamba1", "mamba2", "gated_delta"):
            pattern = f"{letter or 'M'}-*E*E*E"
            builds = {"megatron": f"{pattern[:4]}|{pattern[4:]}"} if letter else {}
            cases[f"{kind} pattern"] = {"mixer": mixer(kind), "pattern": pattern, "experts": EXPERTS}, builds
    pattern = {"pattern": "*E*E*E*E", "experts": EXPERTS, "ffn": None}
    cases["pattern"] = pattern, {"megatron": "*E*E|*E*E"}
    cases["pattern of window"] = pattern | {"attention": {"heads": 8, "window": 128}}, {"megatron": "*E*E|*E*E"}
    kept = {"dtype": "fp8", "precision": {"last_layers": 3}}
    cases["pattern with layers in 16 bits"] = pattern | kept, {"megatron": "*E*E|*E*E"}
    cases["pattern of experts"] = pattern | {"pattern": "E" * 8}, {}
    return cases


CASES = _cases()


def _staged(plan: PlanProblem, form: PartitionFormat) -> StagedModel:
    """Two equal stages on two devices."""
    choice = Choice("linear", 1) if "linear" in form.limits.placements else Choice("v-shape", 2)
    placement = choice.on(2)
    stages = len(placement.chains[0])
    share = 8 // stages
    counts = (1 + share, *[share] * (stages - 2), len(plan.model.sequence) - 1 - share * (stages - 1))
    order = next(iter(form.limits.schedules), "1f1b")
    return replace(staged(plan.model, Partition(counts), placement, plan.microbatches, order), step=plan.step)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", list(PARTITION_FORMATS), ids=lambda form: form.name)
def test_a_hybrid_model_is_built_by_the_settings_or_refused_at_once(case: str, form: PartitionFormat) -> None:
    model, builds = CASES[case]
    plan = plan_problem_from(document(model))
    one = _staged(plan, form)
    named = NAMES[case.split(maxsplit=1)[0]] if "mixer" in model else "hybrid model|one part alone|experts alone"
    if form.name in ANY_MODEL:
        assert any("the model is the job's own" in note and re.search(named, note) for note in notes_on(form, plan))
        return
    if form.name in builds:
        restricted(plan, form.name, form.limits)
        assert builds[form.name] in " ".join(written(form, one).text.replace("#", "").split())
        return
    with pytest.raises(BadInput, match=rf"^--for {form.name}: found .*({named})"):
        restricted(plan, form.name, form.limits)
    with pytest.raises(BadInput, match=rf"^{form.name}: not supported: .*({named})"):
        written(form, one)


@pytest.mark.parametrize("form", list(PARTITION_FORMATS), ids=lambda form: form.name)
def test_listed_layers_with_a_mixer_of_no_known_kind(form: PartitionFormat) -> None:
    """Only settings that state the mixer need to know it."""
    forwards = {"backward": 0} if form.limits.forwards_only else {"backward": 1, "weight": 1}
    layers = [
        {"name": name, "count": count, "forward": 1} | forwards
        for name, count in (("embedding", 1), ("layer-linear", 8), ("head", 1))
    ]
    plan = plan_problem_from({"devices": 2, "microbatches": 4, "placement": ["linear", "v-shape"], "layers": layers})
    if not form.name.startswith("megatron-hybrid"):
        restricted(plan, form.name, form.limits)
        assert written(form, _staged(plan, form)).values
        return
    with pytest.raises(
        BadInput, match=rf"^--for {form.name}: found layers with a mixer of no known kind; allowed: Mam"
    ):
        restricted(plan, form.name, form.limits)
    with pytest.raises(BadInput, match=rf"^{form.name}: not supported: found layers with a mixer of no known kind"):
        written(form, _staged(plan, form))


def test_the_flags_of_gated_delta_nets_read_back_are_the_model_s_layers() -> None:
    form = PARTITION_FORMATS["megatron"]
    plan = plan_problem_from(document(CASES["gated_delta"][0]))
    words = shlex.split(written(form, _staged(plan, form)).text, comments=True)
    given = {
        name[2:].replace("-", "_"): value
        for name, value in pairwise(words)
        if name in ("--experimental-attention-variant", "--linear-attention-freq")
    }
    sizes = {
        "num_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "padded_vocab_size": 32000,
        "seq_length": 1024, "ffn_hidden_size": 2048,
    }  # fmt: skip
    assert from_megatron(sizes | given, "args.sh").model["mixer"]["attention_layers"] in (4, [3, 7])


@pytest.mark.parametrize("form", list(PARTITION_FORMATS), ids=lambda form: form.name)
def test_a_model_without_a_mixer_has_no_note(form: PartitionFormat) -> None:
    plan = plan_problem_from(document({}))
    assert not notes_on(form, plan)
    assert form.limits.forwards_only or written(form, _staged(plan, form)).values
