"""Layers derived from a plan file's keys `model` and `hardware`, and the checks of these two sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from pipesched.files.limits import MOST_LAYERS
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.plans.mixer_layers import mixing_mistakes, mixing_of, mixing_sizes
from pipesched.files.plans.model_schema import (
    AttentionSection,
    ExpertsSection,
    HardwareSection,
    ModelSection,
    ParallelSection,
)
from pipesched.files.plans.schema import PlanFile
from pipesched.files.schema_errors import shown_amount
from pipesched.layers.derived.data_links import ByNodes
from pipesched.layers.derived.derive import Derived, derive
from pipesched.layers.derived.precision import PRECISIONS, Precision
from pipesched.layers.derived.shape import (
    Attention,
    Experts,
    Hardware,
    LatentAttention,
    Loss,
    Parallel,
    Shape,
    Sharding,
    Training,
    Window,
)
from pipesched.layers.training_step import TrainingStep

_LATENT = ("kv_rank", "key_size", "rope_size", "value_size")
_GROUPED = ("kv_heads", "head_size", "gated", "normalized")


def derived_from(form: PlanFile) -> tuple[Derived, TrainingStep]:
    """Return the layers derived from `model` and `hardware`, and the training step around them.

    Both sections must be there, without mistakes.
    """
    model, hardware = form.model, form.hardware
    assert model and hardware and model.sequence
    shape, training = _shape(model), _training(form)
    shared = _parallel(model.parallel or ParallelSection.model_validate({}))
    device = replace(
        _hardware(hardware, shared, model.dtype),
        **{key: value for feature in PLAN_FEATURES for key, value in feature.hardware(form).items()},
    )
    derived = derive(shape, training, shared, device)
    experts = 0 if shape.experts is None else shape.experts.number
    step = TrainingStep(
        model.sequence,
        model.microbatch_size,
        shared,
        derived.reduction,
        derived.operations,
        experts,
        model.max_position_embeddings,
        isinstance(shape.attention, LatentAttention),
        derived.optimizer,
        hardware.name,
        _assumed(hardware, device.data),
        None if shape.mixing is None else shape.mixing.mixer.name,
        shape.mixing is not None and shape.mixing.both,
        bool(shape.pattern),
    )
    return replace(derived, assumptions=(*derived.assumptions, *_beyond(hardware, shared))), step


def shape_mistakes(form: PlanFile) -> list[str]:
    """Return a line for each mistake of features that shows in the shape of the file's model, which must be valid."""
    assert form.model
    shape, training = _shape(form.model), _training(form)
    return [line for feature in PLAN_FEATURES for line in feature.shape_mistakes(form, shape, training)]


def _shape(model: ModelSection) -> Shape:
    assert model.layers and model.hidden and model.vocabulary and model.attention and model.sequence
    dense = model.dense_layers
    if dense is None:
        dense = model.layers if model.experts is None else 0
    return Shape(
        model.layers,
        model.hidden,
        model.vocabulary,
        _attention(model.attention, model.hidden),
        model.ffn or 0,
        dense,
        _experts(model.experts),
        model.mtp_layers,
        model.gated,
        model.tied,
        model.experts_every,
        _window(model.attention, model.layers, model.sequence) if model.flash else None,
        None if model.mixer is None else mixing_of(model.mixer, model.hidden, model.layers),
        model.pattern or "",
    )


def _training(form: PlanFile) -> Training:
    model = form.model
    assert model and model.sequence
    return Training(
        model.sequence,
        model.microbatch_size,
        _precision(model),
        model.flash,
        model.dropout,
        model.weight_split,
        None if model.recompute is None else tuple(model.recompute),
        model.fused_norms,
        model.fused_activation,
        model.fused_accumulation,
        model.fused_experts,
        model.early_stop,
        Loss(model.loss),
        **{key: value for feature in PLAN_FEATURES for key, value in feature.training(form).items()},
    )


