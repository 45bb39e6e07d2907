"""MindSpeed's DualPipeV: the order by its own numbers of steps, and what it refuses."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from fractions import Fraction

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.layers.derived.shape import Parallel
from pipesched.layers.training_step import TrainingStep
from pipesched.problem.placement import linear, v_shape
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from tests.runtime.partitions.test_partition_formats import model_of, plan

FORM = PARTITION_FORMATS["mindspeed-dualpipev"]


def order_of_mindspeed(p: int, m: int, rank: int) -> list[str]:
    """The passes of a rank as its loops run them, with `--moe-fb-overlap` and `--dualpipev-dw-detach`.

    The numbers of rounds are those of `generate_dualpipev_schedule`; chunk 0 goes down the V, 1 up again.
    """
    forward, backward, weights = [0, 0], [0, 0], deque[str]()
    found = list[str]()

    def run(kind: str, chunk: int) -> str:
        counts = forward if kind == "F" else backward
        counts[chunk] += 1
        name = f"{kind}{chunk}.{counts[chunk] - 1}"
        if kind == "B":
            weights.append(name.replace("B", "W"))
        return name

    for _ in range(2 * p - 2 - 2 * rank):  # warmup
        found.append(run("F", 0))
    for _ in range(rank + 1):  # interleaved_forward
        found += [run("F", 0), run("F", 1)]
    for _ in range(p - rank - 1):  # 1b1w1f
        found += [run("B", 1), weights.popleft(), run("F", 1)]
    turns = (
        (2 * m - 4 * p + 2 * rank + 2) + 2 * (p - rank - 1) + (rank + 1)
    )  # overlap, 1b1overlap, interleaved_backward
    for turn in range(turns):
        chunk = turn % 2
        pair = [run("F", chunk)] if forward[chunk] < m else []
        pair.append(run("BW", 1 - chunk))
        # The last rank's first pair is not overlapped.
        found += pair if turn == 0 and rank == p - 1 else ["&".join(pair)]
    chunk = 1 - turns % 2
    for turn in range(p):  # cool-down: chunks in turn, the rest of one where the other has none left
        own = chunk if backward[chunk] < m else 1 - chunk
        found.append(run("B", own))
        chunk = 1 - own
        if turn >= rank:
            found.append(weights.popleft())
    return found + list(weights)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (2, 7), (3, 6), (3, 9), (4, 8), (5, 13)])
def test_its_order_is_dualpipe_v(p: int, m: int) -> None:
    times = {"forward": 10, "backward": 10, "weight": 8, "overlapped": 22}
    problem = problem_from({"devices": p, "microbatches": m, "placement": "v-shape", "times": times})
    schedule = HEURISTICS["dualpipe-v"].order(problem)
    for rank, slots in enumerate(schedule.orders):
        ours = ["&".join(f"{one.kind}{int(one.stage >= p)}.{one.microbatch}" for one in slot) for slot in slots]
        assert ours == order_of_mindspeed(p, m, rank)


def test_flags() -> None:
    settings = FORM.write(plan(model_of(("embedding", 1), ("moe", 8), ("head", 1)), (3, 2, 2, 3), v_shape(2)))
    assert settings.values == {FORM.main: 2}
    assert {"--schedules-method dualpipev", "--dualpipev-dw-detach", "--num-layers 8"} <= {*settings.text.splitlines()}
    assert settings.notes[0] == "MindSpeed runs dualpipe-v: its time is that of a plan with `schedule: dualpipe-v`."


def test_what_it_refuses() -> None:
    equal = plan(model_of(("moe", 8)), (2, 2, 2, 2), v_shape(2))
    shared = TrainingStep(4096, 1, Parallel(context=2), {}, Fraction(1), 64)
    for model, said in (
        (plan(model_of(("moe", 8)), (4, 4), linear(2)), "a linear placement; it has two stages a device in a V"),
        (plan(model_of(("moe", 8)), (3, 1, 2, 2), v_shape(2)), "stages of 3, 1, 2, 2 layers; it has equal ones"),
        (replace(equal, microbatches=3), "3 micro-batches on 2 devices; it has at least 2 for each"),
        (replace(equal, step=shared), "context parallel 2; it has none"),
    ):
        with pytest.raises(BadInput, match=f"^{FORM.name}: not supported: {said}$"):
            FORM.write(model)


def test_plans_for_it_have_equal_stages() -> None:
    layer = {"name": "block", "count": 8, "forward": 10, "backward": 10, "weight": 8}
    head = {"name": "head", "forward": 4, "backward": 4, "weight": 3}
    document = {"devices": 2, "microbatches": 8, "placement": ["linear", "v-shape"], "layers": [layer, head]}
    made, words = restricted(plan_problem_from(document), FORM.name, FORM.limits)
    assert (made.counts, made.schedules) == ((2, 2, 2, 3), ("dualpipe-v",))
    assert words[-1] == "equal stages"
    document["layers"] = [layer | {"count": 6}, head]
    with pytest.raises(BadInput, match="found 6 transformer layers; allowed: a multiple of the 4 stages"):
        restricted(plan_problem_from(document), FORM.name, FORM.limits)
    given = plan_problem_from(document | {"layers": [layer, head], "placement": "v-shape"})
    with pytest.raises(BadInput, match="found a partition of other stages; allowed: 2, 2, 2, 3"):
        restricted(replace(given, counts=(3, 2, 2, 2)), FORM.name, FORM.limits)


def test_plans_that_it_does_not_run_are_refused_before_the_search() -> None:
    layer = {"name": "block", "count": 8, "forward": 10, "backward": 10, "weight": 8}
    moe = layer | {"name": "moe", "count": 1, "with_previous": True}
    document = {"devices": 2, "microbatches": 8, "placement": "v-shape", "layers": [layer]}
    for changes, said in (
        ({"devices": 1, "chunks": 2}, "found 1 device; allowed: at least 2"),
        (
            {"layers": [{name: layer[name] for name in ("name", "count", "forward", "backward")}]},
            "found layers without",
        ),
        ({"layers": [layer | {"count": 2}, moe, layer | {"count": 5}]}, "with equal stages stage 1 begins with moe"),
        ({"microbatches": 3}, "found 3 micro-batches; allowed: at least 2 for each of the 2 devices"),
    ):
        with pytest.raises(BadInput, match=f"^--for {FORM.name}: {said}"):
            restricted(plan_problem_from(document | changes), FORM.name, FORM.limits)
    shared = TrainingStep(4096, 1, Parallel(context=2), {}, Fraction(1), 64)
    with pytest.raises(BadInput, match="found context parallel 2; allowed: 1"):
        restricted(replace(plan_problem_from(document), step=shared), FORM.name, FORM.limits)
