"""Formats of products by part of a model: their rates, what is kept and exchanged, and what a file may say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.activations import layer_activation
from pipesched.layers.derived.exchange import expert_seconds
from pipesched.layers.derived.kernels import layer_traffic
from pipesched.layers.derived.mixer import Mixing
from pipesched.layers.derived.mixer_kinds import MixerSizes, mixer_of
from pipesched.layers.derived.operations import head_products, layer_products, mtp_products
from pipesched.layers.derived.parameters import layer_parameters, state_bytes
from pipesched.layers.derived.precision import ENDS, FORMATS, MTP, PARTS, PRECISIONS, Formats
from pipesched.layers.derived.shape import (
    Attention,
    Experts,
    Hardware,
    LatentAttention,
    LayerKind,
    Lora,
    Parallel,
    Shape,
    Training,
)
from pipesched.layers.layer import LayerType

EXPERTS = Experts(64, 4, 1, 512, latent=256)
SHAPE = Shape(6, 1024, 2048, Attention(16, 4, 64), 4096, 2, EXPERTS, mtp_layers=1)
DENSE, MOE = LayerKind(False), LayerKind(True)


def _training(**parts: str) -> Training:
    formats = Formats({part: FORMATS[name] for part, name in parts.items()})
    return Training(2048, precision=PRECISIONS["nvfp4"], formats=formats)


def _formats(training: Training, kind: LayerKind) -> list[str]:
    """The names of the formats of a layer's products, in their order."""
    names = {own: name for name, own in FORMATS.items() if name != "fp16"}
    return [names[one.format] for one in layer_products(SHAPE, training, Parallel(), kind)]


def test_each_part_has_its_own_format_and_router_and_head_are_kept() -> None:
    usual = "nvfp4"
    # Queries and keys, output; router, to experts' latent, up, down, back; shared experts up and down.
    assert _formats(_training(), MOE) == [usual] * 2 + ["bf16"] + [usual] * 6
    assert _formats(_training(attention="bf16"), MOE) == ["bf16"] * 3 + [usual] * 6
    assert _formats(_training(latents="mxfp8"), MOE)[2:7] == ["bf16", "mxfp8", usual, usual, "mxfp8"]
    assert _formats(_training(experts="fp8"), MOE)[4:] == ["fp8", "fp8", usual, usual, usual]
    assert _formats(_training(shared_experts="fp8", router="fp8"), MOE)[2::5] == ["fp8", "fp8"]
    assert _formats(_training(mlp="bf16"), DENSE) == [usual] * 2 + ["bf16"] * 2
    assert head_products(SHAPE, _training(), Parallel())[0].format == FORMATS["bf16"]
    assert head_products(SHAPE, _training(head="fp8"), Parallel())[0].format == FORMATS["fp8"]
    # In 16 bits nothing is kept that is not so already, and 32 bits stay as they are.
    for dtype in ("fp16", "fp32"):
        training = Training(2048, precision=PRECISIONS[dtype])
        assert {one.format for one in layer_products(SHAPE, training, Parallel(), MOE)} == {FORMATS[dtype]}


def test_formats_of_layers_at_both_ends_and_of_prediction() -> None:
    training = _training(mtp="fp8", attention="mxfp8")
    assert {*_formats(training, MOE._replace(within=ENDS))} == {"bf16"}
    assert {*_formats(training, MOE._replace(within=MTP))} == {"fp8"}
    *layer, projection, head = mtp_products(SHAPE, training, Parallel())
    assert {one.format for one in (*layer, projection)} == {FORMATS["fp8"]} and head.format == FORMATS["bf16"]
    assert _formats(_training(attention="mxfp8"), MOE._replace(within=MTP))[:3] == ["mxfp8", "mxfp8", "bf16"]


