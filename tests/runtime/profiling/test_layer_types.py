"""A profile layer by layer as a plan file: equal layers in one entry, memory that adds up to that of a stage of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pipesched.files.exact_numbers import read_yaml
from pipesched.files.plan_file import plan_problem_from
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.placement import explicit
from runtime.profiling.plan_text import layer_types, plan_text
from runtime.profiling.profile import KINDS, Profile, Request, Samples, StageProfile

MIB = 2**20


def stage(size: int, forward: float, output: int = MIB) -> StageProfile:
    """A layer of `size` MiB of parameters and gradients and four times as much activation, of which B frees a half."""
    seconds = dict(zip(KINDS, (forward, forward, forward / 2, 2 * forward), strict=True))
    held: dict[PassKind, int] = {F: 4 * size, B: -2 * size, W: -2 * size, BW: -4 * size}
    return StageProfile(
        {kind: Samples((one,)) for kind, one in seconds.items()},
        {kind: change * MIB for kind, change in held.items()},
        dict.fromkeys(KINDS, 0),
        size * MIB,
        output,
    )


def profile_of(*stages: StageProfile, model: str = "gpt") -> Profile:
    links = (*[Samples((0.002,))] * (len(stages) - 1), Samples((0.0,)))
    return Profile(Request(explicit(1, [0] * len(stages)), model=model), stages, links)


BLOCKS = [stage(3, 0.010), stage(3, 0.014), stage(3, 0.012)]


def test_equal_layers_make_one_entry() -> None:
    found = layer_types(profile_of(stage(8, 0.001), *BLOCKS, stage(8, 0.005, output=0)))
    assert [(layer.name, layer.count) for layer in found] == [("embedding", 1), ("layer", 3), ("head", 1)]
    embedding, layer, head = found
    assert (layer.forward, layer.backward, layer.weight, layer.fused) == (12, 12, 6, 24)
    assert (layer.memory, layer.activation, layer.freed_by_backward) == (6, 12, 6)
    assert layer.mode("full").keeps == Fraction(1, 12) and layer.mode("full").time == 12
    assert embedding.memory == 16 and head.recompute == ()


def test_layers_of_two_kinds_in_turn_keep_their_names() -> None:
    """Entries of one name have the same costs, so times are the median over all of them."""
    wide = stage(5, 0.030)
    found = layer_types(
        profile_of(BLOCKS[0], wide, BLOCKS[1], BLOCKS[2], wide, wide, stage(5, 0.03, output=0), model="m:f")
    )
    assert [(layer.name, layer.count) for layer in found] == [
        ("layer", 1),
        ("layer-2", 1),
        ("layer", 2),
        ("layer-2", 2),
        ("last", 1),
    ]
    assert found[0].forward == found[2].forward == 12


def test_the_text_is_a_plan_file() -> None:
    found = profile_of(stage(8, 0.001), *BLOCKS, stage(8, 0.005, output=0))
    plan = plan_problem_from(read_yaml(plan_text(found, "mine", 2, 8, "900", "span"), "text"))
    assert plan.cluster.capacity == (900, 900) and plan.cluster.memory_unit == "MiB"
    assert plan.cluster.transfer == 2 and plan.objective.name == "span"
    assert len(plan.model.sequence) == 5
    unlimited = plan_problem_from(read_yaml(plan_text(found, "mine", 2, 8, None, "makespan"), "text"))
    assert unlimited.cluster.capacity is None


def test_layers_measured_apart_take_what_they_take_together() -> None:
    """Bytes of the small GPT's embedding, two blocks and head, each a stage, against one stage of all of them."""
    torch = pytest.importorskip("torch")
    from runtime.pytorch.profiling.chain import bench_of, build_chain

    torch.set_num_threads(1)
    sizes: dict[str, Any] = {"layers": 2, "hidden": 16, "heads": 2, "sequence": 8, "vocabulary": 32}

    def taken(stages: int) -> tuple[int, int]:
        request = Request(explicit(1, [0] * stages), options=sizes, split="store")
        chain, held, parameters = build_chain(request, torch.device("cpu")), 0, 0
        for number in range(stages):
            bench = bench_of(request, chain, number, torch.device("cpu"))
            held += bench.memory()[0][F]
            parameters += bench.bytes_of_parameters()
        return held, parameters

    assert taken(4) == taken(1)
