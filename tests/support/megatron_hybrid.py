"""A HybridModel of Megatron-Core (main of 2026-08) from layers that need no Transformer Engine and no GPU."""

from __future__ import annotations

from typing import Any

from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.moe_module_specs import get_moe_module_spec
from megatron.core.models.hybrid import hybrid_block
from megatron.core.models.hybrid.hybrid_model import HybridModel
from megatron.core.ssm.mlp_layer import MLPLayer
from megatron.core.tensor_parallel.layers import ColumnParallelLinear
from megatron.core.transformer import multi_token_prediction as prediction
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from megatron.core.transformer.transformer_layer import (
    MoETransformerLayer,
    TransformerLayer,
    TransformerLayerSubmodules,
)


def hybrid_model(config: Any, pattern: str, experts: int | None, **settings: Any) -> Any:
    """The chunk of a model with this pattern whose letters are *, - and E."""
    blocks: Any = hybrid_block
    blocks.TENorm = WrappedTorchNorm
    predicts: Any = prediction
    predicts.is_inference_column_parallel_linear = lambda _: False
    return HybridModel(config, _spec(experts or 2), hybrid_layer_pattern=pattern, **settings)


def _spec(experts: int) -> Any:
    own: Any = get_gpt_layer_local_spec().submodules
    attention = TransformerLayerSubmodules(
        input_layernorm=own.input_layernorm, self_attention=own.self_attention, self_attn_bda=own.self_attn_bda
    )
    mlp, moe = (
        TransformerLayerSubmodules(pre_mlp_layernorm=own.pre_mlp_layernorm, mlp=one, mlp_bda=own.mlp_bda)
        for one in (own.mlp, get_moe_module_spec(False, experts, False))
    )
    return ModuleSpec(
        module=hybrid_block.HybridStack,
        submodules=hybrid_block.HybridStackSubmodules(
            attention_layer=ModuleSpec(module=TransformerLayer, submodules=attention),
            mlp_layer=ModuleSpec(module=MLPLayer, submodules=mlp),
            moe_layer=ModuleSpec(module=MoETransformerLayer, submodules=moe),
            mtp_block_spec=_prediction(),
        ),
    )


def _prediction() -> Any:
    layer = prediction.MultiTokenPredictionLayerSubmodules(
        enorm=WrappedTorchNorm,
        hnorm=WrappedTorchNorm,
        eh_proj=ColumnParallelLinear,
        mtp_model_layer=None,
        layer_norm=WrappedTorchNorm,
    )
    return ModuleSpec(
        module=prediction.MultiTokenPredictionBlock,
        submodules=prediction.MultiTokenPredictionBlockSubmodules(
            layer_specs=[ModuleSpec(module=prediction.MultiTokenPredictionLayer, submodules=layer)]
        ),
    )