def test_last_product_of_a_mixer_has_the_format_of_the_others_unless_it_is_given() -> None:
    mixer = mixer_of("mamba2", MixerSizes(1024, 32, 8, 128, 64, 4, 128, 64, True))
    shape, kind = replace(SHAPE, mixing=Mixing(mixer)), LayerKind(False, attends=False, mixes=True, block=False)

    def formats(**parts: str) -> list[Any]:
        return [one.format for one in layer_products(shape, _training(**parts), Parallel(), kind)]

    own, eight, kept = (FORMATS[name] for name in ("nvfp4", "mxfp8", "bf16"))
    assert formats() == [own, own] and formats(mixer="bf16") == [kept, kept]
    assert formats(mixer_output="mxfp8") == [own, eight]
    assert formats(mixer="bf16", mixer_output="mxfp8") == [kept, eight]


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        # A token's numbers that the products read: of attention its input, and that of the output; of experts, their
        # latents and what each of four gives its second product; of latents the input (its own copy, as nothing else of
        # the block reads it so) and none of the way back.
        ("attention", 1024 + 1024), ("experts", 4 * (256 + 512)), ("shared_experts", 1024 + 512),
    ],
)  # fmt: skip
def test_inputs_of_products_are_kept_in_their_format(part: str, numbers: int) -> None:
    """In 16 bits the router's copy of the block's input serves the shared experts, too."""
    usual, wide = (
        layer_activation(SHAPE, own, Parallel(), MOE).total for own in (_training(), _training(**{part: "bf16"}))
    )
    more = Fraction(2) - FORMATS["nvfp4"].operand
    # Latents read the block's input in 4 bits all the same.
    saved = 1024 * 2 if part == "shared_experts" else 0
    assert (wide - usual) / 2048 == numbers * more - saved + (
        0 if part != "shared_experts" else 1024 * FORMATS["nvfp4"].operand
    )


def test_a_block_keeps_its_input_once_for_each_format_that_reads_it() -> None:
    def kept(**parts: str) -> Fraction:
        return layer_activation(SHAPE, _training(**parts), Parallel(), MOE).total / 2048 / 1024

    four, eight = FORMATS["nvfp4"].operand, FORMATS["mxfp8"].operand
    assert kept(latents="bf16", router="bf16") - kept(latents="bf16") == 0
    assert kept(latents="mxfp8") - kept() == eight
    assert kept(router="nvfp4") - kept() == -2
    assert kept(router="nvfp4", latents="mxfp8") - kept(router="nvfp4") == eight
    assert four < eight < 2


def test_conversion_dispatch_and_rates_follow_the_format() -> None:
    hardware = Hardware(4e14, Fraction(80 * 2**30), 4e10, expert=5e10, node=8, expert_in_node=3e11, once_a_node=True,
                        flops_8bit=8e14, flops_4bit=16e14)  # fmt: skip
    rates = [hardware.product_rate(FORMATS[name]) for name in ("bf16", "fp8", "mxfp8", "nvfp4")]
    assert rates == [4e14, 8e14, 8e14, 16e14]
    assert replace(hardware, flops_4bit=None).product_rate(FORMATS["nvfp4"]) == 4e14

    def traffic(kind: LayerKind, **parts: str) -> float:
        return layer_traffic(SHAPE, _training(**parts), Parallel(), kind) / 2048

    # A number that a product of NVFP4 reads takes 6 bytes to convert; grouped experts' take 20.
    assert traffic(DENSE) - traffic(DENSE, attention="bf16") == 1024 * 6
    assert traffic(DENSE) - traffic(DENSE, mlp="bf16") == (1024 + 4096) * 6
    assert traffic(MOE) - traffic(MOE, latents="bf16") == 1024 * 6 == traffic(MOE) - traffic(MOE, shared_experts="bf16")
    assert traffic(MOE) - traffic(MOE, experts="bf16") == 4 * (256 + 512) * 20
    assert traffic(MOE) > traffic(MOE._replace(within=ENDS))

    def exchanged(within: str = "", **parts: str) -> float:
        return expert_seconds(SHAPE, _training(**parts), Parallel(expert=64, data=64), hardware, within)

    four = float(FORMATS["nvfp4"].operand)
    assert exchanged(experts="bf16") / exchanged() == pytest.approx(2 / (1 + four / 2))
    assert exchanged(ENDS) == exchanged(MTP, mtp="bf16") == exchanged(experts="bf16")


_MODEL: dict[str, Any] = {
    "layers": 6, "hidden": 1024, "vocabulary": 2048, "ffn": 4096, "sequence": 2048, "attention": {"heads": 16},
    "experts": {"number": 8, "per_token": 2, "ffn": 512}, "dense_layers": 2, "dtype": "fp8",
}  # fmt: skip
_HARDWARE = {"sustained_tflops": 100, "product_tflops": 200, "memory": 10, "pipeline_bandwidth": 10}


