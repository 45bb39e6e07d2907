"""Every partition format: random plans written and read back, files that say the same, refusals that name the format."""

from __future__ import annotations

import json
import shlex
import sys
import types
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from pipesched.errors import BadInput
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.problem.placement import Placement, bidirectional, explicit, interleaved, linear, v_shape, wave
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.megatron_layout import layout_mistakes, layout_text, read_layout
from runtime.partitions.staged_model import StageCounts, StagedModel, staged
from tests.support.in_turn import in_turn

FORMATS = list(PARTITION_FORMATS)
WAYS = (RecomputeMode("full", Fraction(1), Fraction(1, 10)), RecomputeMode("selective", Fraction(1, 8), Fraction(1, 2)))
MICROBATCHES = 12


def layer(name: str, count: int = 1) -> LayerType:
    return LayerType(name, Fraction(1), Fraction(2), count, recompute=WAYS)


def model_of(*layers: tuple[str, int]) -> Model:
    return Model(tuple(layer(name, count) for name, count in layers if count))


def plan(
    model: Model, counts: Sequence[int], placement: Placement, *recompute: Sequence[Recomputed], schedule: str = "1f1b"
) -> StagedModel:
    partition = Partition(tuple(counts), tuple(map(tuple, recompute)))
    return staged(model, partition, placement, MICROBATCHES, schedule)


def random_plan(rng: Random, recompute: bool = False, equal: bool = False) -> StagedModel:
    """Embedding, dense, MoE and MTP layers and a head, some not listed, on any placement of one chain; mostly with
    equal stages in a V if `equal`."""
    devices = rng.randint(2, 5)
    if equal and rng.random() < 0.8:
        return equal_stages(rng, devices, recompute)
    placement = rng.choice(
        [linear(devices)] * 2 + [interleaved(devices, rng.randint(2, 3)), v_shape(devices), wave(devices, 3)]
    )
    model = model_of(
        ("embedding", rng.randint(0, 1)),
        ("dense", rng.randint(0, 4)),
        ("moe", rng.randint(placement.stages, 3 * placement.stages)),
        ("mtp", rng.choice([0, 0, 0, 1, 2])),
        ("head", rng.randint(0, 1)),
    )
    cuts = sorted(rng.sample(range(1, len(model.sequence)), placement.stages - 1))
    counts = [b - a for a, b in zip([0, *cuts], [*cuts, len(model.sequence)], strict=True)]
    held = Partition(tuple(counts)).layers_of(model)
    kind = rng.choice(["some", "some", "equal", "all"]) if recompute else "none"
    number = rng.randint(1, 3)
    chosen = []
    for stage in held:
        names = [one.name for one in stage if one.name in ("dense", "moe") or (kind == "all" and one.name == "mtp")]
        take = {"none": 0, "some": rng.randint(0, len(names)), "equal": min(number, len(names)), "all": len(names)}[
            kind
        ]
        chosen.append([Recomputed(name, "full", names[:take].count(name)) for name in dict.fromkeys(names[:take])])
    return plan(model, counts, placement, *chosen)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_is_written_is_read_back(form: PartitionFormat) -> None:
    rng = Random(form.name)
    written = 0
    for _ in range(150):
        model = replace(random_plan(rng, equal=form.limits.equal_stages), trains=not form.limits.forwards_only)
        try:
            settings = form.write(model)
        except BadInput as refusal:
            assert len(refusal.mistakes) == 1 and refusal.mistakes[0].startswith(f"{form.name}: not supported: ")
            continue
        written += 1
        main = settings.values[form.main]
        layers = model.layers + (model.mtp if form.name == "mindformers" else 0)
        read = form.read(main if isinstance(main, str) else json.dumps(main), model.devices, layers)
        if form.name == "flagscale":
            assert yaml.safe_load(settings.text)["model"].get("mtp_num_layers", 0) == model.mtp
        if form.name in ("mindspeed", "mindspeed-dualpipev", "flagscale"):  # their lists say nothing of MTP
            assert read == tuple(one._replace(mtp=0) for one in model.counts)
        elif form.name == "mindformers":  # it counts MTP as layers
            assert read == tuple(one._replace(layers=one.layers + one.mtp, mtp=0) for one in model.counts)
        else:
            assert read == model.counts
    assert written > 20


