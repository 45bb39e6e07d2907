"""Parts of what runs inside Megatron-Core, one by one, in this process."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.megatron import program
from runtime.megatron.batches import NumberedBatches

torch: Any = pytest.importorskip("torch")
call: Any = pytest.importorskip("runtime.megatron.call", exc_type=ImportError)
reductions: Any = pytest.importorskip("runtime.megatron.reductions", exc_type=ImportError)
weight_gradients: Any = pytest.importorskip("runtime.megatron.weight_gradients", exc_type=ImportError)
random_state: Any = pytest.importorskip("runtime.megatron.random_state", exc_type=ImportError)
saved: Any = pytest.importorskip("runtime.megatron.saved")
streams: Any = pytest.importorskip("runtime.megatron.streams")


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
        with weights.put_aside(0, number):
            delayed.waiting.append(number)
    assert delayed.done == []
    weights.compute(0, 0)
    assert delayed.done == [0] and list(delayed.waiting) == [1] and other.done == []


def block() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.GELU())


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_saved_tensors_move_out_and_back(share: float) -> None:
    layers, x = block(), torch.randn(4, 8, requires_grad=True)
    layers(x).sum().backward()
    right, x.grad = x.grad, None
    one = saved.Saved([*layers.parameters(), x], share)
    with one.collect():
        output = layers(x)
    held = sum(storage.nbytes() for storage in one._here.values())
    moved = one.move_out()
    assert moved == sum(memory.nbytes() for memory, _ in one._host.values()) and held >= 2 * 4 * 8 * 4
    assert moved == held if share == 1 else moved <= share * held
    assert sum(storage.nbytes() for storage in one._here.values()) == held - moved
    one.move_in()
    output.sum().backward()
    assert torch.equal(x.grad, right)


def test_a_backward_before_what_it_needs_is_back_fails() -> None:
    layers, x = block(), torch.randn(4, 8, requires_grad=True)
    one = saved.Saved([*layers.parameters(), x], 1.0)
    with one.collect():
        output = layers(x)
    one.move_out()
    with pytest.raises(KeyError):
        output.sum().backward()


def test_tensors_that_share_memory_move_once() -> None:
    x = torch.randn(6, 4, requires_grad=True)
    one = saved.Saved([x], 1.0)
    with one.collect():
        y = x * 2
        output = (y[:3] * y[3:]).sum() + (y * y.t().reshape(6, 4)).sum()
    moved = one.move_out()
    assert moved <= 4 * (y.numel() * 3)
    one.move_in()
    output.backward()
    again = x.detach().clone().requires_grad_()
    z = again * 2
    ((z[:3] * z[3:]).sum() + (z * z.t().reshape(6, 4)).sum()).backward()
    assert torch.equal(x.grad, again.grad)


def test_a_forward_that_runs_again_draws_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what comes after it draws what it would have drawn without it."""
    tracker = SimpleNamespace(get_states=dict, set_states=lambda states: None)
    monkeypatch.setattr(random_state.random, "get_cuda_rng_tracker", lambda: tracker)
    monkeypatch.setattr(random_state.random, "_get_cuda_rng_state", lambda: None)
    monkeypatch.setattr(random_state.random, "_set_cuda_rng_state", lambda state: None)
    torch.manual_seed(1)
    state = random_state.RandomState.now()
    first, second = torch.rand(3), torch.rand(3)
    torch.manual_seed(1)
    torch.rand(3)
    with state.again():
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.rand(3), second)


def test_on_a_gpu_steps_wait_for_the_events_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams and events of torch, as far as they are used: which stream waited for what, and ran what, in order."""
    said, names = list[str](), iter("abc")
    current = [SimpleNamespace(name="compute")]

    def stream() -> Any:
        return SimpleNamespace(name=next(names))

    @contextlib.contextmanager
    def inside(one: Any) -> Iterator[None]:
        current.append(one)
        yield
        current.pop()

    def now() -> Any:
        name = current[-1].name
        return SimpleNamespace(
            wait_event=lambda event: said.append(f"{name} waits for {event}"), record_event=lambda: f"{said[-1]}"
        )

    monkeypatch.setattr(streams, "_STREAMS", {})
    monkeypatch.setattr(streams, "_is_gpu", lambda: True)
    monkeypatch.setattr(streams, "_stream", stream)
    monkeypatch.setattr(streams.torch.cuda, "stream", inside)
    monkeypatch.setattr(streams.torch.cuda, "current_stream", now)
    row = [program._step(word) for word in ["F0.0", "O0.0@1!F0.0", "F0.1!O0.0", "L0.0@2!O0.0", "B0.0!L0.0"]]
    one = streams.Streams(row)
    for step in row:
        one.run(step, lambda step: said.append(f"{current[-1].name} runs {step.name}"))
    assert said == [
        "compute runs F0.0",
        "a waits for compute runs F0.0",
        "a runs O0.0",
        "compute waits for a runs O0.0",
        "compute runs F0.1",
        "b waits for a runs O0.0",
        "b runs L0.0",
        "compute waits for b runs L0.0",
        "compute runs B0.0",
    ]


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