def _layers(hardware: dict[str, Any] | None = None, **more: Any) -> list[LayerType]:
    document = {"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": _HARDWARE | (hardware or {})}
    return [*plan_problem_from(document).model.layers]


def test_layers_at_both_ends_have_types_of_their_own() -> None:
    found = [(one.name, one.count) for one in _layers(precision={"first_layers": 1, "last_layers": 2})]
    between = [("dense-bf16", 1), ("dense", 1), ("moe", 2), ("moe-bf16", 2)]
    assert found == [("embedding", 1), *between, ("head", 1)]
    by_name = {one.name: one for one in _layers(precision={"first_layers": 1, "last_layers": 2})}
    wide = {one.name: one for one in _layers(dtype="bf16")}
    assert by_name["dense-bf16"].forward == wide["dense"].forward > by_name["dense"].forward
    assert by_name["moe-bf16"].activation == wide["moe"].activation > by_name["moe"].activation
    # All, none, and formats of 16 bits alone.
    assert [one.name for one in _layers(precision={"first_layers": 2, "last_layers": 4})][1:-1] == [
        "dense-bf16",
        "moe-bf16",
    ]
    assert [one.name for one in _layers(dtype="bf16", precision={"last_layers": 2})][1:-1] == ["dense", "moe"]
    names = [one.name for one in _layers(dtype="bf16", precision={"last_layers": 2, "mlp": "fp8"})]
    assert names[1:-1] == ["dense", "moe", "moe-bf16"]


def test_frozen_names_are_those_of_layers_in_any_format() -> None:
    found = {one.name: one for one in _layers(frozen=["embedding", "dense", "moe"], precision={"last_layers": 2})}
    assert found["moe-bf16"].weight == 0 and found["moe"].weight == 0


def test_weights_of_parts_in_16_bits_are_kept_whole() -> None:
    """A byte more each than the others, of which `weight_bytes: 1` keeps one; router and head in any case."""
    by_name = [
        {one.name: one for one in _layers(weight_bytes=1, precision=own)} for own in (None, {"attention": "bf16"})
    ]
    more = 4 * 1024**2 / 2**30
    for name in ("dense", "moe"):
        assert float(by_name[1][name].memory - by_name[0][name].memory) == pytest.approx(more, abs=2e-4)
    found = {one.name: one for one in _layers(weight_bytes=1, precision={"last_layers": 1})}
    every = 4 * 1024**2 + 8 * 3 * 1024 * 512
    assert float(found["moe-bf16"].memory - found["moe"].memory) == pytest.approx(every / 2**30, abs=2e-4)


def test_tensor_parallel_devices_have_all_of_products_that_are_not_divided() -> None:
    """Down projections of latent attention, routers, and low-rank gates of Kimi's delta attention."""
    bf16, two = PRECISIONS["bf16"], Parallel(tensor=2)
    latent = replace(SHAPE, attention=LatentAttention(16, 512, 256, 64, 32, 64), experts=replace(EXPERTS, latent=None))
    down, router = 1024 * (512 + 256 + 32), 1024 * 64
    own = layer_parameters(latent, MOE)
    divided = own.shared - down - router
    assert own.whole == down + router
    each = (6 + Fraction(12, 2)) * own.experts
    assert state_bytes(own, two, bf16) == 18 * (Fraction(divided, 2) + down + router + own.norms) + each
    gates = mixer_of("kimi_delta", MixerSizes(1024, 16, 16, 64, 64, 4, 64, 32, True))
    kind = LayerKind(False, attends=False, mixes=True, block=False)
    assert layer_parameters(replace(SHAPE, mixing=Mixing(gates)), kind).whole == 1024 * 2 * 32


