"""Parallel layouts of a model on a number of devices: sizes of tensor, context, pipeline, data, expert parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.files.model_configs.model_config import ModelConfig


class Layout(NamedTuple):
    """Sizes of parallelism for `tensor * context * pipeline * data` devices.

    `expert` divides the `tensor * context * data` devices of a stage. A micro-batch has `microbatch_size` sequences.
    """

    tensor: int
    context: int
    pipeline: int
    data: int
    expert: int
    microbatch_size: int = 1

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of parallelism inside a stage, by a plan file's keys: `tensor`, `context`, `expert` and `data`."""
        return {"tensor": self.tensor, "context": self.context, "expert": self.expert, "data": self.data}

    def __str__(self) -> str:
        letters = {"TP": self.tensor, "CP": self.context, "PP": self.pipeline, "DP": self.data, "EP": self.expert}
        letters |= {"MBS": self.microbatch_size}
        return " ".join(f"{name}{size}" for name, size in letters.items() if size > 1 or name in ("TP", "PP", "DP"))


def layouts_of(
    config: ModelConfig, gpus: int, microbatches: int, sequence: int, given: Mapping[str, int | None], node: int = 8
) -> list[Layout]:
    """Return all layouts of a model on `gpus` devices, each with micro-batches of one sequence.

    They are ordered by tensor, context, pipeline and expert size, ascending. `BadInput` if there is none.
    `microbatches` counts those of a step on all replicas together; the data parallel size has to divide it. `given`
    fixes sizes by the names of `Layout`'s fields; the others (None, or absent) are searched. Tensor groups have at most
    `node` devices and divide the attention heads; tensor times context stays inside a node, and divides the heads of a
    mixer. A context size above 1 cuts a `sequence`, in tokens, into two parts a device, one early and one late. There
    are at most as many pipeline ranks as layers, with embedding and head. The expert size divides the experts.
    """
    attention = config.model["attention"]
    heads, groups = attention["heads"], attention.get("kv_heads") or attention["heads"]
    experts = (config.model.get("experts") or {}).get("number", 1)
    mixer = config.model.get("mixer") or {}
    mixed = mixer.get("heads", 0)
    keys = 0 if mixer.get("kind") == "mamba1" else mixer.get("key_heads") or mixed
    most = config.model["layers"] + config.model.get("mtp_layers", 0) + 2
    found = []
    for tensor in _sizes(gpus, given, "tensor", node):
        for context in _sizes(gpus // tensor, given, "context", node // tensor):
            for pipeline in _sizes(gpus // (tensor * context), given, "pipeline", most):
                data = gpus // (tensor * context * pipeline)
                fits = tensor * context * pipeline * data == gpus and given.get("data") in (None, data)
                cut = context == 1 or sequence % (2 * context) == 0
                if not (fits and cut) or microbatches % data or heads % tensor or (groups % tensor and tensor % groups):
                    continue
                if mixed % (tensor * context) or keys % tensor:
                    continue
                shared = tensor * context * data
                found += [
                    Layout(tensor, context, pipeline, data, expert)
                    for expert in _sizes(shared, given, "expert", experts)
                    if experts % expert == 0
                ]
    if not found:
        sizes = ", ".join(f"--{name} {size}" for name, size in given.items() if size is not None)
        raise BadInput(
            f"found no layout of {gpus} GPUs{f' with {sizes}' if sizes else ''}; allowed: tensor * context * pipeline "
            f"* data is {gpus}, tensor divides {heads} heads, 2 * context divides {sequence} tokens, data divides "
            f"{microbatches} micro-batches, expert divides {experts} experts and tensor * context * data"
        )
    return found


def _sizes(devices: int, given: Mapping[str, int | None], name: str, most: int) -> Iterator[int]:
    """Yield the divisors of `devices` up to `most`; where `given` has the size, that one alone, if it divides them."""
    size = given.get(name)
    for each in range(1, devices + 1):
        if devices % each == 0 and (each <= most if size is None else each == size):
            yield each