def _beyond(section: HardwareSection, parallel: Parallel) -> list[str]:
    """Return the assumption on gradients exchanged over more nodes than a table by nodes has; empty if it has them."""
    given = section.data_bandwidth
    if not isinstance(given, ByNodes) or parallel.data * parallel.context == 1:
        return []
    return given.beyond(parallel, section.node or 1)


def _assumed(section: HardwareSection, data: float | None) -> dict[str, float | str]:
    """Return the rates and settings that the file's section `hardware` gives itself, by key, in the units of the keys.

    Of a table by nodes it is the rate in use, given as `data` bytes a second.
    """
    given = {
        key: getattr(section, key) for key in type(section).model_fields if key in section.model_fields_set - {"name"}
    }
    if isinstance(section.data_bandwidth, ByNodes) and data is not None:
        given["data_bandwidth"] = round(data / 1e9, 3)
    return {key: value if isinstance(value, str) else float(value) for key, value in given.items() if value is not None}


def _precision(model: ModelSection) -> Precision:
    own = PRECISIONS[model.dtype]
    gradient, optimizer = model.gradient_bytes or own.gradient, model.optimizer_bytes or own.optimizer
    return own._replace(
        gradient=gradient,
        optimizer=optimizer,
        weight=model.weight_bytes,
        activation_input=model.activation_input_bytes,
        reduction=model.reduction_bytes,
    )


def _parallel(section: ParallelSection) -> Parallel:
    sharding = Sharding(section.sharding or (Sharding.OPTIMIZER if section.sharded_optimizer else Sharding.NONE))
    return Parallel(section.tensor, section.context, section.expert, section.data, sharding, section.sequence)


def _attention(section: AttentionSection, hidden: int) -> Attention | LatentAttention:
    assert section.heads
    if section.kv_rank is None:
        size = section.head_size or hidden // section.heads
        return Attention(section.heads, section.kv_heads or section.heads, size, section.gated, section.normalized)
    assert section.key_size and section.rope_size and section.value_size
    sizes = section.kv_rank, section.key_size, section.rope_size, section.value_size
    return LatentAttention(section.heads, section.query_rank, *sizes)


def _window(section: AttentionSection, layers: int, sequence: int) -> Window | None:
    """Return the window or chunk of attention.

    None where it is no shorter than the sequence, or all layers are full.
    """
    tokens, full = section.window or section.chunk, section.full_layers
    if tokens is None or tokens >= sequence:
        return None
    listed = full if isinstance(full, list) else [] if full is None else range(full - 1, layers, full)
    return None if len({*listed}) == layers else Window(tokens, frozenset(listed), section.chunk is not None)


def _experts(section: ExpertsSection | None) -> Experts | None:
    if section is None:
        return None
    assert section.number and section.per_token and section.ffn
    groups = section.groups, section.groups_per_token
    return Experts(
        section.number, section.per_token, section.shared, section.ffn, *groups,
        latent=section.latent, biased=section.biased, shared_gate=section.shared_gate,
    )  # fmt: skip


