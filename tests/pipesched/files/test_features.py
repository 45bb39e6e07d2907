"""A feature of problem files is one module: the reader, the writer, refusals, units, states and formats find it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.features.catalogue import FEATURES, excluded_pairs, features_of
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.schema import ProblemFile, json_schema

ROOT = Path(__file__).parents[3]
TINY = {"devices": 2, "microbatches": 2, "times": {"forward": 1, "backward": 2}}
MODULE = """
from dataclasses import replace

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys
from pipesched.files.fields import field_types
from pipesched.files.fields.together import Refused, given


class Keys(FeatureKeys):
    slower: field_types.Count | None = Field(None, description="how many times as long forwards take")


def mistakes(form, stages, wrong):
    if form.slower is not None and form.slower > 9:
        yield f"slower: found {form.slower}; allowed: up to 9"


def lower(problem, form):
    forwards = [stage.forward * (form.slower or 1) for stage in problem.stages]
    return replace(problem.with_stages(forward=forwards), name="slower") if form.slower else problem


FEATURES.register(
    Feature(
        name="slower", keys=Keys, lower=lower, mistakes=mistakes,
        written=lambda problem: {"slower": 1} if problem.name == "slower" else {},
        refused=(Refused(given("slower"), given("modules"), "one of the two", "a test"),),
        present_in=lambda problem: problem.name == "slower", not_expressible="forwards are slower", has_state=False,
    )
)
"""
SCRIPT = """
import json, sys
import pipesched.files.features as package
package.__path__.append(sys.argv[1])
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.document import problem_document
from pipesched.files.problems.schema import json_schema
from pipesched.files.state_file import state_from
from pipesched.simulation.simulator import simulate
from heuristics.catalogue import HEURISTICS
from runtime.exporters.catalogue import EXPORTERS

def refused(call):
    try:
        call()
    except BadInput as error:
        return [*error.mistakes]

tiny = json.loads(sys.argv[2])
one = problem_from(tiny | {"slower": 3})
timeline = simulate(one, HEURISTICS["gpipe"].order(one))
print(json.dumps({
    "forwards": [stage.forward for stage in one.stages],
    "plain": [stage.forward for stage in problem_from(tiny).stages],
    "written": problem_document(one)["slower"],
    "wrong": refused(lambda: problem_from(tiny | {"slower": 10})),
    "together": refused(lambda: problem_from(tiny | {"slower": 2, "modules": {}})),
    "schema": json_schema()["properties"]["slower"]["description"],
    "state": refused(lambda: state_from({"now": 0}, one)),
    "format": refused(lambda: EXPORTERS["torch-csv"].export(timeline)),
    "trace": refused(lambda: EXPORTERS["chrome-trace"].export(timeline)),
}))
"""


def test_a_module_is_all_that_a_feature_needs(tmp_path: Path) -> None:
    (tmp_path / "slower.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(TINY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["forwards"], found["plain"], found["written"]) == ([3, 3], [1, 1], 1)
    assert found["wrong"] == ["problem: slower: found 10; allowed: up to 9"]
    assert "problem: slower: found with modules; allowed: one of the two" in found["together"]
    assert found["schema"] == "how many times as long forwards take"
    assert found["state"] == ["state: found slower in the problem; allowed with a state: problems without it"]
    assert "forwards are slower" in found["format"][0] and "chrome-trace can express it" in found["format"][0]
    assert found["trace"] is None


@pytest.mark.parametrize("feature", [*FEATURES], ids=lambda one: one.name)
def test_the_file_has_its_keys_and_the_table_its_refusals(feature: Any) -> None:
    section, _, key = feature.name.rpartition(".")
    if feature.keys is None and not feature.sections:  # a key of a section that all problems have
        assert f'"{key}": {{' in json.dumps(json_schema())
    else:
        assert key in (feature.sections[section] if section else feature.keys).model_fields
    keys = {*feature.keys.model_fields} if feature.keys else set()
    assert keys <= {*ProblemFile.model_fields} & {*json_schema()["properties"]}
    for name, own in feature.sections.items():
        (reference,) = (one["$ref"] for one in json_schema()["properties"][name]["anyOf"] if "$ref" in one)
        assert {*own.model_fields} <= {*json_schema()["$defs"][reference.rpartition("/")[2]]["properties"]}
    assert {*feature.refused} <= {*excluded_pairs()}
    assert {*feature.in_form} <= keys
    assert not feature.present_in(problem_from(TINY))
    assert dict(feature.written(problem_from(TINY))) == {}


def test_problems_that_have_one_are_seen_to() -> None:
    one = problem_from(TINY | {"microbatch_scale": [1, 2]})
    assert [feature.name for feature in FEATURES if feature.present_in(one)] == ["microbatch_scale"]
    with pytest.raises(BadInput, match=r"^problem: microbatch_scale: found with pipelines; allowed: one of the two$"):
        problem_from(TINY | {"microbatch_scale": [1, 2], "pipelines": {"count": 2}})


def test_a_file_has_the_features_whose_keys_it_gives() -> None:
    """And no other: what they could add is asked of these alone."""
    assert features_of(read_document(ROOT / "examples" / "start.yaml")) == []
    for feature in FEATURES:
        for path in feature.paths:
            document: Any = 1
            for key in reversed(path.split(".")):
                document = {key: document}
            assert feature in features_of(document), path
    (asked,) = (feature for feature in FEATURES if feature.asked_by is not None)
    assert features_of({"objective": asked.asked_by}) == [asked]
