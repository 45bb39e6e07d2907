"""What runtimes refuse is never planned for them, nor written: one refused case for each rule, as docs/settings.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.shape import Parallel, Sharding
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.training_step import TrainingStep
from pipesched.schedule.microbatch_groups import group_of, group_sizes, is_taken, order_of
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from runtime.partitions.staged_model import StagedModel, staged
from tests.support.in_turn import in_turn

INTERLEAVED = Choice("interleaved", 2)

# Engines that serve run no plan of layers with a backward.
_OF_TRAINING = [
    form for form in PARTITION_FORMATS if "linear" in form.limits.placements and not form.limits.forwards_only
]


def layer(name: str, count: int = 1, **more: Any) -> dict[str, Any]:
    ways = [{"name": way, "time": 1, "keeps": 0.5} for way in more.pop("ways", [])]
    return {"name": name, "count": count, "forward": 1, "backward": 2, "activation": 1, "recompute": ways} | more


def problem(layers: list[dict[str, Any]], devices: int = 4, microbatches: int = 8, **more: Any) -> PlanProblem:
    document = {"devices": devices, "microbatches": microbatches, "layers": layers}
    return plan_problem_from(document | {"placement": ["linear", "interleaved"]} | more)


def model(
    plan: PlanProblem, *counts: int, schedule: str | None = None, again: list[Recomputed] | None = None
) -> StagedModel:
    """The last stage recomputes `again`."""
    recompute = (*((),) * (len(counts) - 1), tuple(again)) if again else ()
    choice = INTERLEAVED if len(counts) > plan.cluster.devices else Choice("linear", 1)
    placement = choice.on(plan.cluster.devices)
    return staged(plan.model, Partition(counts, recompute), placement, plan.microbatches, schedule)


def flags(form: str, one: StagedModel) -> str:
    return PARTITION_FORMATS[form].write(one).text


@pytest.mark.parametrize("form", ["megatron", "megatron-hook", "mindspeed"])
def test_fewer_microbatches_than_devices_have_one_chunk(form: str) -> None:
    plan = problem([layer("moe", 8)], microbatches=3)
    left, _ = restricted(plan, form, PARTITION_FORMATS[form].limits)
    assert left.choices == (Choice("linear", 1),)
    only = problem([layer("moe", 8)], microbatches=3, placement="interleaved", chunks=2)
    with pytest.raises(BadInput, match="fewer micro-batches than devices, 3 on 4"):
        restricted(only, form, PARTITION_FORMATS[form].limits)
    with pytest.raises(BadInput, match="3 micro-batches on 4 devices"):
        flags(form, model(plan, *[1] * 8))


def test_33_microbatches_on_16_devices_run_in_groups_of_17_and_8_in_none() -> None:
    """As Megatron has it: groups of 16 leave one, groups of 17 leave 16."""
    assert not is_taken(33, 16, 16) and group_sizes(33, 16) == [17, 33] and group_sizes(8, 16) == []
    assert group_sizes(16, 4) == [4, 6, 8, 16]
    assert [order_of(16, 4, group) for group in (4, 6)] == ["interleaved-1f1b", "interleaved-1f1b:6"]


@in_turn("form", ["megatron", "megatron-hook", "mindspeed"])
@in_turn("m", range(1, 20))
def test_orders_planned_are_groups_that_megatron_takes(form: str, m: int) -> None:
    """Every number of micro-batches on four devices; the flag says the group."""
    plan = problem([layer("moe", 8)], microbatches=m)
    left, _ = restricted(plan, form, PARTITION_FORMATS[form].limits)
    groups = [group_of(name, m, 4) for name in left.schedules if name != "1f1b"]
    assert None not in groups and len(set(groups)) == len(groups)
    # Its two errors, in its own words: the size is in [PP, M], and the remainder 0 or at least PP.
    assert all(4 <= (group or 0) <= m and (m % (group or 1) == 0 or m % (group or 1) >= 4) for group in groups)
    assert (INTERLEAVED in left.choices) is (m >= 4)
    for name, group in zip([name for name in left.schedules if name != "1f1b"], groups, strict=True):
        text = flags(form, model(plan, *[1] * 8, schedule=name))
        assert f"--microbatch-group-size-per-virtual-pipeline-stage {group}\n" in text


@pytest.mark.parametrize("name", ["interleaved-1f1b:5", "interleaved-1f1b:3", "interleaved-1f1b:17"])
def test_a_group_that_megatron_refuses_is_not_written(name: str) -> None:
    plan = problem([layer("moe", 8)], microbatches=16)
    with pytest.raises(BadInput, match="not supported"):
        flags("megatron", model(plan, *[1] * 8, schedule=name))
    with pytest.raises(BadInput, match="found schedule"):
        restricted(
            problem([layer("moe", 8)], microbatches=16, schedule=name), "megatron", PARTITION_FORMATS["megatron"].limits
        )


def test_equal_groups_that_are_not_megatrons_are_refused() -> None:
    """13 micro-batches on 4 devices: groups of 5, 4, 4 are no remainder of anything."""
    plan = problem([layer("moe", 8)], microbatches=13)
    left, _ = restricted(plan, "megatron", PARTITION_FORMATS["megatron"].limits)
    assert left.schedules == ("1f1b", "interleaved-1f1b:7", "interleaved-1f1b:13")
    with pytest.raises(BadInput, match="not supported: interleaved-1f1b of 13 micro-batches"):
        flags("megatron", model(plan, *[1] * 8, schedule="interleaved-1f1b"))


@pytest.mark.parametrize("form", ["colossalai", "mindformers"])
def test_no_fewer_microbatches_than_devices(form: str) -> None:
    plan = problem([layer("moe", 8)], microbatches=3)
    with pytest.raises(BadInput, match="found 3 micro-batches; allowed: at least one for each of the 4 devices"):
        restricted(plan, form, PARTITION_FORMATS[form].limits)
    with pytest.raises(BadInput, match="3 micro-batches on 4 devices"):
        flags(form, model(plan, 2, 2, 2, 2, schedule="1f1b"))


def test_modules_are_named_to_megatron() -> None:
    plan = problem([layer("dense", ways=["core_attn"]), layer("moe", 7, ways=["moe_act+core_attn", "moe_act"])])
    every = tuple(
        (
            *([Recomputed("dense", "core_attn", 1)] if at == 0 else []),
            Recomputed("moe", "moe_act+core_attn", 1 + (at > 0)),
        )
        for at in range(4)
    )
    one = staged(plan.model, Partition((2, 2, 2, 2), every), Choice("linear", 1).on(4), 8, "1f1b")
    assert "--recompute-granularity selective\n--recompute-modules core_attn moe_act\n" in flags("megatron", one)
    assert "needs --moe-grouped-gemm" in " ".join(PARTITION_FORMATS["megatron"].write(one).notes)
    # A list of modules is one for all layers that have them.
    some = staged(plan.model, Partition((2, 2, 2, 2), (*every[:3], ())), Choice("linear", 1).on(4), 8, "1f1b")
    with pytest.raises(BadInput, match="--recompute-modules is one list for all layers"):
        flags("megatron", some)


def test_a_way_that_a_runtime_cannot_be_told_is_named_and_not_dropped_in_silence() -> None:
    plan = problem([layer("moe", 8, ways=["full", "moe_act", "own_kernel"])])
    left, words = restricted(plan, "megatron", PARTITION_FORMATS["megatron"].limits)
    assert [way.name for way in left.model.layers[0].recompute] == ["full", "moe_act"]
    assert any("no recomputation in the way own_kernel" in word for word in words)
    _, words = restricted(plan, "flagscale", PARTITION_FORMATS["flagscale"].limits)
    assert any("no recomputation in the way moe_act, own_kernel (it knows full)" in word for word in words)


HYBRID = [layer("embedding"), layer("mamba", 3), layer("attention"), layer("mlp", 2), layer("mamba", 2), layer("head")]


def test_hybrid_models_have_a_pattern_and_no_layout() -> None:
    plan = problem(HYBRID)
    settings = PARTITION_FORMATS["megatron"].write(model(plan, 3, 3, 2, 2, schedule="1f1b"))
    assert settings.values == {"megatron-hybrid-layer-pattern": "MM|M*-|-M|M"}
    words = given(settings.text).split()
    assert "--hybrid-layer-pattern" in words
    assert not {"--pipeline-model-parallel-layout", "--num-layers"} & set(words)
    read = PARTITION_FORMATS["megatron"].read("MM|M*-|-M|M", 4, 8)
    assert [one.layers for one in read] == [2, 3, 2, 1]


def test_a_layer_that_the_pattern_has_no_letter_for_is_refused() -> None:
    plan = problem([*HYBRID[:-1], layer("dense"), HYBRID[-1]])
    limits = PARTITION_FORMATS["megatron"].limits
    with pytest.raises(BadInput, match="found dense in a hybrid model"):
        restricted(plan, "megatron", limits)
    with pytest.raises(BadInput, match="not supported: found dense in a hybrid model"):
        flags("megatron", model(plan, 3, 3, 2, 3, schedule="1f1b"))


@pytest.mark.parametrize(("kinds", "last"), [((), "*-"), (("moe",), "*E"), (("mla", "moe"), "+E")])
def test_a_pattern_ends_with_multi_token_prediction(kinds: tuple[str, ...], last: str) -> None:
    plan = problem([*HYBRID[:-1], *map(layer, kinds), layer("mtp", 2), HYBRID[-1]])
    form, most = PARTITION_FORMATS["megatron"], len(plan.model.sequence)
    one = model(plan, 3, 3, 2, most - 8, schedule="1f1b")
    pattern = form.write(one).values["megatron-hybrid-layer-pattern"]
    assert pattern.endswith(f"/{last}/{last}")
    assert form.read(pattern, 4, one.layers) == one.counts
    left, words = restricted(plan, "megatron", form.limits)
    assert any("on the last stage" in word for word in words)
    # No cut is left between them and the head.
    assert left.model.cuts[-2] < len(left.model.sequence) - 2
    with pytest.raises(BadInput, match="a multi-token prediction layer on stage 2; a pattern ends with them"):
        form.write(model(plan, 3, 3, most - 7, 1, schedule="1f1b"))


def test_the_hook_is_for_transformer_layers_alone() -> None:
    with pytest.raises(BadInput, match="found a hybrid model"):
        restricted(problem(HYBRID), "megatron-hook", PARTITION_FORMATS["megatron-hook"].limits)
    with pytest.raises(BadInput, match="not supported: hybrid models"):
        flags("megatron-hook", model(problem(HYBRID), 3, 3, 2, 2, schedule="1f1b"))


def test_a_plain_transformer_has_a_pattern_of_two_letters_a_layer() -> None:
    plan = problem([layer("embedding"), layer("dense", 3), layer("moe", 4), layer("mtp", 2), layer("head")])
    form = PARTITION_FORMATS["megatron-hybrid"]
    one = model(plan, 3, 2, 2, 4, schedule="1f1b")
    settings = form.write(one)
    assert settings.values == {"megatron-transformer-pattern": "*-*-|*-*E|*E*E|*E/*E/*E"}
    assert form.read("*-*-|*-*E|*E*E|*E/*E/*E", 4, 7) == one.counts
    words = given(settings.text).split()
    assert not {"--pipeline-model-parallel-layout", "--num-layers", "--mtp-num-layers"} & set(words)
    assert "--pipeline-model-parallel-layout" in to_be_left_out(settings.text)
    step = TrainingStep(4096, 1, Parallel(), {}, Fraction(1), 8, latent_attention=True)
    assert "--hybrid-layer-pattern '+-+-|+-+E|+E+E|+E/+E/+E'" in form.write(replace(one, step=step)).text
    with pytest.raises(BadInput, match="a hybrid model of its own"):
        form.write(model(problem(HYBRID), 3, 3, 2, 2, schedule="1f1b"))
    for text in ("*-|*-|*-|*-M", "*-|*-|*-", "*-|*-|*-|*-*-", "*-*-|*-|*-|*-*E*E*E/*E/*-", "-*|*-|*-|*-"):
        with pytest.raises(BadInput, match=r"^megatron-hybrid: found"):
            form.read(text, 4, 7)


@pytest.mark.parametrize(("mixer", "letter"), [("Mamba 2", "M"), ("gated delta net", "G")])
def test_a_mixer_in_place_of_attention_has_its_letter(mixer: str, letter: str) -> None:
    kinds = [layer("dense-linear", 3), layer("moe-linear", 3), layer("moe", 1), layer("mtp", 1)]
    one = model(problem([layer("embedding"), *kinds, layer("head")]), 3, 2, 2, 3, schedule="1f1b")
    step = TrainingStep(4096, 1, Parallel(), {}, Fraction(1), 8, mixer=mixer)
    form = PARTITION_FORMATS["megatron-hybrid"]
    pattern = f"{letter}-{letter}-|{letter}-{letter}E|{letter}E{letter}E|*E/*E"
    assert form.write(replace(one, step=step)).values == {"megatron-transformer-pattern": pattern}
    assert form.read(pattern, 4, 7) == one.counts
    for unknown in (None, replace(step, mixer="lightning attention")):
        with pytest.raises(BadInput, match="megatron-hybrid: not supported: layers with"):
            form.write(replace(one, step=unknown))


def test_a_hybrid_model_in_an_order_of_its_own_may_have_its_stages_in_a_v() -> None:
    """The pattern lists the stages in stage order; flags are those of Megatron's own orders otherwise."""
    form, own = PARTITION_FORMATS["megatron-hybrid-order"], PARTITION_FORMATS["megatron-hybrid"]
    plan = problem([layer("embedding"), layer("dense", 3), layer("moe", 4), layer("head")])
    loop, in_v = (
        staged(plan.model, Partition((3, 2, 2, 2), ((),) * 4), Choice(placement, 2).on(2), 4)
        for placement in ("interleaved", "v-shape")
    )
    settings = form.write(in_v)
    assert settings.values == {"megatron-hybrid-order-pattern": "*-*-|*-*E|*E*E|*E"}
    assert form.read("*-*-|*-*E|*E*E|*E", 2, 7) == in_v.counts
    assert given(settings.text) == given(form.write(loop).text) == given(own.write(loop).text)
    assert "export --format megatron" in settings.notes[0]
    with pytest.raises(BadInput, match="not supported: stages on devices 0, 1, 1, 0"):
        own.write(in_v)
    with pytest.raises(BadInput, match=r"^megatron-hybrid-order: found"):
        form.read("*-|*-", 2, 7)
    more = problem([layer("embedding"), layer("dense", 6), layer("mtp"), layer("head")])
    mtp = staged(more.model, Partition((3, 2, 2, 2), ((),) * 4), Choice("v-shape", 2).on(2), 4)
    with pytest.raises(BadInput, match="multi-token prediction layers with stages in a V"):
        form.write(mtp)
    with pytest.raises(BadInput, match="a hybrid model of its own"):
        form.write(model(problem(HYBRID), 3, 3, 2, 2))