def _hardware(section: HardwareSection, parallel: Parallel, dtype: str) -> Hardware:
    assert section.sustained_tflops and section.memory is not None and section.pipeline_bandwidth

    def rate(number: Fraction | float | None, unit: float = 1e9) -> float | None:
        return None if number is None else float(number) * unit

    given = section.data_bandwidth
    assert section.node or not isinstance(given, ByNodes)
    data = given.of_stage(parallel, section.node or 1) if isinstance(given, ByNodes) else given
    bits = PRECISIONS[dtype].format.bits
    of_8_bits, of_4_bits = (
        rate(own or (section.product_tflops if bits == size else None), 1e12)
        for own, size in ((section.product_tflops_8bit, 8), (section.product_tflops_4bit, 4))
    )
    return Hardware(
        flops=float(section.sustained_tflops) * 1e12,
        memory=(section.memory - (section.reserved or 0)) * 2**30,
        pipeline=float(section.pipeline_bandwidth) * 1e9,
        tensor=rate(section.tensor_bandwidth),
        expert=rate(section.expert_bandwidth),
        hidden=float(section.hidden_share),
        data=rate(data),
        context=rate(section.context_bandwidth),
        flops_8bit=of_8_bits,
        flops_4bit=of_4_bits,
        attention_flops=rate(section.attention_tflops, 1e12),
        multiprocessors=section.multiprocessors,
        memory_rate=rate(section.memory_bandwidth),
        dense_launch=float(section.dense_launch) / 1000,
        moe_launch=float(section.moe_launch) / 1000,
        moe_wait=float(section.moe_wait) / 1000,
        node=section.node,
        expert_in_node=rate(section.expert_node_bandwidth),
        once_a_node=section.dispatch == "node",
        data_hidden=float(section.data_hidden_share),
        gather_hidden=rate(section.gather_hidden_share, 1),
        scan_flops=rate(section.scan_tflops, 1e12),
    )


def model_mistakes(model: ModelSection, hardware: HardwareSection | None) -> list[str]:
    """Return a line for each broken rule of the sections `model` and `hardware`; that the latter is None is one."""
    found = [*model.missing("model")]
    if hardware is None:
        found.append("hardware: missing; it is required with model")
    else:
        found += [*hardware.missing("hardware"), *_rates(hardware)]
    if model.attention is not None:
        found += [*_heads(model.attention, model.hidden), *_near(model.attention, model.layers)]
    found += [*_blocks(model), *mixing_mistakes(model)]
    parallel = model.parallel or ParallelSection.model_validate({})
    found += [*_sizes(model, parallel), *mixing_sizes(model, parallel)]
    return found + ([] if hardware is None else [*_links(parallel, hardware)])


def _rates(hardware: HardwareSection) -> Iterator[str]:
    for key in (name for name in HardwareSection.model_fields if name.endswith(("_tflops", "_bandwidth"))):
        if getattr(hardware, key) == 0:
            yield f"hardware.{key}: found 0; allowed: more than 0"
    if isinstance(hardware.data_bandwidth, ByNodes) and hardware.node is None:
        yield "hardware.node: missing; it is required with hardware.data_bandwidth by nodes"
    if hardware.memory is not None and (hardware.reserved or 0) > hardware.memory:
        found, allowed = shown_amount(hardware.reserved or Fraction(0), "GiB"), shown_amount(hardware.memory, "GiB")
        yield f"hardware.reserved: found {found}; allowed: at most the memory, {allowed}"


def _heads(attention: AttentionSection, hidden: int | None) -> list[str]:
    found = [*attention.missing("model.attention")]
    latent = [key for key in (*_LATENT, "query_rank") if getattr(attention, key) is not None]
    if latent:
        found += [
            f"model.attention.{key}: missing; it is required" for key in _LATENT if getattr(attention, key) is None
        ]
        found += [
            f"model.attention.{key}: found with {latent[0]}; allowed: without latent attention"
            for key in _GROUPED
            if getattr(attention, key) not in (None, False)
        ]
        return found
    heads = attention.heads
    if heads and hidden and attention.head_size is None and hidden % heads:
        found.append(f"model.attention.heads: found {heads}; allowed: a divisor of hidden {hidden}, or with head_size")
    if heads and attention.kv_heads and heads % attention.kv_heads:
        found.append(f"model.attention.kv_heads: found {attention.kv_heads}; allowed: a divisor of heads {heads}")
    return found


