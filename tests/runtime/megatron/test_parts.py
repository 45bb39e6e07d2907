"""Parts of what runs inside Megatron-Core, one by one, in this process."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.megatron.batches import NumberedBatches

torch: Any = pytest.importorskip("torch")
call: Any = pytest.importorskip("runtime.megatron.call", exc_type=ImportError)
reductions: Any = pytest.importorskip("runtime.megatron.reductions", exc_type=ImportError)
weight_gradients: Any = pytest.importorskip("runtime.megatron.weight_gradients", exc_type=ImportError)


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


class Group:
    """A bucket group of one weight, as far as it is used here."""

    def __init__(self) -> None:
        self.ready: list[Any] = []

    def register_grad_ready(self, weight: Any, force: bool) -> None:
        self.ready.append((weight, force))


class Chunk(torch.nn.Module):
    """A linear of Megatron under data parallelism, as far as it is used here."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        linear = torch.nn.Module()
        linear.__class__ = type("Linear", (weight_gradients.layers.ColumnParallelLinear,), {})
        linear.weight = weight
        self.linear = linear
        self.ddp_config = SimpleNamespace(overlap_grad_reduce=True)
        self.group = Group()
        self.param_to_bucket_group = {weight: self.group}
        self.held = 0

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        self.held += 1
        yield
        self.held -= 1


@pytest.fixture
def chunk() -> Chunk:
    return Chunk(torch.nn.Parameter(torch.ones(2)))


def begun(chunk: Chunk, grad_sync: Any = None) -> Any:
    config = SimpleNamespace(no_sync_func=chunk.no_sync, grad_sync_func=grad_sync)
    return reductions.Reductions(config, [chunk], False)


def test_a_weight_is_ready_after_its_last_w_and_not_before(chunk: Chunk) -> None:
    one = begun(chunk)
    assert chunk.param_to_bucket_group == {} and chunk.held == 1
    one.last_backward(0)
    assert chunk.held == 0 and not chunk.group.ready
    one.last_weight(0)
    assert chunk.group.ready == [(chunk.linear.weight, False)]
    assert chunk.param_to_bucket_group == {chunk.linear.weight: chunk.group}


def test_with_a_function_for_reductions_nothing_is_reduced_before_it(chunk: Chunk) -> None:
    called: list[Any] = []
    one = begun(chunk, lambda parameters: called.append((list(parameters), chunk.held)))
    one.last_backward(0)
    assert chunk.held == 1
    one.last_weight(0)
    assert called == [([chunk.linear.weight], 0)] and not chunk.group.ready


def test_an_iteration_that_failed_leaves_data_parallelism_as_it_was(chunk: Chunk) -> None:
    begun(chunk).close()
    assert chunk.param_to_bucket_group == {chunk.linear.weight: chunk.group}
    assert chunk.held == 0 and not chunk.group.ready


def test_what_autograd_gives_a_hidden_weight_is_added(chunk: Chunk) -> None:
    """A weight that is an embedding too: only its linear's gradient is put aside."""
    weight: Any = chunk.linear.weight
    weight.main_grad = torch.full((2,), 2.0)
    one = begun(chunk)
    weight.grad = torch.ones(2)
    one.after_backward(0)
    assert weight.main_grad.tolist() == [3, 3] and weight.grad is None


class Delayed(torch.nn.Module):
    """Leaves weight gradients in a queue, as Transformer Engine's modules do that were built to."""

    def __init__(self, delays: bool) -> None:
        super().__init__()
        self.waiting, self.done = deque[int](), list[int]()
        self.wgrad_store = SimpleNamespace(delay_wgrad_compute=lambda: delays)

    def backward_dw(self) -> None:
        self.done.append(self.waiting.popleft())


def test_modules_that_delay_weight_gradients_compute_the_earliest_in_w() -> None:
    delayed, other = Delayed(True), Delayed(False)
    weights = weight_gradients.WeightGradients([torch.nn.ModuleList([delayed, other])])
    for number in range(2):
        with weights.put_aside(0):
            delayed.waiting.append(number)
    assert delayed.done == []
    weights.compute(0)
    assert delayed.done == [0] and list(delayed.waiting) == [1] and other.done == []


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
