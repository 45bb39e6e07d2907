"""Placement of stages as the schedule has them, such as a V, instead of Megatron's stage s on rank s mod p.

Chunk c of a rank is the c-th of its stages, so the first stage is a chunk 0 and the last stage a last chunk. Megatron
asks a layout how many layers a chunk has and how many precede it, and functions of two modules which rank has an end of
the pipeline. These are replaced before the model is built.
"""

from __future__ import annotations

import sys
from typing import Any

from megatron.core import parallel_state
from megatron.core.pipeline_parallel import utils
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout

from runtime.execution.program import Program


def place(program: Program) -> None:
    """Make Megatron build the stages of each rank where the program runs them."""
    if program.is_loop:
        return
    first, last = program.rank_of_stage[0], program.rank_of_stage[-1]
    _replace(utils, "is_pp_first_stage", lambda pp_group: pp_group.rank() == first)
    _replace(utils, "is_pp_last_stage", lambda pp_group: pp_group.rank() == last)
    _replace(parallel_state, "is_pipeline_first_stage", _end(first, lambda _: 0))
    _replace(parallel_state, "is_pipeline_last_stage", _end(last, lambda chunks: chunks - 1))
    _lay_out(program)


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


def _lay_out(program: Program) -> None:
    """Make layouts built from now on, which list stages in stage order, give each rank its stages."""
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