def _near(attention: AttentionSection, layers: int | None) -> Iterator[str]:
    """Yield mistakes of the keys of attention to near tokens.

    `layers` is the number of layers, None if not known.
    """
    full, place = attention.full_layers, "model.attention.full_layers"
    if attention.window and attention.chunk:
        yield f"model.attention.chunk: found {attention.chunk} with window; allowed: one of them"
    if full is not None and not (attention.window or attention.chunk):
        yield f"{place}: found without window or chunk; allowed: with one of them, else all layers are full"
    elif full == 0:
        yield f"{place}: found 0; allowed: a whole number of at least 1, or a list of layers"
    elif isinstance(full, list):
        if layers and max(full) >= layers:
            yield f"{place}: found layer {max(full)}; allowed: up to {layers - 1}, the last of the {layers} layers"
        if len({*full}) < len(full):
            twice = next(one for one in full if full.count(one) > 1)
            yield f"{place}: found layer {twice} twice; allowed: each layer once"


def _blocks(model: ModelSection) -> list[str]:
    """Return mistakes of feed-forward blocks and experts: keys without layers that use them, or layers without keys."""
    experts, dense = model.experts, model.dense_layers
    found: list[str] = []
    if experts is not None:
        found += experts.missing("model.experts")
        if experts.number and experts.per_token and experts.per_token > experts.number:
            found.append(f"model.experts.per_token: found {experts.per_token}; allowed: up to {experts.number}")
        if experts.shared_gate and not experts.shared:
            found.append(
                "model.experts.shared_gate: found without shared; allowed: with shared experts, which it weighs"
            )
        found += _groups(experts)
    if model.layers is not None and model.layers > MOST_LAYERS:
        found.append(f"model.layers: found {model.layers}; allowed: up to {MOST_LAYERS}")
    if model.layers is not None and dense is not None:
        if dense > model.layers:
            found.append(f"model.dense_layers: found {dense}; allowed: up to the {model.layers} layers")
        elif dense < model.layers and experts is None:
            found.append(f"model.dense_layers: found {dense} without experts; allowed: all {model.layers} layers")
    if experts is None and model.experts_every != 1:
        found.append(f"model.experts_every: found {model.experts_every} without experts; allowed: 1")
    if model.pattern is None and model.ffn is None and (dense or experts is None or model.experts_every > 1):
        found.append("model.ffn: missing; it is required with dense layers")
    return found


def _groups(experts: ExpertsSection) -> Iterator[str]:
    """Yield mistakes of the keys for groups of experts, of which a token uses only some."""
    place, groups, chosen = "model.experts.groups", experts.groups, experts.groups_per_token
    if chosen > groups:
        yield f"{place}_per_token: found {chosen}; allowed: up to the {groups} groups"
    if not experts.number:
        return
    if experts.number % groups:
        yield f"{place}: found {groups}; allowed: a divisor of the {experts.number} experts"
    elif groups > 1 and experts.per_token and experts.number // groups * chosen < experts.per_token:
        has = experts.number // groups * chosen
        yield f"{place}_per_token: found {chosen}, of {has} experts; allowed: enough for a token's {experts.per_token}"


def _sizes(model: ModelSection, parallel: ParallelSection) -> Iterator[str]:
    devices = parallel.tensor * parallel.context * parallel.data
    place = "model.parallel.expert"
    if parallel.expert > 1 and model.experts is None:
        yield f"{place}: found {parallel.expert} without experts; allowed: 1"
    elif devices % parallel.expert:
        yield f"{place}: found {parallel.expert}; allowed: a divisor of tensor * context * data, {devices}"
    elif model.experts and model.experts.number and model.experts.number % parallel.expert:
        yield f"{place}: found {parallel.expert}; allowed: a divisor of the {model.experts.number} experts"
    heads = model.attention.heads if model.attention else None
    if heads and heads % parallel.tensor:
        yield f"model.parallel.tensor: found {parallel.tensor}; allowed: a divisor of the {heads} heads"


def _links(parallel: ParallelSection, hardware: HardwareSection) -> Iterator[str]:
    for size, key in ((parallel.tensor, "tensor"), (parallel.expert, "expert")):
        if size > 1 and getattr(hardware, f"{key}_bandwidth") is None:
            yield f"hardware.{key}_bandwidth: missing; it is required with model.parallel.{key} {size}"
