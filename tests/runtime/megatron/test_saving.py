"""Offloading and recomputation of what runs inside Megatron-Core, one part at a time, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.execution import program
from tests.support.later import later

torch = later("torch")
random_state = later("runtime.megatron.random_state", "megatron.core")
saved, streams = (later(f"runtime.execution.{name}") for name in ("saved", "streams"))


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
        "compute runs F0.0", "a waits for compute runs F0.0", "a runs O0.0", "compute waits for a runs O0.0",
        "compute runs F0.1", "b waits for a runs O0.0", "b runs L0.0", "compute waits for b runs L0.0",
        "compute runs B0.0",
    ]  # fmt: skip
