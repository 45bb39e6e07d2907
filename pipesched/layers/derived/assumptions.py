"""The assumptions of a derivation of layers, one sentence each, with the numbers used."""

from __future__ import annotations

from pipesched.layers.derived.kernels import SCAN
from pipesched.layers.derived.parameters import active_parameters, layer_matrices, mtp_matrices, total_parameters
from pipesched.layers.derived.precision import KEPT, MTP, PARTS, Format
from pipesched.layers.derived.shape import Hardware, Parallel, Shape, Sharding, Training
from pipesched.problem.formatting import plain


def assumptions(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> tuple[str, ...]:
    """Return all assumptions, in the order model, computation, communication, memory."""
    computation, communication = _computation(shape, training, hardware), _communication(parallel, hardware)
    frozen = ", ".join(sorted(training.frozen))
    weights = f"frozen: {frozen}: weights alone, without gradients and the optimizer's state; with a backward, all of"
    of_training = [f"{weights} the activation until then"] if frozen else []
    if training.lora is not None:
        of_training.append(
            f"lora: adapters of rank {training.lora.rank} of {', '.join(training.lora.modules)} train alone, and "
            "tensor parallel devices share them; of all else weights alone, and all of the activation"
        )
    scan = [] if shape.mixing is None else _scan(hardware, parallel)
    return (*_model(shape), *of_training, *computation, *scan, *communication, *_memory(training, parallel))


def _model(shape: Shape) -> list[str]:
    total, active = total_parameters(shape), active_parameters(shape)
    text = f"{_billions(total)} parameters"
    if active != total:
        text += f", {_billions(active)} used by a token"
    found = [f"model: {text}{' (without multi-token prediction)' if shape.mtp_layers else ''}"]
    if shape.tied:
        found.append("model: embedding and head are tied; each stage that has one of them holds the parameters")
    if shape.mtp_layers:
        found.append("model: a multi-token prediction layer computes the head once more, with the head's parameters")
    if shape.window is not None:
        near, number = shape.window, sum(number for kind, number in shape.runs if kind.windowed)
        where = f"its own chunk of {near.tokens} tokens" if near.chunked else f"a window of {near.tokens} tokens"
        found.append(f"model: in {number} of {shape.layers} layers a token attends to {where}")
    if shape.mixing is not None:
        number, mixer = sum(number for kind, number in shape.runs if kind.mixes), shape.mixing.mixer
        more = ", and attention" if shape.mixing.both else ""
        found.append(f"model: {number} of {shape.layers} layers have {mixer.name}{more}")
    return found


def _scan(hardware: Hardware, parallel: Parallel) -> list[str]:
    """Return the assumptions on the mixers of a model that has some."""
    rate = _tera(SCAN.rate(hardware))
    whose = (
        "given"
        if hardware.scan_flops
        else f"{plain(100 * SCAN.share)} % of attention's, as measured of Mamba 2's forward on an H100 and of no other "
        "scan or device (hardware.scan_tflops)"
    )
    exchanged = "; context parallel devices exchange the sequence for heads, not hidden" if parallel.context > 1 else ""
    return [
        f"computation: scans {rate} TFLOP/s, {whose}; what their kernels move is counted from their code, not measured"
        f"{exchanged}"
    ]


def _computation(shape: Shape, training: Training, hardware: Hardware) -> list[str]:
    again = "2.5 times its forward (FlashAttention)" if training.flash else "twice its forward"
    products = f"{_tera(hardware.product_rate(training.precision.format))} TFLOP/s"
    if hardware.multiprocessors:
        products += f" where tiles fill the {hardware.multiprocessors} multiprocessors"
    moved = (
        "with normalizations and other small operations in it"
        if hardware.memory_rate is None
        else f"attention {_tera(hardware.attention_flops or hardware.flops)}; normalizations, activation functions, "
        f"permutations and the optimizer's step by what they move at {_rate(hardware.memory_rate)}"
    )
    return [
        f"computation: products {products}, {moved}",
        *_in_other_bits(shape, training, hardware),
        *_ungated_in_kernels(shape, training),
        "computation: F, B and W each 2 operations a token and parameter; causal attention over half of the sequence, "
        f"its backward {again}, all of it in B",
        "computation: the embedding takes no time; every expert gets as many tokens as every other",
    ]


def _in_other_bits(shape: Shape, training: Training, hardware: Hardware) -> list[str]:
    """Return a line for each number of bits of products that are not as most: their rate, and whose they are.

    They are those of parts by their keys in `precision`, and those of layers at both ends.
    """
    usual, formats = training.precision.format, training.formats
    matrices = [one for kind, _ in shape.runs for one in layer_matrices(shape, kind)]
    if shape.mtp_layers:
        matrices += (one for one in mtp_matrices(shape) if one.part == MTP or MTP not in formats.parts)
    has, found = {"head", *(one.part for one in matrices if one.number)}, dict[tuple[int, float], list[str]]()

    def add(own: Format, name: str) -> None:
        found.setdefault((own.bits, hardware.product_rate(own)), []).append(name)

    for part in PARTS:
        if part in has and training.format_of(part).bits != usual.bits:
            add(training.format_of(part), part)
    if formats.some_narrow(usual):
        for end, number in (("first", formats.first), ("last", formats.last)):
            if number:
                add(KEPT, f"all of the {end} {f'{number} layers' if number > 1 else 'layer'}")
    return [
        f"computation: products in {bits} bits {_tera(rate)} TFLOP/s: {', '.join(names)}"
        for (bits, rate), names in found.items()
    ]


def _ungated_in_kernels(shape: Shape, training: Training) -> list[str]:
    """Return a line on kernels that no published step of such a model shows to be faster; empty for other models."""
    if shape.gated or shape.experts is None or not training.fused_experts:
        return []
    return [
        "computation: fused_experts: products of experts have the activation function in their kernels; published "
        "steps of experts without a gate were at most 1.4 % shorter with such kernels than without"
    ]


def _communication(parallel: Parallel, hardware: Hardware) -> list[str]:
    found = [f"transfer: the hidden state of a micro-batch at {_rate(hardware.pipeline)}"]
    hidden = float(hardware.hidden)
    exposed = f"{plain(100 * hidden)} % of it hidden behind computation" if hidden else "not hidden behind computation"
    if parallel.tensor > 1:
        what = "two all-gathers and two reduce-scatters a layer"
        found.append(f"tensor parallel: {what}, each way at {_rate(hardware.tensor)}, {exposed}")
    if parallel.expert > 1:
        what = "every token to its experts and back"
        found.append(f"expert parallel: {what}, each way at {_rate(hardware.expert)}, {exposed}")
    if parallel.context > 1:
        found.append(
            "context parallel: exchanges of keys and values are hidden behind computation (hardware.context_bandwidth)"
            if hardware.context is None
            else f"context parallel: keys and values go round at {_rate(hardware.context)}, gradients too on the way "
            "back, behind the attention over the other parts, which that slows; what it does not hide takes time, "
            "and so do the sums of partial results"
        )
    if parallel.data * parallel.context > 1:
        found.append(
            "data parallel: the exchange of gradients is not counted (hardware.data_bandwidth)"
            if hardware.data is None
            else f"data parallel: {_of_replicas(parallel.sharding, hardware, _rate(hardware.data))}"
            + ("; the optimizer's step is not counted" if hardware.memory_rate is None else "")
        )
    return found


def _memory(training: Training, parallel: Parallel) -> list[str]:
    number, gradient, optimizer = training.precision[:3]
    state = training.precision.weight_bytes + gradient
    shared, split = "", "" if parallel.sequence or parallel.tensor == 1 else "no "
    if parallel.sharded_optimizer and parallel.devices > 1:
        experts = f", {parallel.devices // parallel.expert} for experts" if parallel.expert > 1 else ""
        shared = f", divided among the devices of the same parameters ({parallel.data * parallel.context}{experts})"
    stored = "not stored" if training.flash else "stored"
    scores = f"attention scores {stored}, {'with' if training.dropout else 'without'} dropout"
    kept = training.precision.activation_input_bytes
    inputs = f" ({kept} of the input of activation functions)" if kept != number else ""
    return [
        f"memory: {state} bytes a parameter for weight and gradient, {optimizer} for Adam{shared}"
        + (
            f"; sharding of {parallel.sharding}"
            if parallel.sharding in (Sharding.GRADIENTS, Sharding.PARAMETERS)
            else ""
        ),
        f"memory: activations in {number} bytes{inputs} by what each operation keeps, {scores}; "
        + ("no sequence parallelism" if split else "sequence parallelism divides them by the tensor parallel size"),
        "memory: working space of an operation and of the communication library is that of hardware.reserved",
    ]


def _of_replicas(sharding: Sharding, hardware: Hardware, rate: str) -> str:
    """Return when devices with the same parameters reduce gradients and gather weights, and what hides a part of it.

    They do so at `rate`.
    """
    hidden, gathered = hardware.data_hidden, hardware.gather_hidden
    backward, forward = _part(hidden, "a backward"), _part(hidden if gathered is None else gathered, "a forward")
    last = "after a device's last backward"
    match sharding:
        case Sharding.NONE:
            return f"gradients are reduced at {rate} {last}, {_hidden(backward)}"
        case Sharding.OPTIMIZER:
            return f"gradients are reduced and weights gathered at {rate} {last}, {_hidden(backward, forward)}"
        case Sharding.GRADIENTS:
            each = "behind each backward, which that slows"
            return f"gradients are reduced at {rate} {each}, and weights gathered {last}, {_hidden(forward)}"
        case Sharding.PARAMETERS:
            each = "behind each pass, and gradients reduced behind each backward, which that slows"
            return f"weights are gathered at {rate} {each}"


def _part(share: float, of: str) -> str:
    return f"{plain(100 * share)} % of {of}" if share else ""


def _hidden(*parts: str) -> str:
    return f"behind {' and '.join(filter(None, parts))}" if any(parts) else "not hidden behind computation"


def _tera(rate: float) -> str:
    return plain(round(rate / 1e12, 1))


def _rate(bandwidth: float | None) -> str:
    return "no cost" if bandwidth is None else f"{plain(round(bandwidth / 1e9, 1))} GB/s a device"


def _billions(number: int) -> str:
    return f"{number / 1e9:.2f} billion"
