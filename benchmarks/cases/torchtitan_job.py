"""One process of torchtitan's own trainer on a CPU over gloo, started by `benchmarks.torchtitan_trainer`.

It runs with torchtitan's Python and imports nothing of ours. The argument is a JSON file: `flags` for torchtitan's own
command line, `apply`, an exported module (or null), `keep_chunks`, whether the loss works in chunks whatever that
module says, and `result`, the folder for what came of it. The model is `llama3_debugmodel` but for its attention,
which torchtitan has in two forms that both need a GPU for their backward: causal `ScaledDotProductAttention`, also
torchtitan's, stands in. Parameters begin with values drawn by their names, so that any placement trains one model.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import distribute_tensor


def on_cpu() -> None:
    """Replace what torchtitan asks of a GPU's module of torch, before it is imported."""
    torch._utils._get_available_device_type = lambda: "cpu"
    cpu: Any = torch.cpu
    cpu.get_device_name = lambda *_: "CPU"
    cpu.get_device_properties = lambda *_: SimpleNamespace(total_memory=1)
    cpu.memory_stats = lambda *_: {}
    cpu.reset_peak_memory_stats = cpu.empty_cache = lambda *_: None
    barrier = dist.barrier

    def without_devices(*args: Any, **keys: Any) -> Any:
        return barrier(*args, **{name: one for name, one in keys.items() if name != "device_ids"})

    dist.barrier = without_devices  # gloo takes no device_ids


def main(path: str) -> None:
    """Three steps, or as many as the flags say; losses, norms and gradients of each into the result folder."""
    on_cpu()
    from torchtitan.config import ConfigManager
    from torchtitan.models.common.attention import FlexAttention, ScaledDotProductAttention
    from torchtitan.tools.logging import init_logger

    spec = json.loads(Path(path).read_text())
    init_logger()
    config = ConfigManager().parse_args(["--module", "llama3", "--config", "llama3_debugmodel", *spec["flags"]])
    loss = config.loss
    if spec["apply"] is not None:
        config = runpy.run_path(spec["apply"])["apply"](config)
    if spec["keep_chunks"]:
        config.loss = loss
    config.dataloader, config.tokenizer = drawn_tokens()
    for _, _, parent, field in list(config.model_spec.model.traverse(FlexAttention.Config)):
        setattr(parent, field, ScaledDotProductAttention.Config())
    ScaledDotProductAttention.sdpa_backends = [torch.nn.attention.SDPBackend.MATH]
    trainer = config.build()
    for module in (one for part in trainer.model_parts for one in part.modules() if isinstance(one, FSDPModule)):
        module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    found = watch(trainer)
    trainer.train()
    trainer.close()
    torch.save(found, Path(spec["result"]) / f"{os.environ['RANK']}.pt")
    dist.barrier()
    dist.destroy_process_group()


def drawn_tokens() -> tuple[Any, Any]:
    """Configurations of a data loader that draws the same tokens for every run, and of a tokenizer that is never used.

    Their classes are torchtitan's, which can be imported once `on_cpu` has run.
    """
    from torchtitan.components.dataloader import BaseDataLoader
    from torchtitan.components.tokenizer import BaseTokenizer

    class Tokens(BaseDataLoader):  # type: ignore[misc]
        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):  # type: ignore[misc]
            pass

        def __init__(self, **keys: Any) -> None:
            self._shape = keys["local_batch_size"], keys["seq_len"] + 1

        def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
            generator = torch.Generator().manual_seed(1)
            while True:
                tokens = torch.randint(0, 2048, self._shape, generator=generator)
                yield {"input": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, _: dict[str, Any]) -> None:
            pass

    class NoTokenizer(BaseTokenizer):  # type: ignore[misc]
        @dataclass(kw_only=True, slots=True)
        class Config(BaseTokenizer.Config):  # type: ignore[misc]
            pass

        def __init__(self, **_: Any) -> None:
            super().__init__()

        encode = decode = get_vocab_size = None

    return Tokens.Config(), NoTokenizer.Config()


def watch(trainer: Any) -> list[dict[str, Any]]:
    """Sets the parameters; of each step from now on: loss (-1 where the last stage is not here), norm, gradients."""
    found: list[dict[str, Any]] = []
    named = {_name(name): one for part in trainer.model_parts for name, one in part.named_parameters()}
    with torch.no_grad():
        for name, parameter in named.items():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            drawn = torch.randn(parameter.shape, generator=generator)
            drawn = 1 + 0.1 * drawn if drawn.ndim == 1 else 0.03 * drawn
            own = distribute_tensor(drawn, parameter.device_mesh, parameter.placements)
            parameter.to_local().copy_(own.to_local())
    step, log = trainer.optimizers.step, trainer.metrics_processor.log

    def stepped(*args: Any, **keys: Any) -> Any:
        gradients = {name: one.grad.full_tensor() for name, one in named.items() if one.grad is not None}
        found.append({"gradients": gradients, "missing": sorted(set(named) - set(gradients))})
        return step(*args, **keys)

    def logged(number: int, loss: float, most: float, norm: float, **keys: Any) -> Any:
        found[-1] |= {"loss": loss, "norm": norm}
        return log(number, loss, most, norm, **keys)

    trainer.optimizers.step, trainer.metrics_processor.log = stepped, logged
    return found


def _name(name: str) -> str:
    return name.replace("_checkpoint_wrapped_module.", "")


if __name__ == "__main__":
    main(sys.argv[1])