@pytest.mark.parametrize("text", ["MM|M*-|-M", "MM|M*-|-M|X", "MM|M*-|-M|MM"])
def test_patterns_that_megatron_refuses(text: str) -> None:
    with pytest.raises(BadInput):
        PARTITION_FORMATS["megatron"].read(text, 4, 8)


def test_no_flag_beside_a_layout_that_megatron_refuses_there() -> None:
    """validate_args takes a layout, or layers a virtual stage, or uneven first and last stages: one of them."""
    plan = problem([layer("embedding"), layer("moe", 7), layer("head")])
    text = flags("megatron", model(plan, 3, 2, 2, 2, schedule="1f1b"))
    beside = ("num-layers-per-virtual", "num-virtual-stages", "decoder-first", "decoder-last", "account-for")
    assert not any(flag in given(text) for flag in beside)


def test_what_the_file_says_of_training_is_in_the_settings_of_every_runtime() -> None:
    plan = problem([layer("moe", 8)])
    shared = Parallel(tensor=4, context=2, expert=8, data=3)
    one = replace(model(plan, 2, 2, 2, 2, schedule="1f1b"), step=TrainingStep(4096, 2, shared, {}, Fraction(1), 64))
    for form in _OF_TRAINING:
        assert form.write(one).text.splitlines()[1] == (
            "# for tensor 4 * context 2 * pipeline 4 * data 3 = 96 devices, expert 8 of these; micro-batches of 2 x 4096 "
            "tokens, 48 sequences a step"
        )
    expected = {
        "--tensor-model-parallel-size 4", "--sequence-parallel", "--context-parallel-size 2",
        "--expert-model-parallel-size 8", "--expert-tensor-parallel-size 1", "--use-distributed-optimizer",
        "--seq-length 4096", "--micro-batch-size 2", "--global-batch-size 48", "--pipeline-model-parallel-size 4",
    }  # fmt: skip
    for name in ("megatron", "megatron-order", "mindspeed"):
        assert expected <= set(flags(name, one).splitlines())
    assert expected <= {line.removeprefix("# ") for line in flags("megatron-hook", one).splitlines()}
    assert {"  tensor_model_parallel_size: 4", "  sequence_parallel: true", "  seq_length: 4096"} <= set(
        flags("flagscale", one).splitlines()
    )
    assert "  model_parallel: 4\n  context_parallel: 2\n  expert_parallel: 8\n" in flags("mindformers", one)
    assert "'tp_size': 4" in flags("colossalai", one) and "'ep_size': 8" in flags("colossalai", one)
    mesh = yaml.safe_load(flags("flagscale", one))["system"]["hetero"]["hetero_process_meshes"]
    assert mesh == [4, 2, 8, 3, 4]  # tensor, context, expert, data, pipeline: an order of FlagScale's own
    found = titan_config(flags("torchtitan", one), TitanRelease(), TitanReleaseSizes())
    assert (found.parallelism.tensor_parallel_degree, found.training.seq_len) == (4, 4096)
    assert (found.parallelism.expert_parallel_degree, found.training.local_batch_size) == (8, 16)
    found = titan_config(flags("torchtitan", one), TitanMain(), TitanMainSizes())
    assert found.training == TitanMainSizes(8192, -1, 4096)
    assert found.parallelism.num_pp_microbatches == 8