def equal_stages(rng: Random, devices: int, recompute: bool) -> StagedModel:
    """As many MoE layers on every stage of a V, MTP with the head, and all of them recomputed or none."""
    share, ends = rng.randint(1, 3), [rng.randint(0, 1) for _ in range(2)]
    mtp = rng.choice([0, 0, 1])
    model = model_of(("embedding", ends[0]), ("moe", 2 * devices * share), ("mtp", mtp), ("head", ends[1]))
    counts = [share] * (2 * devices)
    counts[0] += ends[0]
    counts[-1] += mtp + ends[1]
    rows = [[Recomputed("moe", "full", share)] for _ in counts] if recompute and rng.randint(0, 1) else []
    if rows and mtp:
        rows[-1].append(Recomputed("mtp", "full", mtp))
    return plan(model, counts, v_shape(devices), *rows, schedule="dualpipe-v")


def flags_of(text: str) -> dict[str, str]:
    """The value of each flag, empty for a flag without one."""
    words = shlex.split(text, comments=True)
    return {
        word.removeprefix("--"): "" if following.startswith("--") else following
        for word, following in zip(words, [*words[1:], "--"], strict=True)
        if word.startswith("--")
    }


def run_module(text: str, **modules: dict[str, Any]) -> dict[str, Any]:
    """The names of a written Python file, the modules it imports replaced by these."""
    made = {name.replace("__", "."): types.ModuleType(name) for name in modules}
    for module, names in zip(made.values(), modules.values(), strict=True):
        vars(module).update(names)
    space: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in made.items():
            patch.setitem(sys.modules, name, module)
        exec(compile(text, "written.py", "exec"), space)
        if "arguments" in space:
            space["arguments"] = space["arguments"]()
    return space


def recomputed_by_the_runtime(name: str, settings: PartitionSettings, model: StagedModel) -> list[int]:
    """Transformer and MTP layers recomputed on every stage, as the runtime reads the written file."""
    held, stages = [one.layers for one in model.counts], range(len(model.stages))
    mtp = [one.mtp for one in model.counts]
    hybrid = name.startswith("megatron-hybrid")
    if hybrid or name in ("megatron", "megatron-order", "mindspeed", "mindspeed-dualpipev"):
        flags = flags_of(settings.text)
        if "recompute-granularity" not in flags:
            return [0 for _ in stages]
        number = int(flags["recompute-num-layers"])
        if flags["recompute-method"] == "uniform":
            # Each layer for itself; of a pattern, which has two letters for a layer, two.
            assert number == (2 if hybrid else 1)
            return [held[at] + mtp[at] for at in stages]
        return [min(number, held[at]) for at in stages]
    if name == "megatron-hook":
        return recomputed_by_the_hook(settings.text, model)
    if name == "flagscale":
        table = yaml.safe_load(settings.text)["system"].get("recompute", {})
        rows = table.get("recompute_num_layers_per_stage_micro_batch", [[len(held), MICROBATCHES, 0]])
        assert all(sum(row[1::2]) == MICROBATCHES for row in rows)
        return [row[2] for row in rows for _ in range(row[0])]
    if name == "mindformers":
        table = yaml.safe_load(settings.text).get("recompute_config", {"recompute": [[0] * len(held)]})
        return [min(one, held[at] + mtp[at]) for at, one in enumerate(chain.from_iterable(table["recompute"]))]
    if name == "colossalai":
        names = {"PipelineGradientCheckpointConfig": lambda num_ckpt_layers_per_stage: num_ckpt_layers_per_stage}
        given = run_module(settings.text, colossalai__shardformer=names, colossalai={})["arguments"]
        assert given["num_layers_per_stage"] == held
        return list(given.get("gradient_checkpoint_config", [0] * len(held)))
    every = any("Every layer is recomputed" in note for note in settings.notes)
    return [held[at] + mtp[at] if every else 0 for at in stages]


