"""Data, words and refusals of what runs inside Megatron-Core, one part at a time, in this process."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from runtime.execution import program
from runtime.megatron.batches import NumberedBatches
from tests.support.later import later

torch = later("torch")
call, placement = (later(f"runtime.megatron.{name}", "megatron.core") for name in ("call", "placement"))


def read(batches: NumberedBatches, microbatch: int, items: int) -> list[int]:
    batches.begin(microbatch)
    found = [next(batches) for _ in range(items)]
    batches.end()
    return found


def test_every_microbatch_has_its_own_items_in_any_order_and_again() -> None:
    batches = NumberedBatches(iter(range(12)))
    assert read(batches, 0, 2) == [0, 1]
    assert read(batches, 3, 2) == [6, 7]
    assert read(batches, 1, 2) == [2, 3] == read(batches, 1, 2)
    batches.forget(1)
    assert read(batches, 0, 2) == [0, 1]


def test_a_chunk_that_reads_nothing_takes_nothing() -> None:
    source = iter(range(4))
    batches = NumberedBatches(source)
    assert read(batches, 2, 0) == [] and next(source) == 0


@pytest.mark.parametrize(("order", "reads"), [((0, 1), (1, 2)), ((0, 1), (2, 1)), ((1, 0), (2, 2))])
def test_forwards_that_read_another_number_of_items_are_refused(order: tuple[int, int], reads: tuple[int, int]) -> None:
    batches = NumberedBatches(iter(range(9)))
    with pytest.raises(ValueError, match="allowed: "):
        for microbatch, items in zip(order, reads, strict=True):
            read(batches, microbatch, items)


def test_words_are_read_as_they_are_written() -> None:
    for word in ("F0.3", "send1:F0.3", "recv12:BW3.10", "Rb1.2", "O0.4@1!F0.4!L0.0", "W1.0"):
        assert str(program._step(word)) == word
    with pytest.raises(ValueError, match="in a program; allowed"):
        program._step("X0.1")


def arguments(**config: Any) -> dict[str, Any]:
    settings = SimpleNamespace(**({"no_sync_func": None, "hidden_size": 4} | config))
    model = torch.nn.Module()
    model.config = settings
    groups = SimpleNamespace(cp=SimpleNamespace(size=lambda: config.get("cp", 1)), pp=None)
    return {
        "forward_step_func": None,
        "model": [model],
        "data_iterator": None,
        "pg_collection": groups,
        "num_microbatches": 4,
        "seq_length": 8,
        "micro_batch_size": 2,
    }


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"sequence_parallel": True}, "sequence parallelism"),
        ({"cp": 2}, "context parallelism"),
        ({"cuda_graph_impl": "local"}, "CUDA graphs"),
        ({"variable_seq_lengths": True}, "variable sequence lengths"),
        ({"fine_grained_activation_offloading": True}, "Megatron's own offloading"),
        ({"overlap_moe_expert_parallel_comm": True}, "overlapped expert communication"),
    ],
)
def test_what_was_never_run_is_refused_in_a_sentence(config: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError) as refusal:
        call.call_of(arguments(**config))
    assert str(refusal.value) == f"pipesched: a schedule of its own was never run in Megatron with {what}"


def test_fsdp_is_refused() -> None:
    given = arguments()
    given["model"][0].ddp_config = SimpleNamespace(use_megatron_fsdp=True)
    with pytest.raises(ValueError, match="with FSDP"):
        call.call_of(given)
    assert call.call_of(arguments()).shape == (8, 2, 4)


@pytest.mark.parametrize(("ranks", "chunks"), [(2, 1), (4, 2)])
def test_a_schedule_for_another_pipeline_is_refused(ranks: int, chunks: int) -> None:
    document = {"schedule": "mine", "microbatches": 4, "rank_of_stage": [0, 1, 2, 3], "rows": [""] * 4, "offloaded": []}
    made = call.call_of(arguments())._replace(
        group=SimpleNamespace(size=lambda: ranks, rank=lambda: 0), chunks=[torch.nn.Module()] * chunks
    )
    with pytest.raises(ValueError, match=f"mine is for 4 ranks and 4 stages; found {ranks} ranks with {chunks} model"):
        call.check_fits(made, program.program_of(document))


def chunk_of(pattern: str, layers: list[str], offset: int) -> Any:
    numbers = [SimpleNamespace(layer_number=offset + 1 + at) for at in range(len(layers))]
    return SimpleNamespace(hybrid_layer_pattern=pattern, decoder=SimpleNamespace(layers=numbers))


def test_a_hybrid_model_in_a_v_is_built_from_the_segments_of_its_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Megatron's own places chunk 1 of rank 0 would have stage 2."""
    pattern = "*-*-|*-|*|-*-"
    document = {"schedule": "v", "microbatches": 4, "rank_of_stage": [0, 1, 1, 0], "rows": [""] * 2, "offloaded": []}
    allocation: Any = ModuleType("megatron.allocation")
    importer: Any = ModuleType("megatron.importer")  # has imported the function by its name
    allocation.validate_segment_layers, allocation.select_pipeline_segment = list, lambda *_: None
    importer.select_pipeline_segment = allocation.select_pipeline_segment
    for module in (allocation, importer):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    v = program.program_of(document)
    placement._select_segments(v, allocation)
    assert importer.select_pipeline_segment is allocation.select_pipeline_segment
    found = {}
    for rank in range(2):
        monkeypatch.setattr(placement.dist, "get_rank", lambda group, rank=rank: rank)
        for number, stage in enumerate(v.stages_of(rank)):
            layers, offset = allocation.select_pipeline_segment(pattern, None, number, first_stage_layers=None)
            found[stage] = ("".join(layers), offset)
            built = chunk_of(f"{pattern}/*-", layers, offset)
            assert placement.is_placed(None, built, stage)
            assert not any(placement.is_placed(None, built, other) for other in range(4) if other != stage)
    assert found == {0: ("*-*-", 0), 1: ("*-", 4), 2: ("*", 6), 3: ("-*-", 7)}
    with pytest.raises(ValueError, match=r"found 2 segments in --hybrid-layer-pattern; allowed: the 4 stages"):
        allocation.select_pipeline_segment("*-|*-", None, 0)