@dataclass(slots=True)
class TitanReleaseSizes:
    """The sizes in torchtitan 0.3.0's TrainingConfig; like that, it takes no other name."""

    local_batch_size: int = 8
    global_batch_size: int = 64
    seq_len: int = 2048


@dataclass(slots=True)
class TitanMainSizes:
    """Those in torchtitan's main of 2026-08-21."""

    num_tokens_per_microbatch_per_dp_rank: int = 16384
    num_tokens_per_train_step: int = 64
    max_context_length: int = 2048


@dataclass
class TitanRelease:
    pipeline_parallel_microbatch_size: int = 1


@dataclass
class TitanMain:
    num_pp_microbatches: int = 1


def titan_config(text: str, parallelism: Any, training: Any, **given: int) -> Any:
    """The configuration after the written module's `apply`."""
    made: dict[str, Any] = {}
    exec(text, made)
    return made["apply"](SimpleNamespace(parallelism=parallelism, training=training), **given)


def test_torchtitan_keeps_its_sequence_where_the_plan_says_nothing_of_it() -> None:
    text = flags("torchtitan", model(problem([layer("moe", 8)]), 2, 2, 2, 2, schedule="1f1b"))
    assert titan_config(text, TitanRelease(), TitanReleaseSizes()).training == TitanReleaseSizes(8)
    assert titan_config(text, TitanMain(), TitanMainSizes()).training == TitanMainSizes()
    assert titan_config(text, TitanRelease(), TitanReleaseSizes(), microbatch_size=3).training.local_batch_size == 24
    found = titan_config(text, TitanMain(), TitanMainSizes(), microbatch_size=3).training
    assert found.num_tokens_per_microbatch_per_dp_rank == 3 * 2048


