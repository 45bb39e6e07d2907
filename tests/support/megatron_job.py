"""A tiny model in Megatron-Core and its training step, as one of several processes has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state as state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel import get_forward_backward_func, utils
from megatron.core.transformer.transformer_config import TransformerConfig

RANKS, SEQUENCE, SAMPLES, VOCABULARY = 4, 8, 2, 32
_SIZES: list[tuple[int, int, int]] = []


class Job:
    """The model of one process and its training step, for a test case (sizes, options) and a placement of stages on
    ranks."""

    def __init__(self, case: dict[str, Any], rank_of_stage: list[int]) -> None:
        self.case, self.chunks_each, self.pp = case, case.get("chunks", 1), case.get("pp", RANKS)
        self.float = getattr(torch, case.get("dtype", "float32"))
        virtual = self.chunks_each if self.chunks_each > 1 else None
        _initialize(case.get("tp", 1), self.pp, case.get("ep", 1))
        state.set_virtual_pipeline_model_parallel_world_size(virtual)
        self.config = TransformerConfig(**self._config(virtual))
        self.stages = [s for s, where in enumerate(rank_of_stage) if where == state.get_pipeline_model_parallel_rank()]
        self.chunks = [self._chunk(number) for number in range(self.chunks_each)]
        if "ddp" in case:
            self._wrap(case["ddp"])

    def _config(self, virtual: int | None) -> dict[str, Any]:
        more = self.case.get("config", {})
        return {
            "num_layers": self._layers(),
            "hidden_size": 16,
            "num_attention_heads": 2,
            "use_cpu_initialization": True,
            "pipeline_dtype": self.float,
            "params_dtype": self.float,
            "tensor_model_parallel_size": self.case.get("tp", 1),
            "expert_model_parallel_size": self.case.get("ep", 1),
            "pipeline_model_parallel_size": self.pp,
            "virtual_pipeline_model_parallel_size": virtual,
            "attention_dropout": 0.0,
            "hidden_dropout": 0.0,
            "gradient_accumulation_fusion": False,
            "bias_dropout_fusion": False,
            "masked_softmax_fusion": False,
            "apply_rope_fusion": False,
            "deallocate_pipeline_outputs": True,
            "batch_p2p_comm": False,
            "attention_softmax_in_fp32": self.float is not torch.float64,
        } | more

    def _layers(self) -> int:
        """The number of letters in a HybridModel's pattern without bars and what follows `/`; else one layer a chunk."""
        pattern = self.case.get("pattern", "").partition("/")[0]
        return len(pattern.replace("|", "")) or self.pp * self.chunks_each

    def _chunk(self, number: int) -> Any:
        torch.manual_seed(10 + self.stages[number])
        group, virtual = state.get_pipeline_model_parallel_group(), self.config.virtual_pipeline_model_parallel_size
        settings = {
            "vocab_size": VOCABULARY,
            "max_sequence_length": SEQUENCE,
            "pre_process": utils.is_pp_first_stage(group) and utils.is_vp_first_stage(number, virtual),
            "post_process": utils.is_pp_last_stage(group) and utils.is_vp_last_stage(number, virtual),
            "share_embeddings_and_output_weights": self.case.get("tied", False),
            "position_embedding_type": "rope",
            "vp_stage": number if self.chunks_each > 1 else None,
        }
        if "pattern" in self.case:
            from tests.support.megatron_hybrid import hybrid_model

            pattern = self.case["pattern"]
            return hybrid_model(self.config, pattern, self.case.get("experts"), **settings).to(self.float)
        spec = get_gpt_layer_local_spec(self.case.get("experts"), False)
        mtp = get_gpt_mtp_block_spec(self.config, spec, False) if self.config.mtp_num_layers else None
        return GPTModel(self.config, spec, mtp_block_spec=mtp, **settings).to(self.float)

    def _wrap(self, options: dict[str, Any]) -> None:
        config = DistributedDataParallelConfig(bucket_size=1000, **{"average_in_collective": False} | options)
        self.chunks = [DistributedDataParallel(self.config, config, chunk) for chunk in self.chunks]
        self.config.finalize_model_grads_func = finalize_model_grads
        if config.overlap_grad_reduce:
            functions = [chunk.no_sync for chunk in self.chunks]
            self.config.no_sync_func = functions if len(functions) > 1 else functions[0]
        if self.case.get("aligned"):
            self.config.grad_sync_func = [chunk.start_grad_sync for chunk in self.chunks]
            self.config.param_sync_func = [chunk.start_param_sync for chunk in self.chunks]
            if len(self.chunks) == 1:
                (self.config.grad_sync_func,) = self.config.grad_sync_func
                (self.config.param_sync_func,) = self.config.param_sync_func

    def _forget_what_others_hold(self) -> None:
        """Overwrite with NaN, under a distributed optimizer, the parameters that this rank is to gather from others."""
        for chunk in self.chunks:
            for group in chunk.bucket_groups + chunk.expert_parallel_bucket_groups:
                for bucket in () if group.param_gather_dispatched else group.buckets:
                    shards = bucket.param_data.view(group.intra_distributed_optimizer_instance_size, -1)
                    for rank, shard in enumerate(shards):
                        if rank != group.intra_distributed_optimizer_instance_rank:
                            shard.fill_(float("nan"))

    def _whole_gradients(self) -> None:
        """Gather, under a distributed optimizer, the gradient shards of all ranks, so that each has whole gradients."""
        for chunk in self.chunks:
            for group in chunk.bucket_groups + chunk.expert_parallel_bucket_groups:
                for bucket in group.buckets:
                    shards = bucket.grad_data.view(group.intra_distributed_optimizer_instance_size, -1)
                    own = shards[group.intra_distributed_optimizer_instance_rank].clone()
                    dist.all_gather([*shards], own, group=group.intra_distributed_optimizer_instance_group)

    def _data(self, microbatches: int) -> Iterator[Any]:
        generator = torch.Generator().manual_seed(7 + state.get_data_parallel_rank())
        for _ in range(microbatches):
            yield torch.randint(0, VOCABULARY, (SAMPLES, SEQUENCE), generator=generator)

    @staticmethod
    def _forward(data: Iterator[Any], model: Any) -> Any:
        tokens = next(data)
        places = torch.arange(SEQUENCE).unsqueeze(0).expand(SAMPLES, SEQUENCE)
        output = model(tokens, places, torch.ones(1, 1, SEQUENCE, SEQUENCE).tril() < 0.5, labels=tokens)
        return output, lambda losses: (losses.mean(), {"loss": losses.detach().double().mean().item()})

    def step(self, microbatches: int, forward_only: bool = False) -> tuple[list[float], dict[str, Any]]:
        """Run a step; return the losses by micro-batch, and every parameter's gradient by its name (None: it has
        none)."""
        for chunk in self.chunks:
            chunk.zero_grad_buffer() if "ddp" in self.case else chunk.zero_grad()
        if self.case.get("ddp", {}).get("overlap_param_gather"):
            self._forget_what_others_hold()
        several = self.chunks_each > 1
        losses = get_forward_backward_func()(
            forward_step_func=self._forward,
            data_iterator=[self._data(microbatches) for _ in self.chunks] if several else self._data(microbatches),
            model=self.chunks if several else self.chunks[0],
            num_microbatches=microbatches,
            seq_length=SEQUENCE,
            micro_batch_size=SAMPLES,
            forward_only=forward_only,
        )
        if self.case.get("ddp", {}).get("use_distributed_optimizer") and not forward_only:
            self._whole_gradients()
        gradients = {
            f"{stage}.{name}": None if (found := _gradient(one)) is None else found.clone()
            for stage, chunk in zip(self.stages, self.chunks, strict=True)
            for name, one in chunk.named_parameters()
        }
        return [one["loss"] for rank in of_all_ranks(losses) for one in rank], gradients


def _initialize(tensor: int, pipeline: int, expert: int) -> None:
    """Make Megatron's process groups, or keep those of the case before if they have the same sizes: making them takes
    long."""
    if _SIZES and _SIZES[-1] == (tensor, pipeline, expert):
        return
    if _SIZES:
        state.destroy_model_parallel()
    state.initialize_model_parallel(tensor, pipeline, expert_model_parallel_size=expert)
    _SIZES.append((tensor, pipeline, expert))


def _gradient(parameter: Any) -> Any:
    return parameter.main_grad if hasattr(parameter, "main_grad") else parameter.grad


def of_all_ranks(one: Any) -> list[Any]:
    """Return the values that all ranks of this pipeline have, by rank."""
    group = state.get_pipeline_model_parallel_group()
    found = [None] * group.size()
    dist.all_gather_object(found, one, group=group)
    return found
