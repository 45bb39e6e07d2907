"""Configurations of published models, as Hugging Face has them, with their parameters in billions."""

from __future__ import annotations

from typing import Any


def hf(
    kind: str, layers: int, hidden: int, heads: int, kv: int, ffn: int, vocabulary: int, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv, "intermediate_size": ffn, "vocab_size": vocabulary,
    } | more  # fmt: skip


def latent(rank: int | None) -> dict[str, Any]:
    return {
        "q_lora_rank": rank,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    }


def routed(number: int, per_token: int, ffn: int, shared: int = 0, dense: int = 0) -> dict[str, Any]:
    return {"n_routed_experts": number, "num_experts_per_tok": per_token, "moe_intermediate_size": ffn,
            "n_shared_experts": shared, "first_k_dense_replace": dense}  # fmt: skip


QWEN_MOE = {
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "head_dim": 128,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
# The configuration's keys and the billions of parameters that the model's card or report states (text model).
PUBLISHED: dict[str, tuple[dict[str, Any], float]] = {
    "Llama 3.1 8B": (hf("llama", 32, 4096, 32, 8, 14336, 128256, tie_word_embeddings=False), 8.03),
    "Llama 3.1 70B": (hf("llama", 80, 8192, 64, 8, 28672, 128256), 70.6),
    "Llama 3.1 405B": (hf("llama", 126, 16384, 128, 8, 53248, 128256), 405.9),
    "Llama 3.2 1B": (hf("llama", 16, 2048, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True), 1.24),
    "Mistral 7B v0.3": (hf("mistral", 32, 4096, 32, 8, 14336, 32768), 7.25),
    "Mixtral 8x7B": (hf("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2), 46.7),
    "Qwen2.5 7B": (hf("qwen2", 28, 3584, 28, 4, 18944, 152064, tie_word_embeddings=False), 7.62),
    "Qwen3 0.6B": (hf("qwen3", 28, 1024, 16, 8, 3072, 151936, head_dim=128, tie_word_embeddings=True), 0.6),
    "Qwen3 32B": (hf("qwen3", 64, 5120, 64, 8, 25600, 151936, head_dim=128), 32.8),
    "Qwen3 30B-A3B": (hf("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, moe_intermediate_size=768, **QWEN_MOE), 30.5),
    "Qwen3 235B-A22B": (hf("qwen3_moe", 94, 4096, 64, 4, 12288, 151936, moe_intermediate_size=1536, **QWEN_MOE), 235.1),
    "Gemma 2 9B": (hf("gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256), 9.24),
    "Gemma 3 27B": (
        {"model_type": "gemma3",
         "text_config": hf("gemma3_text", 62, 5376, 32, 16, 21504, 262208, head_dim=128, sliding_window=1024)},
        27.0,
    ),
    # As published: what its class in transformers has as a default is left out.
    "Gemma 3 4B": (
        {"model_type": "gemma3", "mm_tokens_per_image": 256, "vision_config": {"model_type": "siglip_vision_model"},
         "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                         "num_hidden_layers": 34, "sliding_window": 1024,
                         "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}},
        3.88,
    ),
    # 109 and 402 billion with 1.4 of what encodes images, of which the text model is all but that.
    "Llama 4 Scout": (
        {"model_type": "llama4", "vision_config": {"model_type": "llama4_vision_model"},
         "text_config": hf("llama4_text", 48, 5120, 40, 8, 8192, 202048, head_dim=128, num_local_experts=16,
                           num_experts_per_tok=1, interleave_moe_layer_step=1, intermediate_size_mlp=16384,
                           attention_chunk_size=8192, tie_word_embeddings=False)},
        107.8,
    ),
    "Llama 4 Maverick": (
        {"model_type": "llama4",
         "text_config": hf("llama4_text", 48, 5120, 40, 8, 8192, 202048, head_dim=128, num_local_experts=128,
                           num_experts_per_tok=1, interleave_moe_layer_step=2, intermediate_size_mlp=16384)},
        400.7,
    ),
    # All keys in one section, as its file has them.
    "Qwen2.5-VL 7B": (
        hf("qwen2_5_vl", 28, 3584, 28, 4, 18944, 152064, tie_word_embeddings=False, sliding_window=32768,
           use_sliding_window=False, vision_config={"depth": 32, "hidden_size": 1280}),
        7.62,
    ),
    "Apertus 8B": (hf("apertus", 32, 4096, 32, 8, 21504, 131072, tie_word_embeddings=False), 8.05),
    "ERNIE 4.5 21B-A3B": (
        hf("ernie4_5_moe", 28, 2560, 20, 4, 12288, 103424, tie_word_embeddings=True, moe_num_experts=64, moe_k=6,
           moe_intermediate_size=1536, moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=27),
        21.8,
    ),
    "BLOOM": ({"model_type": "bloom", "n_layer": 70, "n_embed": 14336, "num_attention_heads": 112, "vocab_size": 250880}, 176.2),
    "Phi 3 mini": (hf("phi3", 32, 3072, 32, 32, 8192, 32064), 3.82),
    "OLMo 2 7B": (hf("olmo2", 32, 4096, 32, 32, 11008, 100352), 7.3),
    "GPT-2": ({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_inner": None}, 0.124),
    "gpt-oss 120B": (
        hf("gpt_oss", 36, 2880, 64, 8, 2880, 201088, head_dim=64, num_local_experts=128, num_experts_per_tok=4), 116.8,
    ),
    "DeepSeekMoE 16B": (hf("deepseek", 28, 2048, 16, 16, 10944, 102400, **routed(64, 6, 1408, 2, 1)), 16.4),
    "DeepSeek-V2-Lite": (hf("deepseek_v2", 27, 2048, 16, 16, 10944, 102400, **latent(None), **routed(64, 6, 1408, 2, 1)), 15.7),
    "DeepSeek-V3": (
        hf("deepseek_v3", 61, 7168, 128, 128, 18432, 129280, num_nextn_predict_layers=1, moe_layer_freq=1, **latent(1536),
           **routed(256, 8, 2048, 1, 3)), 671.0,
    ),
    "Kimi K2": (hf("kimi_k2", 61, 7168, 64, 64, 18432, 163840, **latent(1536), **routed(384, 8, 2048, 1, 1)), 1026.4),
    "GLM-4.5": (hf("glm4_moe", 92, 5120, 96, 8, 12288, 151552, head_dim=128, **routed(160, 8, 1536, 1, 3)), 355),
    "GLM-4.7-Flash": (
        hf("glm4_moe_lite", 47, 2048, 20, 20, 10240, 154880, q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=192,
           qk_rope_head_dim=64, v_head_dim=256, num_nextn_predict_layers=1, **routed(64, 4, 1536, 1, 1)), 30,
    ),
    "Qwen1.5-MoE A2.7B": (
        hf("qwen2_moe", 24, 2048, 16, 16, 5632, 151936, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
           shared_expert_intermediate_size=5632), 14.3,
    ),
}  # fmt: skip
