"""Layer types, capacity and transfer time of a plan, from shape, training, parallelism and hardware, by formula."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction

from pipesched.layers.derived.activations import Activation, head_activation, layer_activation, mtp_activation
from pipesched.layers.derived.assumptions import assumptions
from pipesched.layers.derived.operations import (
    Operations,
    context_bytes,
    expert_bytes,
    head_operations,
    hidden_bytes,
    layer_operations,
    model_operations,
    mtp_operations,
    tensor_bytes,
)
from pipesched.layers.derived.parameters import (
    Parameters,
    layer_parameters,
    mtp_parameters,
    reduced_bytes,
    state_bytes,
    vocabulary_parameters,
)
from pipesched.layers.derived.rounding import Steps
from pipesched.layers.derived.shape import Hardware, Parallel, Shape, Training
from pipesched.layers.layer import LayerType, RecomputeWay

TIME_UNIT, MEMORY_UNIT = "ms", "GiB"
_GIB = 2**30

# Operations of attention's backward for one of its forward: four products for two; FlashAttention computes the scores
# once more (arXiv 2307.08691, section 4.1).
ATTENTION_BACKWARD, FLASH_BACKWARD = Fraction(2), Fraction(5, 2)


@dataclass(frozen=True)
class Derived:
    """Layers in ms and GiB, the room of a device, the time of a transfer between stages, and what was assumed.

    `reduction` is the time of the exchanges of gradients and weights at the end of a step, by name of a layer;
    `operations` those of a micro-batch in the whole model, forward and backward.
    """

    layers: tuple[LayerType, ...]
    capacity: Fraction
    transfer: Fraction
    assumptions: tuple[str, ...]
    reduction: Mapping[str, Fraction]
    operations: Fraction


@dataclass(frozen=True)
class _Rates:
    """The one place that turns operations and bytes into numbers of the file."""

    training: Training
    parallel: Parallel
    hardware: Hardware

    def computation(self, operations: Fraction) -> Fraction:
        return operations / self.hardware.sustained_flops * 1000

    def transfer(self, amount: Fraction) -> Fraction:
        return amount / self.hardware.pipeline * 1000

    def exchange(self, amount: Fraction, bandwidth: Fraction | None) -> Fraction:
        exposed = 1 - self.hardware.hidden
        return Fraction(0) if not amount or bandwidth is None else amount / bandwidth * 1000 * exposed

    def ring(self, amount: Fraction, attention: Fraction) -> Fraction:
        """What an exchange of keys and values takes beyond the attention over the parts of others, which hides it."""
        behind = attention * Fraction(self.parallel.context - 1, self.parallel.context)
        bandwidth = self.hardware.context
        return Fraction(0) if bandwidth is None else max(Fraction(0), amount / bandwidth * 1000 - behind)

    def layer(
        self,
        name: str,
        count: int,
        operations: Operations,
        collectives: Fraction,
        parameters: Parameters,
        activation: Activation,
        inputs: int = 1,
        context: Fraction = Fraction(0),
    ) -> LayerType:
        """A layer type; `collectives` is the time of its exchanges each way, `inputs` the hidden states it reads.

        `context` are the bytes of keys and values that go round in its forward.
        """
        products, attention = (self.computation(one) for one in operations)
        forward = products + attention + collectives + self.ring(context, attention)
        back = attention * (FLASH_BACKWARD if self.training.flash else ATTENTION_BACKWARD)
        to_input = products + back + collectives + self.ring(2 * context, back)
        split, full = self.training.weight_split, to_input + products
        return LayerType(
            name,
            forward,
            to_input if split else full,
            count,
            weight=products if split else None,
            memory=state_bytes(parameters, self.parallel, self.training.precision) / _GIB,
            activation=activation.total / _GIB,
            freed_by_backward=activation.freed_by_backward / _GIB if split else Fraction(0),
            recompute=self._ways(forward, attention, activation, inputs),
            attention=attention / forward if forward else Fraction(0),
            attention_backward=back / full if full else Fraction(0),
        )

    def _ways(
        self, forward: Fraction, attention: Fraction, activation: Activation, inputs: int
    ) -> tuple[RecomputeWay, ...]:
        """The whole layer from its input; attention scores alone, where they are stored."""

        ways = [RecomputeWay("full", forward, min(Fraction(1), inputs * activation.layer_input / activation.total))]
        if activation.scores:
            ways.append(RecomputeWay("selective", attention, 1 - activation.scores / activation.total))
        return tuple(ways)


def derive(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> Derived:
    """Embedding, dense layers, layers with experts, multi-token prediction and head: those there are, in this order."""
    rates = _Rates(training, parallel, hardware)
    per_layer = rates.exchange(tensor_bytes(shape, training, parallel), hardware.tensor)
    to_experts = rates.exchange(expert_bytes(shape, training, parallel), hardware.expert)

    def transformer(name: str, count: int, moe: bool) -> LayerType:
        return rates.layer(
            name,
            count,
            layer_operations(shape, training, parallel, moe),
            per_layer + (to_experts if moe else 0),
            layer_parameters(shape, moe),
            layer_activation(shape, training, parallel, moe),
            context=context_bytes(shape, training, parallel),
        )

    zero, weight = Fraction(0), Fraction(0) if training.weight_split else None
    vocabulary = Parameters(vocabulary_parameters(shape), 0, 0)
    state = state_bytes(vocabulary, parallel, training.precision) / _GIB
    found = [LayerType("embedding", zero, zero, weight=weight, memory=state)]
    if shape.dense_layers:
        found.append(transformer("dense" if shape.experts else "layer", shape.dense_layers, False))
    if shape.layers > shape.dense_layers:
        found.append(transformer("moe", shape.layers - shape.dense_layers, True))
    if shape.mtp_layers:
        found.append(_mtp(rates, shape, per_layer + (to_experts if shape.experts else 0)))
    head = rates.layer(
        "head",
        1,
        head_operations(shape, training, parallel),
        zero,
        vocabulary._replace(norms=shape.hidden),
        head_activation(shape, training, parallel),
    )
    found.append(replace(head, recompute=()))
    steps = Steps(found)
    return Derived(
        tuple(map(steps.layer, found)),
        steps.down(hardware.memory / _GIB),
        steps.nearest(rates.transfer(hidden_bytes(shape, training, parallel))),
        assumptions(shape, training, parallel, hardware),
        _reduction(shape, rates, {layer.name for layer in found}),
        model_operations(shape, training),
    )


def _reduction(shape: Shape, rates: _Rates, names: Set[str]) -> dict[str, Fraction]:
    """Of each layer, in ms, exchanging gradients and weights among the devices that hold the same parameters."""
    bandwidth, precision = rates.hardware.data, rates.training.precision
    if bandwidth is None:
        return {}
    vocabulary = Parameters(vocabulary_parameters(shape), 0, 0)
    held = {"embedding": vocabulary, "head": vocabulary}
    held |= {name: layer_parameters(shape, False) for name in ("layer", "dense") if name in names}
    held |= {"moe": layer_parameters(shape, True)} if "moe" in names else {}
    held |= {"mtp": mtp_parameters(shape)} if shape.mtp_layers else {}
    sent = {name: reduced_bytes(one, rates.parallel, precision) for name, one in held.items()}
    return {name: amount / bandwidth * 1000 for name, amount in sent.items() if amount}


def _mtp(rates: _Rates, shape: Shape, collectives: Fraction) -> LayerType:
    training, parallel = rates.training, rates.parallel
    return rates.layer(
        "mtp",
        shape.mtp_layers,
        mtp_operations(shape, training, parallel),
        collectives,
        mtp_parameters(shape),
        mtp_activation(shape, training, parallel),
        inputs=2,
        context=context_bytes(shape, training, parallel),
    )