def recomputed_by_the_hook(text: str, model: StagedModel) -> list[int]:
    """Built with the hook as Megatron builds its blocks: the configuration that every rank shares among its chunks."""

    class Block:
        def __init__(self, config: types.SimpleNamespace, spec: str, vp_stage: int | None = None) -> None:
            self.config = config

    rank, chunks = 0, len(model.stages) // model.devices
    state = types.SimpleNamespace(get_pipeline_model_parallel_rank=lambda: rank)
    run_module(
        text,
        megatron={},
        megatron__core={"parallel_state": state},
        megatron__core__transformer={},
        megatron__core__transformer__transformer_block={"TransformerBlock": Block},
    )
    flags = flags_of("\n".join(line[2:] for line in text.splitlines() if line.startswith("# --")))
    config = types.SimpleNamespace(recompute_num_layers=int(flags.get("recompute-num-layers", "0")))
    found = {}
    for rank in range(model.devices):
        for chunk in range(chunks):
            block = Block(config=config, spec="", vp_stage=chunk if chunks > 1 else None)
            found[chunk * model.devices + rank] = block.config.recompute_num_layers
    held = [one.layers for one in model.counts]
    return [min(found[at], held[at]) for at in range(len(held))]


@pytest.mark.parametrize(
    "form", [form for form in FORMATS if not form.limits.forwards_only], ids=lambda form: form.name
)
def test_recomputation_is_that_of_the_plan_or_refused(form: PartitionFormat) -> None:
    rng = Random(form.name)
    written = 0
    for _ in range(120):
        model = random_plan(rng, recompute=True, equal=form.limits.equal_stages)
        try:
            settings = form.write(model)
        except BadInput as refusal:
            assert refusal.mistakes[0].startswith(f"{form.name}: not supported: ")
            continue
        wanted = [sum(run.recomputed.get("full", 0) for run in stage.runs) for stage in model.stages]
        assert recomputed_by_the_runtime(form.name, settings, model) == wanted
        written += any(wanted)
    assert written > 5


def test_a_layout_means_what_megatron_says() -> None:
    """The example of its documentation, and forms that its two substitutions unroll."""
    counts = read_layout("Et*3|(tt|)*29,m|L")
    assert [tuple(one) for one in counts] == [(1, 3, 0, 0), *[(0, 2, 0, 0)] * 29, (0, 0, 1, 0), (0, 0, 0, 1)]
    assert layout_mistakes(counts, 16, 61) == []
    assert layout_text(counts) == "Ettt|(tt|)*29m|L"
    assert read_layout("E(t|)*2L") == read_layout("Et|t|L")
    assert read_layout("(|tt)*2,L")[0] == StageCounts(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("layout", "devices", "layers", "mistakes"),
    [
        ("Ett|tt", 2, 4, 1),  # no loss
        ("tt|ttL", 2, 4, 1),  # no embedding
        ("Ett|t|tL", 2, 4, 1),  # three stages on two devices
        ("Ett|ttL", 2, 5, 1),  # a layer too few
        ("Ett|m|tt|L", 2, 4, 2),  # MTP before layers, and not on the last chunk
        ("Ett|tt|m|L", 2, 4, 1),  # MTP on device 0
        ("Ettt|tm|m|L", 4, 4, 1),  # MTP on two stages
    ],
)
def test_rules_of_megatron(layout: str, devices: int, layers: int, mistakes: int) -> None:
    with pytest.raises(BadInput) as refusal:
        PARTITION_FORMATS["megatron"].read(layout, devices, layers)
    assert len(refusal.value.mistakes) == mistakes


@pytest.mark.parametrize("layout", ["Ex|tL", "E((t)*2|)*2L", "Et*|L", "t*999999999", "E|Lt", ""])
def test_what_is_no_layout_is_refused(layout: str) -> None:
    with pytest.raises(BadInput):
        PARTITION_FORMATS["megatron"].read(layout, 2, 2)


