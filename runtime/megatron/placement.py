"""Placement of stages as the schedule has them, such as a V, instead of Megatron's stage s on rank s mod p.

Chunk c of a rank is the c-th of its stages, so the first stage is a chunk 0 and the last stage a last chunk. Megatron
asks a layout how many layers a chunk has and how many precede it, a function for the segment of a HybridModel's pattern
that a chunk has, and functions of two modules which rank has an end of the pipeline. These are replaced before the
model is built.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import utils
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout

from runtime.execution.program import Program


def place(program: Program) -> None:
    """Make Megatron build the stages of each rank where the program runs them.

    It replaces functions of Megatron for good. Nothing is changed where the program has Megatron's own placement: stage
    s on rank s mod p.
    """
    if program.is_loop:
        return
    first, last = program.rank_of_stage[0], program.rank_of_stage[-1]
    _replace(utils, "is_pp_first_stage", lambda pp_group: pp_group.rank() == first)
    _replace(utils, "is_pp_last_stage", lambda pp_group: pp_group.rank() == last)
    _replace(parallel_state, "is_pipeline_first_stage", _end(first, lambda _: 0))
    _replace(parallel_state, "is_pipeline_last_stage", _end(last, lambda chunks: chunks - 1))
    _lay_out(program)
    allocation = hybrid_allocation()
    if allocation is not None:
        _select_segments(program, allocation)


def is_placed(config: Any, chunk: Any, stage: int) -> bool:
    """Return True if a model chunk was built after `place`.

    `chunk` is the model without wrappers. A HybridModel must have exactly the layers of this `stage`, which it numbers
    from 1 over the whole model. Any other model must have a layout made after `place`; its layers are not compared.
    """
    pattern = getattr(chunk, "hybrid_layer_pattern", None)
    if pattern is None:
        return hasattr(getattr(config, "pipeline_model_parallel_layout", None), "stages")
    first, layers = _segment(pattern, stage)
    return [layer.layer_number for layer in chunk.decoder.layers] == [first + 1 + n for n in range(len(layers))]


def _end(rank: int, chunk: Any) -> Any:
    """Return a function for Megatron's `is_pipeline_first_stage` or `is_pipeline_last_stage`: True on rank `rank`.

    Unless `ignore_virtual`, it is True there only for the chunk numbered `chunk(number of chunks of a rank)`.
    """

    def is_there(ignore_virtual: bool = True, vp_stage: int | None = None) -> bool:
        chunks = parallel_state.get_virtual_pipeline_model_parallel_world_size()
        if not ignore_virtual and chunks is not None and vp_stage != chunk(chunks):
            return False
        return bool(parallel_state.get_pipeline_model_parallel_rank() == rank)

    return is_there


def _replace(module: Any, name: str, function: Any) -> None:
    """Replace a function in its module, and wherever Megatron has imported it by name."""
    was = getattr(module, name)
    for one in [*sys.modules.values()]:
        if getattr(one, "__name__", "").startswith("megatron.") and vars(one).get(name) is was:
            setattr(one, name, function)


def hybrid_allocation() -> ModuleType | None:
    """Return Megatron's module that cuts the patterns of HybridModels; None for a version without such models."""
    name = "megatron.core.models.hybrid"
    return None if find_spec(name) is None else import_module(f"{name}.hybrid_layer_allocation")


def _select_segments(program: Program, allocation: ModuleType) -> None:
    """Make each chunk of a HybridModel built from now on take the segment of its own stage of the pattern.

    `ValueError` if the pattern has another number of segments than the schedule has stages.
    """

    def segment(main_pattern: str, pp_group: Any, vp_stage: int | None, **_: Any) -> tuple[list[str], int]:
        stages = len(program.rank_of_stage)
        if main_pattern.count("|") + 1 != stages:
            raise ValueError(
                f"pipesched: found {main_pattern.count('|') + 1} segments in --hybrid-layer-pattern; allowed: the "
                f"{stages} stages of schedule {program.schedule}"
            )
        offset, layers = _segment(main_pattern, program.stages_of(dist.get_rank(pp_group))[vp_stage or 0])
        return allocation.validate_segment_layers(layers), offset

    _replace(allocation, "select_pipeline_segment", segment)


def _segment(pattern: str, stage: int) -> tuple[int, str]:
    """Return the number of layers before a stage of a pattern, and the letters of the stage's own layers.

    The part of the pattern after `/`, multi-token prediction, is left out.
    """
    segments = pattern.partition("/")[0].split("|")
    return sum(map(len, segments[:stage])), segments[stage]


def _lay_out(program: Program) -> None:
    """Make layouts built from now on, which list stages in stage order, give each rank its stages.

    The number of a chunk's first layer is counted over the stages before it.
    """
    init, ranks = PipelineParallelLayerLayout.__init__, len(program.rows)

    def placed(self: Any, layout: Any, pipeline_model_parallel_size: int) -> None:
        init(self, layout, pipeline_model_parallel_size)
        stages = [self.layout[stage % ranks][stage // ranks] for stage in range(len(program.rank_of_stage))]
        self.layout = [[stages[stage] for stage in program.stages_of(rank)] for rank in range(ranks)]
        self.stages = stages

    def offset(
        self: Any, layer_type: Any = LayerType.decoder, vp_stage: int | None = None, pp_rank: int | None = None
    ) -> int:
        rank = parallel_state.get_pipeline_model_parallel_rank() if pp_rank is None else pp_rank
        stage = program.stages_of(rank)[vp_stage or 0]
        return sum(layers.count(layer_type) for layers in self.stages[:stage])

    PipelineParallelLayerLayout.from_str.cache_clear()
    PipelineParallelLayerLayout.__init__, PipelineParallelLayerLayout.get_layer_offset = placed, offset