def test_a_frozen_mixer_keeps_no_input_of_its_products() -> None:
    """Adapters are on attention's products, never on a mixer's."""
    mixer = mixer_of("mamba2", MixerSizes(1024, 32, 8, 128, 64, 4, 128, 64, True))
    shape, kind = replace(SHAPE, mixing=Mixing(mixer)), LayerKind(False, attends=False, mixes=True, block=False)
    usual, adapted = (
        layer_activation(shape, Training(2048, lora=lora), Parallel(), kind).total / 2048 for lora in (None, Lora(8))
    )
    assert usual - adapted == 2 * (1024 + mixer.output)
    assert adapted == 2 * (1024 + mixer.kept)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"precision": {"mlp": "fp32"}},
         "model.precision.mlp: found fp32 with dtype fp8; allowed: bf16, fp16, fp8, mxfp8, nvfp4"),
        ({"dtype": "fp32", "precision": {"head": "bf16"}},
         "model.precision.head: found bf16 with dtype fp32; allowed: fp32"),
        ({"precision": {"mixer": "bf16"}},
         "model.precision.mixer: found in a model without it; allowed: attention, mlp, experts, router, head"),
        ({"precision": {"first_layers": 3, "last_layers": 4}},
         "model.precision.last_layers: found 7 with first_layers; allowed: up to the 6 layers"),
        ({"precision": {"first_layers": 7}},
         "model.precision.first_layers: found 7; allowed: up to the 6 layers"),
        ({"precision": {"first_layers": 0, "last_layers": 8}},
         "model.precision.last_layers: found 8; allowed: up to the 6 layers"),
        ({"dtype": "fp32", "precision": {"first_layers": 2}},
         "model.precision.first_layers: found 2 with dtype fp32; allowed: 0, as all layers stay in 32 bits"),
        ({"dense_layers": 0, "precision": {"mlp": "bf16"}},
         "model.precision.mlp: found in a model without it; allowed: attention, experts, router, head"),
        ({"dense_layers": 6, "precision": {"experts": "bf16"}},
         "model.precision.experts: found in a model without it; allowed: attention, mlp, head"),
        ({"precision": {"mlp": "mxfp8", "first_layers": 2}},
         "model.precision.mlp: found mxfp8, but all its layers are those of first_layers; allowed: without it"),
        ({"dense_layers": 6, "mtp_layers": 1, "precision": {"experts": "mxfp8", "mtp": "fp8", "last_layers": 1}},
         "model.precision.experts: found mxfp8, but all its layers are those of last_layers, mtp; allowed: without it"),
        ({"precision": {"attention": "fp12"}}, "model.precision.attention: found 'fp12'; allowed: bf16, "),
        ({"precision": {"attn": "bf16"}}, "model.precision.attn: unknown key"),
    ],
)  # fmt: skip
def test_precisions_that_make_no_sense(model: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as error:
        _layers(**model)
    assert error.value.mistakes[0].startswith(f"plan: {message}")


def test_formats_that_agree_with_what_the_layers_have_are_accepted() -> None:
    """At both ends in 16 bits, in prediction in its format, and experts of prediction alone."""
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"mlp": "bf16", "first_layers": 2}, {}),
        ({"mlp": "mxfp8", "first_layers": 1}, {}),
        ({"experts": "mxfp8", "mtp": "mxfp8"}, {"dense_layers": 6, "mtp_layers": 1}),
        ({"experts": "mxfp8"}, {"dense_layers": 6, "mtp_layers": 1}),
    ]
    for precision, more in cases:
        assert _layers(precision=precision, **more)


def test_a_note_says_that_formats_change_nothing() -> None:
    def notes(**more: Any) -> list[str]:
        document = {"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": _HARDWARE}
        return [*plan_problem_from(document).notes]

    line = "model.precision: changes nothing: with dtype {} all products have these formats anyway"
    assert notes(dtype="bf16", precision={"last_layers": 2, "mlp": "bf16"}) == [line.format("bf16")]
    assert notes(precision={"head": "bf16", "mlp": "fp8"}) == [line.format("fp8")]
    assert (
        notes(precision={"last_layers": 1}) == notes(precision={"mlp": "bf16"}) == notes() == notes(precision={}) == []
    )


def test_a_head_in_fewer_bits_converts_what_its_products_read() -> None:
    """Hidden states in the forward, and gradients of logits in the backward; it keeps its input in that format."""
    rates = {"product_tflops": 100}  # as in 16 bits, so that conversion alone differs
    for name, more in (("head", {}), ("mtp", {"mtp_layers": 1})):

        def own(of: str, layer: str = name, settings: dict[str, Any] = more) -> LayerType:
            hardware = {"memory_bandwidth": 1000} | rates
            found = _layers(hardware, precision={"head": of}, **settings)
            return next(one for one in found if one.name == layer)

        kept, narrow = own("bf16"), own("fp8")
        there = 2048 * 1024 * 6 / 1e12 * 1e3  # 2,048 tokens, 6 bytes a number
        assert float(narrow.forward - kept.forward) == pytest.approx(there, abs=6e-4)
        assert float(narrow.backward - kept.backward) == pytest.approx(2 * there, abs=1.1e-3)
        assert float(kept.activation - narrow.activation) * 2**30 == pytest.approx(2048 * 1024, rel=1e-2)


