"""Problems built in code: the same as from a file, the same mistakes, and files that read back as they were."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesched import BadInput, Objective, make_problem, problem_from, read_problem, write_problem
from pipesched.files.problems.document import problem_document
from pipesched.files.problems.schema import MemorySection, ProblemFile, Times
from pipesched.problem.passes import PassKind
from pipesched.problem.placement import v_shape
from pipesched.problem.stage import Once, TaskSpec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_arguments_are_the_keys_of_a_file() -> None:
    made = make_problem(
        devices=2, microbatches=3, forward=[1.5, 1.25], backward=1.5, weight=0.5, fused=1.75, transfer=0.1, capacity=4,
        static=1, activation=1, freed_by_backward=0.25, microbatch_scale=[1, 1.5, 1], microbatch_order="free",
        objective=Objective.SPAN, name="mine", time_unit="ms", memory_unit="GiB",
    )  # fmt: skip
    assert made == problem_from({
        "name": "mine", "devices": 2, "microbatches": 3, "time_unit": "ms", "objective": "span",
        "times": {"forward": [1.5, 1.25], "backward": 1.5, "weight": 0.5, "fused": 1.75, "transfer": 0.1},
        "memory": {"unit": "GiB", "capacity": 4, "static": 1, "activation": 1, "freed_by_backward": 0.25},
        "microbatch_scale": [1, 1.5, 1], "microbatch_order": "free",
    })  # fmt: skip


def test_every_key_of_plain_problems_is_an_argument() -> None:
    arguments = {*signature(make_problem).parameters}
    keys = {*ProblemFile.model_fields, *Times.model_fields, *MemorySection.model_fields, "memory_unit"}
    only_in_documents = {"times", "memory", "sweep", "tasks", "streams", "offload", "recompute", "decide", "unit"}
    only_in_documents |= {"workspace", "until_end"}
    assert arguments == keys - only_in_documents


@pytest.mark.parametrize(
    "tenth", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), [0.1, 0.1], np.array([0.1, 0.1])]
)
def test_numbers_of_every_kind_are_exact(tenth: object) -> None:
    made = make_problem(devices=2, microbatches=2, forward=tenth, backward=1)  # type: ignore[arg-type]
    assert made.stages[1].forward * made.tick == Fraction(1, 10)
    assert made == make_problem(devices=2, microbatches=2, forward=0.1, backward=1)


def test_a_placement_is_a_name_a_list_or_a_placement() -> None:
    given = ("v-shape", [0, 1, 1, 0], v_shape(2))
    made = [make_problem(devices=2, microbatches=2, forward=1, backward=1, placement=one) for one in given]
    assert made[0] == made[1] == made[2]
    links = np.array([[0, 1.5], [2, 0]])
    assert make_problem(devices=2, microbatches=2, forward=1, backward=1, transfer=links).links == ((0, 3), (4, 0))


@pytest.mark.parametrize("ending", [".yaml", ".json"])
@pytest.mark.parametrize("example", ["start", "kimi-k2-mini", "unequal-microbatches", "own-placement", "offload"])
def test_a_written_problem_reads_back_as_it_was(example: str, ending: str, tmp_path: Path) -> None:
    problem = read_problem(EXAMPLES / f"{example}.yaml")
    assert read_problem(write_problem(problem, tmp_path / f"again{ending}")) == problem


def test_what_a_file_cannot_say_is_refused(tmp_path: Path) -> None:
    made = make_problem(devices=2, microbatches=2, forward=1, backward=1, capacity=3).with_room([3, None])
    with pytest.raises(BadInput, match="cannot be written"):
        write_problem(made, tmp_path / "mine.yaml")
    assert not (tmp_path / "mine.yaml").exists()


def test_chains_on_the_devices_of_a_named_placement_are_written_with_a_list() -> None:
    chains = [{"stages": [0, 1], "microbatches": 1}, {"stages": [2, 3], "microbatches": 2}]
    one = problem_from(
        {
            "devices": 2,
            "microbatches": 3,
            "placement": [0, 1, 1, 0],
            "chains": chains,
            "times": {"forward": 1, "backward": 2},
        }
    )
    assert problem_from(problem_document(one)) == one


@pytest.mark.parametrize(
    ("named", "devices"),
    [
        ({"placement": "bidirectional"}, [0, 1, 1, 0]),
        ({"placement": "v-shape"}, [0, 1, 1, 0]),
        ({"placement": "interleaved", "chunks": 2}, [0, 1, 0, 1]),
        ({"placement": "wave", "chunks": 2}, [0, 1, 1, 0]),
    ],
)
def test_chains_on_a_named_placement_are_those_on_the_devices_written_out(
    named: dict[str, Any], devices: list[int]
) -> None:
    """Versions before wrote such files, of two models in opposite directions, and none could read them."""
    rest = {
        "devices": 2,
        "microbatches": 3,
        "chains": [{"stages": [3, 0], "microbatches": 1}, {"stages": [2, 1], "microbatches": 2}],
        "times": {"forward": [1, 2, 3, 4], "backward": 2, "weight": 1},
        "parameters": {"reduce": {"time": 1}, "holders": [0, 1, 2, 3]},
        "objective": "iteration",
    }
    one = problem_from({**rest, **named})
    assert one == problem_from({**rest, "placement": devices})
    assert one.placement.chains == ((3, 0), (2, 1))


def test_collectives_of_stages_on_different_streams_have_no_key() -> None:
    one = problem_from(
        {"devices": 2, "microbatches": 1, "times": {"forward": 1, "backward": 2}, "objective": "iteration",
         "parameters": {"reduce": {"time": 1}}}
    )  # fmt: skip
    streams = [(Once(PassKind.REDUCE, TaskSpec(stream, 1)),) for stream in ("dp", "compute")]
    with pytest.raises(ValueError, match="on one stream"):
        problem_document(one.with_stages(once=streams))
