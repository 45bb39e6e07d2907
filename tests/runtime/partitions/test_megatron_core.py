"""Against Megatron-Core itself, where it is installed: its table of micro-batches, and the hook on one of its blocks."""

from __future__ import annotations

import contextlib
import importlib
from itertools import product
from typing import Any

import pytest

from heuristics.catalogue import schedule_named
from pipesched import problem_from
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice
from pipesched.problem.passes import BW, F, Pass
from pipesched.schedule.microbatch_groups import is_taken
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.staged_model import staged
from tests.support.later import later

torch = later("torch")
schedules = later("megatron.core.pipeline_parallel.schedules")


def core(name: str) -> Any:
    """A module of Megatron-Core."""
    return importlib.import_module(f"megatron.core.{name}")


@pytest.mark.parametrize(("p", "v"), [*product((2, 3, 4), (2, 3))])
def test_orders_are_those_of_its_schedule_table(p: int, v: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state = schedules.parallel_state
    monkeypatch.setattr(state, "get_pipeline_model_parallel_world_size", lambda: p)
    monkeypatch.setattr(state, "get_virtual_pipeline_model_parallel_world_size", lambda: v)
    for m, group in product(range(p, 16), range(p, 16)):
        if not is_taken(m, p, group):
            continue
        times = {"forward": 1, "backward": 2}
        problem = problem_from(
            {"devices": p, "microbatches": m, "placement": "interleaved", "chunks": v, "times": times}
        )
        order = schedule_named(f"interleaved-1f1b:{group}").order(problem)
        table = schedules.get_schedule_table(m, v, group)
        for d in range(p):
            monkeypatch.setattr(state, "get_pipeline_model_parallel_rank", lambda d=d: d)
            _, _, first, rest = schedules.get_pp_rank_microbatches(m, v, group)
            forwards = [Pass(F, chunk * p + d, j) for j, chunk in table]
            backwards = [Pass(BW, (v - 1 - chunk) * p + d, j) for j, chunk in table]
            pairs = [one for at in range(rest) for one in (forwards[first + at], backwards[at])]
            assert list(order.passes_on(d)) == [*forwards[:first], *pairs, *backwards[rest:]], (m, group, d)


def test_a_block_recomputes_what_the_hook_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of four layers of which the flag says three and the hook two; on one CPU."""
    parallel_state, transformer_block = core("parallel_state"), core("transformer.transformer_block")
    tracker = core("tensor_parallel.random").CudaRNGStatesTracker
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    monkeypatch.setattr(tracker, "fork", lambda self, name=None: contextlib.nullcontext())
    monkeypatch.setattr(parallel_state, "get_pipeline_model_parallel_rank", lambda: 1)
    block_type = transformer_block.TransformerBlock
    monkeypatch.setattr(block_type, "__init__", block_type.__init__)
    ways = [{"name": "full", "time": 1, "keeps": 0}]
    layers = [{"name": "moe", "count": 8, "forward": 1, "backward": 2, "recompute": ways}]
    plan = plan_problem_from({"devices": 2, "microbatches": 4, "layers": layers, "placement": "linear"})
    again = ((Recomputed("moe", "full", 3),), (Recomputed("moe", "full", 2),))
    model = staged(plan.model, Partition((4, 4), again), Choice("linear", 1).on(2), 4, "1f1b")
    exec(compile(PARTITION_FORMATS["megatron-hook"].write(model).text, "hook", "exec"), {})
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        parallel_state.initialize_model_parallel(1, 1)
        config = core("transformer.transformer_config").TransformerConfig(
            num_layers=4, hidden_size=16, ffn_hidden_size=64, num_attention_heads=2, use_cpu_initialization=True,
            recompute_granularity="full", recompute_method="block", recompute_num_layers=3,
            masked_softmax_fusion=False, bias_dropout_fusion=False, persist_layer_norm=False, apply_rope_fusion=False,
            gradient_accumulation_fusion=False,
        )  # fmt: skip
        block = block_type(
            config=config, spec=core("models.gpt.gpt_layer_specs").get_gpt_layer_local_spec(), vp_stage=None
        )
        recomputed: list[object] = []

        def noted(function: Any, _: object, *given: object) -> object:
            recomputed.append(function)
            return function(*given)

        monkeypatch.setattr(transformer_block.tensor_parallel, "checkpoint", noted)
        mask = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
        block(hidden_states=torch.randn(3, 2, 16, requires_grad=True), attention_mask=mask).sum().backward()
        assert len(recomputed) == 2 and config.recompute_num_layers == 3
    finally:
        parallel_state.destroy_model_parallel()
        torch.distributed.destroy_process_group()
