"""Data parallelism and weight gradients of what runs inside Megatron-Core, one part at a time, in this process."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.later import later

torch = later("torch")
reductions, transformer_engine, weight_gradients = (
    later(f"runtime.megatron.{name}", "torch", "megatron.core")
    for name in ("reductions", "transformer_engine", "weight_gradients")
)


class Group:
    """A bucket group of one weight, as far as it is used here."""

    def __init__(self) -> None:
        self.ready: list[Any] = []

    def register_grad_ready(self, weight: Any, force: bool) -> None:
        self.ready.append((weight, force))


@pytest.fixture
def chunk() -> Any:
    """A linear of Megatron under data parallelism, as far as it is used here."""
    made: Any = torch.nn.Module()
    weight = torch.nn.Parameter(torch.ones(2))
    linear = torch.nn.Module()
    linear.__class__ = type("Linear", (weight_gradients.layers.ColumnParallelLinear,), {})
    linear.weight = weight
    made.linear = linear
    made.ddp_config = SimpleNamespace(overlap_grad_reduce=True)
    made.group = Group()
    made.param_to_bucket_group = {weight: made.group}
    made.held = 0

    @contextlib.contextmanager
    def no_sync() -> Iterator[None]:
        made.held += 1
        yield
        made.held -= 1

    made.no_sync = no_sync
    return made


def begun(chunk: Any, grad_sync: Any = None) -> Any:
    config = SimpleNamespace(no_sync_func=chunk.no_sync, grad_sync_func=grad_sync)
    return reductions.Reductions(config, [chunk], False)


def test_a_weight_is_ready_after_its_last_w_and_not_before(chunk: Any) -> None:
    one = begun(chunk)
    assert chunk.param_to_bucket_group == {} and chunk.held == 1
    one.last_backward(0)
    assert chunk.held == 0 and not chunk.group.ready
    one.last_weight(0)
    assert chunk.group.ready == [(chunk.linear.weight, False)]
    assert chunk.param_to_bucket_group == {chunk.linear.weight: chunk.group}


def test_with_a_function_for_reductions_nothing_is_reduced_before_it(chunk: Any) -> None:
    called: list[Any] = []
    one = begun(chunk, lambda parameters: called.append((list(parameters), chunk.held)))
    one.last_backward(0)
    assert chunk.held == 1
    one.last_weight(0)
    assert called == [([chunk.linear.weight], 0)] and not chunk.group.ready


def test_an_iteration_that_failed_leaves_data_parallelism_as_it_was(chunk: Any) -> None:
    begun(chunk).close()
    assert chunk.param_to_bucket_group == {chunk.linear.weight: chunk.group}
    assert chunk.held == 0 and not chunk.group.ready


def test_what_autograd_gives_a_hidden_weight_is_added(chunk: Any) -> None:
    """A weight that is an embedding too: only its linear's gradient is put aside."""
    weight: Any = chunk.linear.weight
    weight.main_grad = torch.full((2,), 2.0)
    one = begun(chunk)
    weight.grad = torch.ones(2)
    one.add_gradients(0)
    assert weight.main_grad.tolist() == [3, 3] and weight.grad is None


@pytest.mark.parametrize("fused", [False, True])
def test_transformer_engines_weights_are_hidden_too(chunk: Any, fused: bool) -> None:
    """Each W writes its own gradient to `.grad`, or adds it to `main_grad` itself and leaves what is no gradient."""
    weight: Any = torch.nn.Parameter(torch.ones(2))
    weight.skip_backward_post_hook, weight.main_grad, weight.grad_added_to_main_grad = True, torch.zeros(2), fused
    chunk.other = weight
    chunk.param_to_bucket_group[weight] = chunk.group
    one = begun(chunk)
    assert chunk.param_to_bucket_group == {}
    one.last_backward(0)
    for _ in range(3):
        weight.grad = torch.full((2,), 5.0)
        one.add_gradients(0)
    assert weight.main_grad.tolist() == ([0, 0] if fused else [15, 15]) and not chunk.group.ready
    one.last_weight(0)
    assert [ready for ready, _ in chunk.group.ready] == [chunk.linear.weight, weight]


def module(delays: bool) -> Any:
    """Leaves weight gradients in a queue, as Transformer Engine's modules do that were built to."""
    made: Any = torch.nn.Module()
    made.waiting, made.done = deque[int](), list[int]()
    made.wgrad_store = SimpleNamespace(delay_wgrad_compute=lambda: delays)
    made.backward_dw = lambda: made.done.append(made.waiting.popleft())
    return made


def test_modules_that_delay_weight_gradients_compute_the_earliest_in_w() -> None:
    delayed, other = module(True), module(False)
    with pytest.warns(UserWarning, match="so W takes no time: call delay_transformer_engine"):
        weights = weight_gradients.WeightGradients([torch.nn.ModuleList([delayed, other])], True)
    for number in range(2):
        with weights.put_aside(0, number):
            delayed.waiting.append(number)
    assert delayed.done == []
    weights.compute(0, 0)
    assert delayed.done == [0] and list(delayed.waiting) == [1] and other.done == []


def test_without_w_nothing_is_said_of_modules_that_do_not_delay(recwarn: pytest.WarningsRecorder) -> None:
    weight_gradients.WeightGradients([module(False)], False)
    weight_gradients.WeightGradients([module(True)], True)
    assert not recwarn.list


def test_models_and_data_parallelism_are_made_to_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the check of Megatron's configuration, which asks for overlapped expert communication, also on a copy."""
    model, parallel = transformer_engine.TransformerConfig, transformer_engine.DistributedDataParallelConfig
    monkeypatch.setattr(model, "__post_init__", model.__post_init__)
    monkeypatch.setattr(parallel, "__init__", parallel.__init__)
    shape = {"num_layers": 1, "hidden_size": 4, "num_attention_heads": 1}
    with pytest.raises(AssertionError, match="overlap_moe_expert_parallel_comm"):
        model(**shape, delay_wgrad_compute=True)
    assert not model(**shape).delay_wgrad_compute
    transformer_engine.delay_transformer_engine()
    made = model(**shape)
    assert made.delay_wgrad_compute and dataclasses.replace(made).delay_wgrad_compute
    assert parallel(overlap_grad_reduce=True).delay_wgrad_compute
