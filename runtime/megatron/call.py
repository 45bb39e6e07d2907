"""The arguments of one call of Megatron's forward-backward function, and refusals of untested combinations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import schedules
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.utils import get_attr_wrapped_model, get_model_config

from runtime.execution.program import Program
from runtime.megatron.placement import is_placed

_NEVER_TRIED = {
    "sequence_parallel": "sequence parallelism",
    "variable_seq_lengths": "variable sequence lengths",
    "overlap_moe_expert_parallel_comm": "overlapped expert communication",
    "fine_grained_activation_offloading": "Megatron's own offloading",
    "cpu_offloading": "Megatron's own offloading",
    "enable_cuda_graph": "CUDA graphs",
    "external_cuda_graph": "CUDA graphs",
    "defer_embedding_wgrad_compute": "deferred weight gradients of the head",
    "num_microbatches_with_partial_activation_checkpoints": "micro-batches with partial activation checkpoints",
    "fp8": "FP8",
    "fp4": "FP4",
    "hybrid_context_parallel": "hybrid context parallelism",
    "moe_paged_stash": "paged stashes of experts",
}


class Call(NamedTuple):
    """The arguments of one call of Megatron's forward-backward function, on one rank.

    `chunks` are the rank's parts of the model in the order of their stages, `iterators` their data, `groups` all its
    process groups, and `group` that of the pipeline. `shape` is that of a tensor sent between stages: sequence,
    micro-batch size, hidden size. `microbatches` is the number of micro-batches of the call; `first_val_step` is False
    only for a call without backwards that Megatron says is not its first. All else is as Megatron passes it.
    """

    forward_step: Any
    chunks: list[Any]
    iterators: list[Any]
    config: Any
    groups: Any
    group: Any
    microbatches: int
    shape: tuple[int, ...]
    collect_non_loss_data: bool
    force_all_reduce: bool
    first_val_step: bool

    @property
    def rank(self) -> int:
        return int(self.group.rank())

    def empty(self) -> torch.Tensor:
        """Return an empty tensor of the shape that is sent between stages."""
        return torch.empty(self.shape, dtype=self.config.pipeline_dtype, device=torch.cuda.current_device())


def call_of(arguments: Mapping[str, Any]) -> Call:
    """Return the call with these arguments of Megatron; `ValueError` with a sentence for what is not supported."""
    chunks = _listed(arguments["model"])
    config = get_model_config(chunks[0])
    groups = arguments.get("pg_collection") or _default_groups()
    communicator = arguments.get("p2p_communicator")
    _refuse(arguments, config, chunks, groups)
    shape = (arguments["seq_length"] // groups.cp.size(), arguments["micro_batch_size"], config.hidden_size)
    return Call(
        forward_step=arguments["forward_step_func"],
        chunks=chunks,
        iterators=_listed(arguments["data_iterator"]),
        config=config,
        groups=groups,
        group=communicator.pp_group if communicator is not None else groups.pp,
        microbatches=arguments["num_microbatches"],
        shape=shape,
        collect_non_loss_data=arguments.get("collect_non_loss_data", False),
        force_all_reduce=bool(arguments.get("force_all_reduce")),
        first_val_step=not arguments.get("forward_only") or arguments.get("first_val_step") in (None, True),
    )


def check_fits(call: Call, program: Program) -> None:
    """Raise `ValueError` if the schedule is for other numbers of ranks or stages, or its placement is unsupported."""
    ranks = len(program.rows)
    stages = len(program.stages_of(call.rank)) if call.group.size() == ranks else 0
    if not program.is_loop:
        _refuse_there(call, program)
    if (call.group.size(), len(call.chunks)) != (ranks, stages):
        raise ValueError(
            f"pipesched: schedule {program.schedule} is for {ranks} ranks and {len(program.rank_of_stage)} stages; "
            f"found {call.group.size()} ranks with {len(call.chunks)} model chunks"
        )


def _listed(one: Any) -> list[Any]:
    return one if isinstance(one, list) else [one]


def _refuse(arguments: Mapping[str, Any], config: Any, chunks: list[Any], groups: Any) -> None:
    found = [what for name, what in _NEVER_TRIED.items() if getattr(config, name, None)]
    found += ["CUDA graphs"] if getattr(config, "cuda_graph_impl", "none") not in (None, "none") else []
    found += ["context parallelism"] if groups.cp.size() > 1 else []
    found += ["adjust_tensor_shapes_fn"] if arguments.get("adjust_tensor_shapes_fn") is not None else []
    sequence = arguments.get("decoder_seq_length")
    found += ["two sequence lengths"] if sequence not in (None, arguments["seq_length"]) else []
    found += ["FSDP"] if any(_is_sharded(chunk) for chunk in chunks) else []
    one_for_all = config.no_sync_func is not None and not isinstance(config.no_sync_func, list)
    found += ["one no_sync_func for several model chunks"] if one_for_all and len(chunks) > 1 else []
    if found:
        raise ValueError(f"pipesched: a schedule of its own was never run in Megatron with {', '.join(found)}")


def _refuse_there(call: Call, program: Program) -> None:
    """Raise `ValueError` for settings that conflict with stages in places other than Megatron's own."""
    models = [get_attr_wrapped_model(chunk, "pre_process", return_model_obj=True) for chunk in call.chunks]
    stages = program.stages_of(call.rank) if call.group.size() == len(program.rows) else ()
    if not all(is_placed(call.config, *one) for one in zip(models, stages, strict=False)):
        raise ValueError(
            "pipesched: the stages of this schedule are not where Megatron puts them by itself; allowed: the schedule "
            "installed before the model is built, and a --pipeline-model-parallel-layout, or a --hybrid-layer-pattern "
            "with | between its stages"
        )
    found = [
        what
        for what, there in (
            ("tied embeddings", any(getattr(one, "share_embeddings_and_output_weights", False) for one in models)),
            ("multi-token prediction", getattr(call.config, "mtp_num_layers", None)),
        )
        if there
    ]
    if found:
        raise ValueError(f"pipesched: stages in places of their own were never run in Megatron with {', '.join(found)}")


def _is_sharded(chunk: Any) -> bool:
    return "FullyShardedDataParallel" in type(chunk).__name__ or bool(
        getattr(getattr(chunk, "ddp_config", None), "use_megatron_fsdp", False)
    )


def _default_groups() -> Any:
    """Return the groups of `parallel_state` as Megatron's own schedules make them.

    Before 0.17 it has no function for this.
    """
    if hasattr(schedules, "_build_default_pg_collection"):
        return schedules._build_default_pg_collection()
    groups = ProcessGroupCollection()
    groups.tp = parallel_state.get_tensor_model_parallel_group()
    groups.cp = parallel_state.get_context_parallel_group()
    groups.pp = parallel_state.get_pipeline_model_parallel_group()
    groups.embd = parallel_state.get_embedding_group(check_initialized=False)
    groups.pos_embd = parallel_state.get_position_embedding_group(check_initialized=False)
    groups.dp_cp = parallel_state.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=False)
    return groups