def given(text: str) -> str:
    """A written file without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def to_be_left_out(text: str) -> set[str]:
    """The names that the head of a written file lists."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if "which contradict the plan:" in line)
    more = takewhile(lambda line: line.startswith("#   "), lines[first + 1 :])
    return set(" ".join([lines[first].partition("left out:")[2], *(line[4:] for line in more)]).split())


STAGE_FLAGS = {
    "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank",
    "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
}  # fmt: skip


def test_what_the_job_must_leave_out_is_listed_and_never_set_again() -> None:
    """A job's --recompute-activations stayed in force where the plan recomputes nothing; its virtual stages too."""
    measured = model(problem([layer("moe", 8)]), 2, 2, 2, 2, schedule="1f1b")
    ways = model(problem([layer("moe", 8, ways=["full"])]), 2, 2, 2, 2, schedule="1f1b")
    shared = Parallel(sharding=Sharding.NONE)
    step = replace(ways, step=TrainingStep(4096, 2, shared, {}, Fraction(1)))
    all_again = model(
        problem([layer("moe", 8, ways=["selective"])]), 2, 2, 2, 2, schedule="1f1b",
        again=[Recomputed("moe", "selective", 2)],
    )  # fmt: skip
    assert to_be_left_out(flags("megatron", measured)) == STAGE_FLAGS
    again = {"--recompute-activations", "--recompute-granularity", "--recompute-method", "--recompute-num-layers",
             "--recompute-modules", "--distribute-saved-activations", "--moe-layer-recompute"}  # fmt: skip
    for name in ("megatron", "megatron-hook", "megatron-order", "mindspeed"):
        found = to_be_left_out(flags(name, ways))
        assert again <= found and STAGE_FLAGS - {"--num-layers-per-virtual-pipeline-stage"} <= found
        assert to_be_left_out(flags(name, step)) > found | {"--sequence-parallel", "--use-distributed-optimizer"}
        text = flags(name, step)
        assert "--context-parallel-size 1" in text  # said although it is 1: a job's own would stay
        assert "The job's --max-position-embeddings is at least 4096." in text
        written = {line.split()[0] for line in text.replace("# --", "--").splitlines() if line.startswith("--")}
        assert "--seq-length" in written and not written & to_be_left_out(text)
    assert all_again.decides_recomputation
    keys = to_be_left_out(flags("flagscale", ways))
    assert {"num_layers_per_virtual_pipeline_stage", "recompute_granularity"} <= keys