IN_A_V = {"torchtitan", "megatron-order", "megatron-hybrid-order", "mindspeed-dualpipev"}
REFUSED = {
    "two chains": (plan(model_of(("moe", 4)), (2, 2), bidirectional(2)), set(PARTITION_FORMATS.names())),
    "out of order": (plan(model_of(("moe", 4)), (2, 2), explicit(2, [1, 0])), set(PARTITION_FORMATS.names())),
    "a V": (plan(model_of(("moe", 8)), (2, 2, 2, 2), v_shape(2)), set(PARTITION_FORMATS.names()) - IN_A_V),
    "recomputed head": (
        plan(model_of(("moe", 4), ("head", 1)), (2, 3), linear(2), [], [Recomputed("head", "full", 1)]),
        set(PARTITION_FORMATS.names()),
    ),
    "the last layers recomputed": (
        plan(model_of(("dense", 2), ("moe", 4)), (4, 2), linear(2), [Recomputed("moe", "full", 2)], []),
        set(PARTITION_FORMATS.names()),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_setting_can_say_is_refused(case: str) -> None:
    model, refusing = REFUSED[case]
    found = set()
    for form in FORMATS:
        try:
            form.write(model)
        except BadInput as refusal:
            assert len(refusal.mistakes) == 1
            found.add(form.name)
    assert found == refusing


def test_layers_in_an_order_that_no_runtime_knows_are_named() -> None:
    with pytest.raises(BadInput) as refusal:
        plan(model_of(("moe", 1), ("embedding", 1), ("head", 1), ("mtp", 1), ("dense", 1)), (2, 3), linear(2))
    assert len(refusal.value.mistakes) == 3


def test_selective_recomputation_of_every_layer() -> None:
    every = [[Recomputed("moe", "selective", 2)]] * 2
    settings = PARTITION_FORMATS["megatron"].write(plan(model_of(("moe", 4)), (2, 2), linear(2), *every))
    assert flags_of(settings.text)["recompute-granularity"] == "selective"
    with pytest.raises(BadInput):
        PARTITION_FORMATS["flagscale"].write(plan(model_of(("moe", 4)), (2, 2), linear(2), *every))


def test_one_device_is_singular() -> None:
    one = plan(model_of(("embedding", 1), ("dense", 4), ("head", 1)), (6,), linear(1))
    first = PARTITION_FORMATS["megatron"].write(one).text.splitlines()[0]
    assert "1 stage on 1 device, " in first


def test_deepspeed_module_cuts_where_the_plan_does() -> None:
    """The written class in a PipelineModule that knows its rank only."""

    class PipelineModule:
        def __init__(self, stage: int, stages: int, layers: int) -> None:
            self.global_rank, self._layer_specs = stage, [None] * layers
            self._topo = types.SimpleNamespace(
                get_dim=lambda _: stages, get_coord=lambda rank: types.SimpleNamespace(pipe=rank)
            )

        def _set_bounds(self, start: int, stop: int) -> None:
            self.bounds = start, stop

    model = plan(model_of(("embedding", 1), ("dense", 5), ("head", 1)), (3, 2, 2), linear(3))
    text = PARTITION_FORMATS["deepspeed"].write(model).text
    made = run_module(text, deepspeed={}, deepspeed__pipe={"PipelineModule": PipelineModule})["PlannedPipelineModule"]
    bounds = []
    for stage in range(3):
        module = made(stage, 3, 7)
        module._partition_layers()
        bounds.append(module.bounds)
    assert bounds == [(0, 3), (3, 5), (5, 7)]
    with pytest.raises(ValueError, match="7 layers"):
        made(0, 3, 8)._partition_layers()


def titan_config(**parallelism: object) -> types.SimpleNamespace:
    selective = type("Config", (), {"__qualname__": "SelectiveAC.Config"})()
    return types.SimpleNamespace(
        parallelism=types.SimpleNamespace(**parallelism),
        training=types.SimpleNamespace(local_batch_size=8, disable_cuda_graphs=False),
        activation_checkpoint=selective,
        loss=types.SimpleNamespace(num_chunks=8, loss_fn="cross entropy"),
    )


def test_torchtitan_configuration(tmp_path: Path) -> None:
    model = plan(model_of(("moe", 6)), (2, 1, 2, 1), v_shape(2), schedule="zbv")
    apply = run_module(PARTITION_FORMATS["torchtitan"].write(model).text)["apply"]
    csv = tmp_path / "x.csv"
    csv.write_text("0F0,3F0,3B0,0I0,0W0\n1F0,2F0,2I0,1B0,2W0\n")
    config = apply(titan_config(pipeline_parallel_microbatch_size=3), csv=str(csv))
    chosen = config.parallelism
    assert (chosen.pipeline_parallel_degree, chosen.pipeline_parallel_schedule) == (2, "ZBVZeroBubble")
    assert chosen.pipeline_parallel_schedule_csv == str(csv)
    assert chosen.module_fqns_per_model_part[3] == ["layers.5", "norm", "lm_head"]
    assert chosen.pipeline_parallel_microbatch_size == 3
    assert config.training.local_batch_size == 3 * model.microbatches
    assert config.training.disable_cuda_graphs
    # Stage 3 is not split there, others are: the chunks of the loss stay, selective checkpointing does not.
    assert (config.activation_checkpoint, config.loss.num_chunks) == (None, 8)
    own = apply(titan_config(num_pp_microbatches=1))
    assert own.parallelism.num_pp_microbatches == model.microbatches
    assert own.loss == "cross entropy"  # its own order of a V splits all backwards


@in_turn(
    ("name", "text"),
    [
        ("torchtitan", '[["tok_embeddings", "layers.0"], ["layers.2", "norm", "lm_head"]]'),
        ("torchtitan", '[["tok_embeddings", "layers.0", "layers.1", "norm", "lm_head"], []]'),
        ("deepspeed", "[0, 3, 2]"),
        ("deepspeed", "[0, 1, 2, 4]"),
        ("flagscale", "[1, 2]"),
        ("colossalai", "[1, 1.5]"),
        ("colossalai", "1, two"),
        ("vllm", "1,1,0"),  # get_pp_indices: as many as ranks, and all hidden layers
        ("vllm", "1,2"),
        ("sglang", "1,x"),
        ("mindspeed", "[[1],[1,1]]"),
        ("mindspeed", "[[1]*99999999]"),
        ("mindspeed-dualpipev", "1,1"),
        ("mindspeed-dualpipev", "0"),
        ("mindspeed-dualpipev", "7"),
        ("mindspeed", "[[1]]*99999"),
        ("mindformers", "[[1, 0]]"),
        ("mindformers", "[[-2, 2]]"),
    ],
)
def test_settings_that_the_runtime_would_refuse(name: str, text: str) -> None:
    with pytest.raises(BadInput) as refusal:
        PARTITION_FORMATS[name].read(text, 2, 2)
    assert all(mistake.startswith(name) for mistake in refusal.value.mistakes)


@pytest.mark.parametrize(("name", "variable"), [("vllm", "VLLM_"), ("sglang", "SGLANG_")])
def test_engines_of_inference_take_a_variable(name: str, variable: str) -> None:
    trained = plan(model_of(("embedding", 1), ("moe", 5), ("head", 1)), (3, 4), linear(2))
    with pytest.raises(BadInput, match=f"^{name}: not supported: layers with a backward; it runs forwards alone"):
        PARTITION_FORMATS[name].write(trained)
    model = replace(trained, trains=False)
    settings = PARTITION_FORMATS[name].write(model)
    assert settings.text.splitlines()[-1] == f"export {variable}PP_LAYER_PARTITION=2,3"
    assert all(line.startswith(("#", "export")) for line in settings.text.splitlines()) and settings.notes == ()
    alone = plan(model_of(("embedding", 1), ("moe", 3)), (1, 3), linear(2))
    without = PARTITION_FORMATS[name].write(replace(alone, trains=False))
    assert without.values == {f"{name}-pp-layer-partition": "0,3"} and len(without.notes) == 1


def test_a_list_of_deepspeed_begins_with_0() -> None:
    with pytest.raises(BadInput, match=r"found \[1, 3\], which begins with 1; allowed: 0, then where each device ends"):
        PARTITION_FORMATS["deepspeed"].read("1,3", 2, 2)
