"""The registry of features of plan files: no central file names one, no key has two, and what is written reads back."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import read_plan
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.plans.schema import LayerKeys, PlanFile, PlanKeys
from tests.support.in_turn import in_turn

ROOT = Path(__file__).parents[3]
FILES = ROOT / "pipesched" / "files"
# Whatever reads a plan file as a whole.
CENTRAL = (
    FILES / "plan_file.py", FILES / "plan_answers" / "problem_document.py", FILES / "plans" / "checks.py",
    FILES / "plans" / "units.py", FILES / "plans" / "layers.py",
    ROOT / "runtime" / "partitions" / "plan_settings.py",
)  # fmt: skip
EXAMPLES = sorted((ROOT / "examples" / "plans").glob("*.yaml"))


def _keys() -> list[str]:
    """The keys of features, at the top of the file and in its sections."""
    every = (keys for feature in PLAN_FEATURES for keys in (feature.keys, *feature.sections.values()))
    return [key for keys in every if keys is not None for key in keys.model_fields]


def test_central_files_name_no_key_of_a_feature() -> None:
    """Words that are other things too, such as a batch of times, are those of the base."""
    keys = {*_keys()} - {"batch", "step", "cluster", "frozen", *PlanKeys.model_fields, *LayerKeys.model_fields}
    found = {
        (path.name, key)
        for path in CENTRAL
        for key in keys
        if re.search(rf"\.{key}\b|[\"']{key}[\"']", path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_planner_bounds_and_check_know_no_addition_by_name() -> None:
    """Additions of plans are read by the features that make them; of others only the what-if of a shared vocabulary."""
    layers = ROOT / "pipesched" / "layers"
    of_additions = {path.stem for path in layers.glob("*.py") if "(Addition)" in path.read_text("utf-8")}
    assert {"encoder", "vocabulary"} <= of_additions
    pattern = re.compile(rf"from pipesched\.layers\.({'|'.join(of_additions)}) import")
    packages = ("pipesched", "solver", "formulations", "runtime", "commands", "plots", "targets")
    found = {
        path.relative_to(ROOT).as_posix()
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if pattern.search(path.read_text("utf-8"))
    }
    of_files = {path for path in found if path.startswith("pipesched/files/plans/")}
    assert found - of_files == {"solver/planning/sensitivity.py"}


def test_every_key_is_of_one_feature() -> None:
    tops = [key for feature in PLAN_FEATURES if feature.keys for key in feature.keys.model_fields]
    assert set(tops) | PlanKeys.model_fields.keys() == PlanFile.model_fields.keys()
    assert max(Counter(tops).values()) == 1 and not set(tops) & PlanKeys.model_fields.keys()


@in_turn("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_exact_document_reads_back(path: Path) -> None:
    plan = read_plan(path)
    document = plan_document(plan)
    again = plan_from_document(document, "document")
    assert plan_document(again) == document
    assert (again.model, again.cluster, again.clusters, again.additions, again.choices) == (
        plan.model, plan.cluster, plan.clusters, plan.additions, plan.choices
    )  # fmt: skip