def test_attention_and_mixer_side_by_side_read_their_input_once_for_each_format() -> None:
    mixer = mixer_of("mamba2", MixerSizes(1024, 32, 8, 128, 64, 4, 128, 64, True))
    shape, kind = replace(SHAPE, mixing=Mixing(mixer, both=True)), LayerKind(False, mixes=True)

    def moved(**parts: str) -> float:
        return layer_traffic(shape, _training(**parts), Parallel(), kind) / 2048 / 1024

    def kept(**parts: str) -> Fraction:
        own = _training(mixer_output="nvfp4", **parts)
        return layer_activation(shape, own, Parallel(), kind).total / 2048 / 1024

    four, eight = FORMATS["nvfp4"].operand, FORMATS["mxfp8"].operand
    assert moved() - moved(mixer="bf16") == moved() - moved(attention="bf16") == 0
    assert moved(mixer="bf16", attention="bf16") == moved() - 6
    assert moved(mixer="mxfp8") - moved() == 4
    assert kept(mixer="mxfp8") - kept() == eight
    assert kept(mixer="bf16") - kept() == 2
    # Attention's output reads as many numbers, in its format.
    assert kept(attention="mxfp8") - kept() == eight + (eight - four)


def test_an_assumption_says_that_fused_experts_without_a_gate_were_no_faster() -> None:
    def said(**more: Any) -> bool:
        document = {"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": _HARDWARE}
        return any("fused_experts" in one for one in plan_problem_from(document).assumptions)

    assert said(gated=False, fused_experts=True)
    assert not said(fused_experts=True) and not said(gated=False)
    assert not said(gated=False, fused_experts=True, experts=None, dense_layers=None)


def test_rates_of_parts_in_other_formats() -> None:
    """Without a rate of their own they run at that of 16 bits; a part of `dtype`'s bits at that of `dtype`."""

    def dense(hardware: dict[str, Any] | None = None, **precision: str) -> Fraction:
        return next(one.forward for one in _layers(hardware, precision=precision) if one.name == "dense")

    assert dense(mlp="mxfp8") == dense() < dense(mlp="bf16") == dense(mlp="nvfp4")
    assert dense({"product_tflops_4bit": 400}, mlp="nvfp4") < dense()
    assert dense({"product_tflops_8bit": 400}) < dense()


def test_assumptions_say_which_products_run_at_another_rate() -> None:
    def said(**more: Any) -> list[str]:
        hardware = _HARDWARE | {"product_tflops_4bit": 400}
        document = {"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": hardware}
        found = plan_problem_from(document).assumptions
        return [one.removeprefix("computation: products in ") for one in found if "products in " in one]

    assert said() == ["16 bits 100 TFLOP/s: router, head"]
    assert said(precision={"router": "mxfp8", "mlp": "bf16", "first_layers": 1, "last_layers": 2}) == [
        "16 bits 100 TFLOP/s: mlp, head, all of the first layer, all of the last 2 layers"
    ]
    assert said(precision={"experts": "nvfp4"}, mtp_layers=1) == [
        "4 bits 400 TFLOP/s: experts",
        "16 bits 100 TFLOP/s: router, head",
    ]
    assert said(precision={"mtp": "bf16"}, mtp_layers=1) == ["16 bits 100 TFLOP/s: router, mtp, head"]
    assert said(dtype="bf16", precision={"last_layers": 2}) == []
    assert said(experts=None, dense_layers=None) == ["16 bits 100 TFLOP/s: head"]


def test_all_parts_are_known_by_a_model() -> None:
    """Each changes something in a model that has everything."""
    model: dict[str, Any] = {
        "pattern": "M*-E", "layers": 4, "mtp_layers": 1, "dense_layers": None,
        "mixer": {"kind": "mamba2", "heads": 32, "key_size": 64, "value_size": 64},
        "experts": {"number": 8, "per_token": 2, "ffn": 512, "shared": 1, "latent": 256},
    }  # fmt: skip
    usual = _layers(**model)
    for part in PARTS:
        own = "fp8" if part in ("router", "head") else "bf16"
        assert _layers(precision={part: own}, **model) != usual, part
