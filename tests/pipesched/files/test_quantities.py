"""Values with units and shares: converted to the file's units exactly, refused in one line where the unit is of another kind."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.plans.schema import json_schema as plan_schema
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.schema import json_schema as problem_schema
from tests.support.editor import accepts
from tests.support.in_turn import in_turn

PROBLEM: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "times": {"forward": 1, "backward": [2, 3]},
    "memory": {"unit": "GiB", "capacity": 80, "activation": [2, 4]},
}
LAYER: dict[str, Any] = {"name": "a", "count": 4, "forward": 1, "backward": 2, "activation": 2, "memory": 1}
PLAN: dict[str, Any] = {"devices": 2, "microbatches": 4, "time_unit": "ms", "layers": [LAYER]}


def merged(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: merged(document[key], value)
        for key, value in changes.items()
        if isinstance(value, dict) and key in document
    }
    return document | changes | both


def alike(document: dict[str, Any], written: dict[str, Any], plain: dict[str, Any]) -> None:
    """The file with units is the one with plain numbers, and fits the schema that editors check it by."""
    read, schema = (plan_problem_from, plan_schema) if "layers" in document else (problem_from, problem_schema)
    assert read(merged(document, written)) == read(merged(document, plain))
    assert accepts(merged(document, written), schema)


@in_turn(
    ("written", "plain"),
    [
        ({"times": {"forward": "300 us"}}, {"times": {"forward": Decimal("0.3")}}),
        ({"times": {"backward": ["2ms", "0.003 s"]}}, {"times": {"backward": [2, 3]}}),
        ({"times": {"weight": "1e3 µs", "transfer": "500ns"}}, {"times": {"weight": 1, "transfer": Decimal("0.0005")}}),
        (
            {"times": {"transfer": {"time": "100 us", "on": "compute"}}},
            {"times": {"transfer": {"time": Decimal("0.1"), "on": "compute"}}},
        ),
        ({"times": {"transfer": [[0, "1 s"], [0.5, 0]]}}, {"times": {"transfer": [[0, 1000], [0.5, 0]]}}),
        ({"memory": {"capacity": "80 GB"}}, {"memory": {"capacity": Fraction(80 * 10**9, 2**30)}}),
        ({"memory": {"capacity": ["1.21 TiB", "2048 MiB"], "activation": 1}},
         {"memory": {"capacity": [Decimal("1239.04"), 2], "activation": 1}}),
        ({"memory": {"static": ["4 GiB", 8]}}, {"memory": {"static": [4, 8]}}),
        ({"memory": {"activation": ["1024 MiB", "4GiB"]}}, {"memory": {"activation": [1, 4]}}),
        ({"memory": {"freed_by_backward": "25%"}}, {"memory": {"freed_by_backward": [Decimal("0.5"), 1]}}),
        ({"memory": {"freed_by_backward": ["-50%", "512 MiB"]}}, {"memory": {"freed_by_backward": [-1, Decimal("0.5")]}}),
        ({"memory": {"freed_by_backward": "-1/3"}}, {"memory": {"freed_by_backward": Fraction(-1, 3)}}),
        (
            {"memory": {"recompute": [{"name": "full", "time": "1 ms", "keeps": "40%"}]}},
            {"memory": {"recompute": [{"name": "full", "time": 1, "keeps": [Decimal("0.8"), Decimal("1.6")]}]}},
        ),
        # As many ways as stages: the share of each stage's activation, not of the way's number.
        (
            {"memory": {"recompute": [{"name": n, "time": 1, "keeps": "50%"} for n in ("a", "b")]}},
            {"memory": {"recompute": [{"name": n, "time": 1, "keeps": [1, 2]} for n in ("a", "b")]}},
        ),
        (
            {"memory": {"offload": {"out": "1 ms", "in": "2 ms", "on": "copy", "amount": "50%", "host_capacity": "64 GiB"}},
             "streams": ["compute", "copy"]},
            {"memory": {"offload": {"out": 1, "in": 2, "on": "copy", "amount": [1, 2], "host_capacity": 64}},
             "streams": ["compute", "copy"]},
        ),
        ({"microbatch_scale": ["100%", "80%", 1, "120%"]}, {"microbatch_scale": [1, Decimal("0.8"), 1, Decimal("1.2")]}),
    ],
)  # fmt: skip
def test_values_of_problems(written: dict[str, Any], plain: dict[str, Any]) -> None:
    alike(PROBLEM, written, plain)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ({"forward": "300 us", "weight": "0.5ms"}, {"forward": Decimal("0.3"), "weight": Decimal("0.5")}),
        ({"activation": "512 MiB", "memory": "4 GiB"}, {"activation": Decimal("0.5"), "memory": 4}),
        ({"freed_by_backward": "25%", "weight": 1}, {"freed_by_backward": Decimal("0.5"), "weight": 1}),
        (
            {"recompute": [{"name": "full", "time": "1 ms", "keeps": "40%"}]},
            {"recompute": [{"name": "full", "time": 1, "keeps": Decimal("0.4")}]},
        ),
        # In a plan file a bare number is a share; an amount is one of the layer's activation.
        (
            {"recompute": [{"name": "full", "time": 1, "keeps": "512 MiB"}]},
            {"recompute": [{"name": "full", "time": 1, "keeps": Decimal("0.25")}]},
        ),
    ],
)
def test_values_of_plans(written: dict[str, Any], plain: dict[str, Any]) -> None:
    alike(PLAN, {"layers": [LAYER | written]}, {"layers": [LAYER | plain]})
    alike(PLAN, {"memory": {"capacity": "80 GiB"}, "transfer": "10 us"}, {"memory": {"capacity": 80}, "transfer": 0.01})


def test_tasks_have_times_with_units() -> None:
    tasks = {key: [{"name": "a", "time": "500 us"}] for key in ("forward", "backward")}
    plain = {key: [{"name": "a", "time": 0.5}] for key in ("forward", "backward")}
    own = {key: value for key, value in PROBLEM.items() if key != "times"}
    assert problem_from(own | {"tasks": tasks}) == problem_from(own | {"tasks": plain})


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"memory": {"capacity": "80 ms"}},
            "memory.capacity: found '80 ms'; allowed: a number, or an amount of memory",
        ),
        ({"memory": {"capacity": [80, "8 Gb"]}}, "memory.capacity[1]: found '8 Gb'; allowed: a number, or an amount"),
        ({"memory": {"capacity": "40%"}}, "memory.capacity: found '40%'; allowed: a number, or an amount of memory"),
        ({"times": {"forward": "3 GB"}}, "times.forward: found '3 GB'; allowed: a number, or a time such as 300 us"),
        ({"times": {"forward": "40%"}}, "times.forward: found '40%'; allowed: a number, or a time"),
        (
            {"time_unit": "", "times": {"forward": "3 ms"}},
            "times.forward: found '3 ms'; allowed: a number, or one with a",
        ),
        ({"memory": {"unit": "slots", "capacity": "8 GB"}}, "memory.capacity: found '8 GB'; allowed: a number, or one"),
        ({"times": {"forward": "-3 ms"}}, "times.forward: found -3; allowed: a number of at least 0"),
        ({"times": {"forward": "ms 3"}}, "times.forward: found 'ms 3'; allowed: a number of at least 0"),
    ],
)
def test_a_unit_of_the_wrong_kind_is_one_line(changes: dict[str, Any], line: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(merged(PROBLEM, changes)))
    assert main(["solve", str(path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{path}: {line}" in said


def test_every_mistake_has_its_line() -> None:
    with pytest.raises(BadInput) as caught:
        problem_from(
            merged(PROBLEM, {"times": {"forward": "1 GB"}, "memory": {"capacity": "1 s", "activation": "1 s"}})
        )
    assert [mistake.split(":")[1].strip() for mistake in caught.value.mistakes] == [
        "times.forward",
        "memory.capacity",
        "memory.activation",
    ]
    with pytest.raises(BadInput, match="has no activation"):
        plan_problem_from(
            PLAN | {"layers": [LAYER | {"activation": 0, "recompute": [{"name": "f", "time": 1, "keeps": "1 GiB"}]}]}
        )


def test_bare_numbers_keep_their_meaning() -> None:
    way = {"name": "full", "time": 1, "keeps": Decimal("0.4")}
    problem = problem_from(merged(PROBLEM, {"memory": {"activation": 4, "recompute": [way]}}))
    assert problem.stages[0].recompute[0].keeps * problem.resolution == Fraction(2, 5)
    plan = plan_problem_from(PLAN | {"layers": [LAYER | {"activation": 4, "recompute": [way]}]})
    assert plan.model.layers[0].recompute[0].keeps == Fraction(2, 5)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"freed_by_backward": 5}, "memory.freed_by_backward[0]: found 5 GiB; allowed: at most the activation, 2 GiB"),
        (
            {"recompute": [{"name": "full", "time": 1, "keeps": 2.5}]},
            "memory.recompute[0].keeps: found 2.5 GiB; allowed: at most the activation, 2 GiB",
        ),
        (
            {"offload": {"out": 1, "in": 1, "amount": 2.5}},
            "memory.offload.amount: found 2.5 GiB; allowed: at most the activation, 2 GiB",
        ),
    ],
)
def test_amounts_are_told_in_the_unit_of_the_file(memory: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        problem_from(merged(PROBLEM, {"memory": memory}))
    assert any(said in mistake for mistake in caught.value.mistakes), caught.value.mistakes