def test_a_sequence_above_the_configuration_s_longest_is_allowed_for() -> None:
    one = model(problem([layer("moe", 8)]), 2, 2, 2, 2, schedule="1f1b")
    for longest, said in ((2048, True), (4096, False), (8192, False)):
        step = TrainingStep(4096, 2, Parallel(), {}, Fraction(1), longest=longest)
        for name in ("megatron", "megatron-order", "mindspeed"):
            text = flags(name, replace(one, step=step))
            assert ("--max-position-embeddings 4096" in text.splitlines()) is said
            assert "is at least" not in text
        found = yaml.safe_load(flags("flagscale", replace(one, step=step)))["model"]
        assert found.get("max_position_embeddings") == (4096 if said else None)


def test_torchtitan_checkpoints_what_the_plan_recomputes() -> None:
    """Its default, selective, stayed in force where the plan recomputes nothing."""
    plan = problem([layer("moe", 8, ways=["full"])])
    config = SimpleNamespace(activation_checkpoint="the job's")
    config.parallelism, config.training = TitanRelease(), TitanReleaseSizes()
    made: dict[str, Any] = {}
    exec(flags("torchtitan", model(plan, 2, 2, 2, 2)), made)
    assert made["apply"](config).activation_checkpoint is None
    config.activation_checkpoint = "the job's"
    exec(flags("torchtitan", model(problem([layer("moe", 8)]), 2, 2, 2, 2)), made)
    assert made["apply"](config).activation_checkpoint == "the job's"
    every = tuple((Recomputed("moe", "full", 2),) for _ in range(4))
    all_again = staged(plan.model, Partition((2, 2, 2, 2), every), Choice("linear", 1).on(4), 8)
    assert "config.activation_checkpoint = FullAC.Config()" in flags("torchtitan", all_again)


def test_flagscale_is_told_of_one_mesh_of_all_devices() -> None:
    """Its pre_validate_args wants five sizes a mesh, pipeline sizes that add up, and a name of devices for each mesh."""
    text = flags("flagscale", model(problem([layer("moe", 8)]), 2, 2, 2, 2, schedule="1f1b"))
    hetero = yaml.safe_load(text)["system"]["hetero"]
    assert hetero["hetero_process_meshes"] == [1, 1, 1, 1, 4] and "# assumed" in text
    assert [hetero["hetero_current_device_type"]] == hetero["hetero_device_types"]


def test_the_number_of_microbatches_is_said_to_every_runtime() -> None:
    plan = problem([layer("moe", 8)])
    one = model(plan, 2, 2, 2, 2, schedule="1f1b")
    for form in _OF_TRAINING:
        assert "8 micro-batches" in form.write(one).text.splitlines()[0]
    assert "micro_batch_num: 8" in flags("mindformers", one)
    assert "--global-batch-size is 8 times" in flags("megatron", one)
