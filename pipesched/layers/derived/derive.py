"""Derivation of layer types, capacity and transfer time of a plan from shape, training, parallelism and hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.activations import (
    Activation,
    head_activation,
    layer_activation,
    loss_bytes,
    mtp_activation,
    working_bytes,
)
from pipesched.layers.derived.adapters import (
    NO_PARAMETERS,
    adapter_numbers,
    adapter_parameters,
    adapter_products,
)
from pipesched.layers.derived.assumptions import assumptions
from pipesched.layers.derived.exchange import at_once, expert_seconds, hidden_bytes, mixer_bytes, tensor_bytes
from pipesched.layers.derived.kernels import (
    TRAFFIC,
    attention_seconds,
    converted_bytes,
    head_casts,
    layer_traffic,
    module_seconds,
    products_seconds,
    ring_seconds,
    scan_seconds,
)
from pipesched.layers.derived.model_operations import model_operations
from pipesched.layers.derived.operations import (
    Product,
    head_products,
    layer_products,
    mtp_products,
    predicting,
    tokens_of,
)
from pipesched.layers.derived.parameters import (
    Exchanged,
    Parameters,
    exchanged_bytes,
    gathered_bytes,
    layer_matrices,
    layer_parameters,
    mtp_matrices,
    mtp_parameters,
    state_bytes,
    stepped_bytes,
    vocabulary_parameters,
    with_wide,
)
from pipesched.layers.derived.part_formats import runs_of
from pipesched.layers.derived.rounding import Steps
from pipesched.layers.derived.shape import Hardware, LayerKind, Parallel, Shape, Training
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.recompute_rule import PART_OF

TIME_UNIT, MEMORY_UNIT = "ms", "GiB"
_GIB = 2**30
# Kernels that a backward launches for one of the forward: products by their input and by their weights.
_BACK_LAUNCH = 2
# Of tensor parallelism in the forward of each part of a dense layer: before and after attention, a mixer or the block.
_EXCHANGES = 2


@dataclass(frozen=True)
class Derived:
    """Derived layers (ms and GiB), a device's memory (`capacity`), transfer time between stages, and assumptions.

    `layers` begin with the embedding and end with the head. `capacity` is less than the device has by what is reserved,
    and by the working space of layers. `reduction` and `optimizer` are times once a step of one layer, by name, without
    those of 0: exchanges of gradients and weights that no pass hides, and the optimizer step. `operations` are the
    floating-point operations of a micro-batch in the whole model, forward and backward.
    """

    layers: tuple[LayerType, ...]
    capacity: Fraction
    transfer: Fraction
    assumptions: tuple[str, ...]
    reduction: Mapping[str, Fraction]
    optimizer: Mapping[str, Fraction]
    operations: Fraction


class _Kind(NamedTuple):
    """A type of layer, of which a model has `number`: its matrix products, parameters, activations, and memory traffic.

    `products`, `traffic`, `activation` and `converted` are those of one device and micro-batch; `parameters` and
    `adapters` (those of its LoRA adapters) count the whole layer, before parallelism divides it. It reads `inputs`
    hidden states and moves `traffic` bytes in the forward besides products. `layer` is what the layer has; None for the
    head. An embedding has no such type. `converted` are the bytes moved in the forward and in the backward, to keep the
    activation function's input in another format and for a head in one.
    """

    name: str
    number: int
    products: Sequence[Product]
    traffic: float
    parameters: Parameters
    activation: Activation
    layer: LayerKind | None = None
    inputs: int = 1
    adapters: Parameters = NO_PARAMETERS
    converted: tuple[float, float] = (0.0, 0.0)


def derive(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> Derived:
    """Return the layers of a model in order, runs of equal ones as one entry, and its other figures.

    Multi-token prediction layers, if there are any, come after all transformer layers and before the head.
    """
    rates = _Rates(shape, training, parallel, hardware)
    kinds = _kinds(shape, training, parallel)
    zero, weight = Fraction(0), Fraction(0) if training.weight_split else None
    vocabulary = Parameters(vocabulary_parameters(shape), 0, 0)
    whole = training.precision_of("embedding")
    state = state_bytes(vocabulary, parallel, whole, training.is_frozen("embedding")) / _GIB
    found = [LayerType("embedding", zero, zero, weight=weight, memory=state), *map(rates.layer, kinds)]
    found[-1] = replace(found[-1], recompute=())  # the head's
    working = zero
    # Of files from before memory rates were known all working space is in `reserved`.
    if hardware.memory_rate:
        modes = ((own, mode) for own in found if own.name != "mtp" for mode in own.recompute)
        again = max((own.activation * (1 - mode.keeps) for own, mode in modes), default=zero)
        gathered = max(map(rates.gathered, kinds))
        working = (working_bytes(shape, training, parallel) + gathered) / _GIB + again
        # The loss has its own where the backward of a layer has this later.
        loss = max(zero, loss_bytes(shape, training, parallel) / _GIB - working)
        found = [replace(own, memory=own.memory + loss) if own.name in ("mtp", "head") else own for own in found]
    steps, parameters = Steps(found), {"embedding": vocabulary} | {kind.name: kind.parameters for kind in kinds}
    adapters = {kind.name: kind.adapters for kind in kinds}
    trained = parameters if training.lora is None else adapters
    return Derived(
        tuple(map(steps.layer, found)),
        steps.down(max(zero, hardware.memory / _GIB - working)),
        steps.nearest(_ms(float(hidden_bytes(shape, training, parallel)) / hardware.pipeline)),
        assumptions(shape, training, parallel, hardware),
        {
            layer.name: time
            for layer in found
            if (time := rates.exposed(layer, parameters[layer.name], adapters.get(layer.name, NO_PARAMETERS)))
        },
        {
            name: time
            for name, one in trained.items()
            if not training.is_named(name) and (time := rates.step(name, one))
        },
        model_operations(shape, training),
    )


def _kinds(shape: Shape, training: Training, parallel: Parallel) -> list[_Kind]:
    def of(kind: LayerKind) -> tuple[Sequence[Product], float, Parameters, Activation]:
        where = shape, training, parallel, kind
        activation = layer_activation(*where, shape.name_of(kind))
        parameters = with_wide(layer_parameters(shape, kind), layer_matrices(shape, kind), training, kind.within)
        return layer_products(*where), layer_traffic(*where), parameters, activation

    vocabulary = Parameters(vocabulary_parameters(shape), 0, 0)
    logits = float(tokens_of(training, parallel)) * shape.vocabulary * TRAFFIC.logits
    found = []
    runs = runs_of(shape, training)
    layers = {kind: of(kind) for kind in {kind for kind, _ in runs}}
    for kind, number in runs:
        converted = converted_bytes(shape, training, parallel, kind)
        found.append(_Kind(shape.name_of(kind), number, *layers[kind], kind, converted=(converted, converted)))
    there, back = head_casts(shape, training, parallel)
    if shape.mtp_layers:
        own = predicting(shape)
        converted = converted_bytes(shape, training, parallel, own)
        activation = mtp_activation(shape, training, parallel)
        parameters = with_wide(mtp_parameters(shape), mtp_matrices(shape), training, own.within)
        found.append(
            _Kind("mtp", shape.mtp_layers, mtp_products(shape, training, parallel),
                  layer_traffic(shape, training, parallel, own) + logits, parameters, activation, own,
                  inputs=2, converted=(converted + there, converted + back))
        )  # fmt: skip
    head = head_activation(shape, training, parallel)
    products = head_products(shape, training, parallel)
    parameters = vocabulary._replace(norms=shape.hidden)
    found.append(_Kind("head", 1, products, logits, parameters, head, converted=(there, back)))
    return [_with_adapters(kind, shape, training) for kind in found]


def _with_adapters(kind: _Kind, shape: Shape, training: Training) -> _Kind:
    """Return the type of layer with the parameters and activations of its LoRA adapters added."""
    if training.lora is None or training.is_named(kind.name) or kind.layer is None:
        return kind
    lora, activation = training.lora, kind.activation
    whole = layer_products(shape, training, Parallel(), kind.layer)
    kept = adapter_numbers(lora, kind.products) * training.precision.number
    return kind._replace(
        adapters=adapter_parameters(lora, whole), activation=replace(activation, total=activation.total + kept)
    )


@dataclass(frozen=True)
class _Rates:
    """Conversion of operations and bytes to times (ms) and memory (GiB) of a plan file, with the hardware's rates."""

    shape: Shape
    training: Training
    parallel: Parallel
    hardware: Hardware

    def layer(self, kind: _Kind) -> LayerType:
        """Return the layer type: time of its kernels and exchanges in each direction, and its memory."""
        forward, to_input, to_weight = products_seconds(kind.products, self.training, self.parallel, self.hardware)
        frozen = self.training.is_frozen(kind.name)
        to_weight = 0.0 if frozen else to_weight
        if kind.adapters.total and self.training.lora is not None:
            own = adapter_products(self.training.lora, kind.products)
            there, back, to_weight = products_seconds(own, self.training, self.parallel, self.hardware)
            forward, to_input = forward + there, to_input + back
        where = self.shape, self.training, self.parallel, self.hardware
        attention = back = ring = ring_back = scan = scan_back = 0.0
        layer, moe = kind.layer, kind.layer is not None and kind.layer.moe
        if layer is not None and layer.attends:
            attention, back = attention_seconds(*where, layer.windowed)
            ring, ring_back = ring_seconds(*where, attention, False), ring_seconds(*where, back, True)
        if layer is not None and layer.mixes:
            scan, scan_back = scan_seconds(*where)
        moved = converted = converted_back = 0.0
        if self.hardware.memory_rate:
            every = kind.traffic, *kind.converted
            moved, converted, converted_back = (each / self.hardware.memory_rate for each in every)
        exchanged = self._exchanged(kind)
        forward += attention + moved + converted + ring + scan
        to_input += back + TRAFFIC.back * moved + converted_back + ring_back + scan_back
        launch = 0.0 if layer is None else self._launch(layer)
        wait = self.hardware.moe_wait if moe else 0.0
        forward = max(forward, launch) + exchanged + wait
        to_input = max(to_input, _BACK_LAUNCH * launch - to_weight) + exchanged + wait
        if self.hardware.data:
            # Hidden by the forward, and by B and W, if it has one.
            sent = self._sent(kind.name, kind.parameters, kind.adapters)
            forward = at_once(forward, float(sent.forward) / self.hardware.data)
            if sent.backward:
                to_input = at_once(to_input + to_weight, float(sent.backward) / self.hardware.data) - to_weight
        split, whole = self.training.weight_split, to_input + to_weight
        activation = kind.activation
        return LayerType(
            kind.name,
            _ms(forward),
            _ms(to_input if split else whole),
            kind.number,
            weight=_ms(to_weight) if split else None,
            memory=sum(
                state_bytes(own, self.parallel, precision, fixed)
                for own, precision, fixed in (
                    (kind.parameters, self.training.precision_of(kind.name), frozen),
                    (kind.adapters, self.training.precision_of("adapters"), False),
                )
            )
            / Fraction(_GIB),
            activation=activation.total / _GIB,
            freed_by_backward=activation.freed_by_backward / _GIB if split else Fraction(0),
            recompute=tuple(self._modes(kind, forward)),
            attention=_ms(attention) / _ms(forward) if forward else Fraction(0),
            attention_backward=_ms(back) / _ms(whole) if whole else Fraction(0),
        )

    def _launch(self, layer: LayerKind) -> float:
        """Return the least seconds of a layer's forward; of a layer that is one of its two parts half as many."""
        whole = self.hardware.moe_launch if layer.moe else self.hardware.dense_launch
        return whole * layer.parts / 2

    def _exchanged(self, kind: _Kind) -> float:
        """Return the seconds of exchange in each direction inside a layer that computation does not hide.

        Only tensor and expert parallel exchange can be hidden. What a mixer exchanges of the sequence is not hidden. 0
        for what is no transformer layer.
        """
        layer, taken, shown = kind.layer, 0.0, 0.0
        if layer is None:
            return 0.0
        taken += self._of_tensor(layer)
        if layer.moe:
            taken += expert_seconds(self.shape, self.training, self.parallel, self.hardware, layer.within)
        if layer.mixes and self.hardware.context is not None:
            shown = float(mixer_bytes(self.shape, self.training, self.parallel)) / self.hardware.context
        return taken * (1 - self.hardware.hidden) + shown

    def _of_tensor(self, layer: LayerKind) -> float:
        """Return the seconds of tensor parallel exchange in each direction inside a layer, hidden or not."""
        if self.hardware.tensor is None:
            return 0.0
        return float(tensor_bytes(self.shape, self.training, self.parallel, layer)) / self.hardware.tensor

    def _modes(self, kind: _Kind, forward: float) -> list[RecomputeMode]:
        """Return the recomputation modes of a layer.

        They are the whole layer, stored attention scores, and modules that are asked for. `forward` is the duration of
        the layer's forward in seconds.
        """
        activation, found = kind.activation, []
        for name in ("full", "selective") if self.training.modes is None else self.training.modes:
            modules = ("core_attn",) if name == "selective" else tuple(name.split("+"))
            if name == "full":
                keeps = Fraction(kind.inputs) * activation.layer_input / activation.total
                again = forward - (self._last(kind) if self.training.early_stop else 0.0)
                found.append(RecomputeMode(name, _ms(again), min(Fraction(1), keeps)))
            elif (has := [one for one in modules if one in activation.modules]) and kind.layer is not None:
                again = sum(self._again(one, kind.layer) for one in has)
                saved = sum((activation.modules[one] for one in has if PART_OF.get(one) not in has), Fraction(0))
                # A layer that has some of the modules alone recomputes these.
                own = name if len(has) == len(modules) else "+".join(has)
                found.append(
                    RecomputeMode(own, _ms(min(again, forward)), max(Fraction(0), 1 - saved / activation.total))
                )
        return found

    def _last(self, kind: _Kind) -> float:
        """Return the seconds of a dense layer's last product and the exchange of its result, which no backward reads.

        The results of experts are multiplied with the router's probabilities, which a backward reads.
        """
        if kind.layer is None or kind.layer.moe:
            return 0.0
        last = layer_products(self.shape, self.training, self.parallel, kind.layer)[-1:]
        # All exchanges have one size; those of a mixer's sequence are before its last product.
        exchanged = self._of_tensor(kind.layer) * (1 - self.hardware.hidden) / (_EXCHANGES * kind.layer.parts)
        return products_seconds(last, self.training, self.parallel, self.hardware)[0] + exchanged

    def _again(self, module: str, layer: LayerKind) -> float:
        """Return the seconds of recomputing a module of a layer; those of `moe` include the exchange of tokens."""
        where = self.shape, self.training, self.parallel, self.hardware
        exchanged = expert_seconds(*where, layer.within) if module == "moe" else 0.0
        return module_seconds(*where, module, layer) + exchanged

    def _sent(self, name: str, parameters: Parameters, adapters: Parameters) -> Exchanged:
        """Return the bytes exchanged for a layer's own parameters and for its adapters'."""
        training, parallel = self.training, self.parallel
        own = exchanged_bytes(parameters, parallel, training.precision_of(name), training.is_frozen(name))
        more = exchanged_bytes(adapters, parallel, training.precision_of("adapters"))
        return Exchanged(*(a + b for a, b in zip(own, more, strict=True)))

    def gathered(self, kind: _Kind) -> Fraction:
        """Return the bytes of gathered parameters of a layer and its adapters, and of gradients of those that train."""
        training, parallel = self.training, self.parallel
        own = training.precision_of(kind.name)
        return gathered_bytes(kind.parameters, parallel, own, training.is_frozen(kind.name)) + gathered_bytes(
            kind.adapters, parallel, training.precision_of("adapters")
        )

    def exposed(self, layer: LayerType, parameters: Parameters, adapters: Parameters) -> Fraction:
        """Return the time, once a step and layer, of exchanges that its last backward and first forward do not hide.

        The last backward can hide gradients, a forward of the next step weights. 0 if the rate `hardware.data` is
        unknown.
        """
        if self.hardware.data is None:
            return Fraction(0)
        hidden, of_gathered = self.hardware.data_hidden, self.hardware.gather_hidden
        sent = self._sent(layer.name, parameters, adapters)
        reduced, gathered = (amount / Fraction(self.hardware.data) * 1000 for amount in sent[:2])
        share, of_forward = _exact(hidden), _exact(hidden if of_gathered is None else of_gathered)
        return max(Fraction(0), reduced - share * layer.full_backward) + max(
            Fraction(0), gathered - of_forward * layer.forward
        )

    def step(self, name: str, parameters: Parameters) -> Fraction:
        """Return the time of a layer's optimizer step, from its memory traffic; 0 if the memory's rate is unknown."""
        rate = self.hardware.memory_rate
        return (
            _ms(float(stepped_bytes(parameters, self.parallel, self.training.precision_of(name))) / rate)
            if rate
            else Fraction(0)
        )


def _ms(seconds: float) -> Fraction:
    return _exact(seconds * 1000)


def _exact(number: float) -> Fraction:
    """Return a float as an exact number, rounded to a multiple of 2^-40."""
    return Fraction(round(number * 2**40), 2**40)
