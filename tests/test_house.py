"""The house as it is built: what a wheel installs, what is imported when, and that README and docs are current."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pipesched
from heuristics.catalogue import HEURISTICS
from pipesched.problem_file import problem_from, read_problem
from pipesched.problem_form import json_schema
from pipesched.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {"pipesched", "heuristics", "formulations", "solver", "runtime", "plots", "commands"}


def test_the_wheel_holds_the_rooms_and_nothing_else() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        str(path.parent.relative_to(ROOT)).replace("/", ".")
        for room in ROOMS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert {name.split(".")[0] for name in listed} == ROOMS
    assert listed == found


@pytest.mark.parametrize("name", sorted(set(pipesched.__all__)))
def test_what_pipesched_offers_is_there(name: str) -> None:
    assert getattr(pipesched, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        pipesched.nonsense  # noqa: B018


def test_heavy_libraries_are_imported_only_when_used() -> None:
    script = (
        "import sys, pipesched, pipesched.problem_file, pipesched.simulator, heuristics.catalogue\n"
        "print([m for m in ('ortools', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_registry_refuses_two_of_one_name() -> None:
    registry: Registry[object] = Registry("heuristics", "schedule")  # type: ignore[type-var]

    class Thing:
        name = "one"

    registry.register(Thing())
    with pytest.raises(ValueError, match="two schedules are named 'one'"):
        registry.register(Thing())


def test_the_schema_for_editors_is_current() -> None:
    assert json.loads((ROOT / "docs" / "problem.schema.json").read_text()) == json_schema()


def test_the_examples_and_the_documented_problem_are_read() -> None:
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        assert read_problem(path).microbatches > 0
    documented = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "problem-file.md").read_text(), re.DOTALL)
    from pipesched.exact import read_yaml

    for text in documented:
        document = read_yaml(text, "docs")
        assert isinstance(document, dict)
        assert problem_from(document, "docs").costs.overlapped is not None


def test_the_readme_shows_the_result_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    from commands.main import main

    readme = (ROOT / "README.md").read_text()
    command = re.search(r"python3 go\.py (solve \S+)", readme)
    shown = re.search(r"<!-- result:.*?-->\n```\n(.*?)```", readme, re.DOTALL)
    assert command
    assert shown
    verb, path = command[1].split()
    assert main([verb, str(ROOT / path), "--workers", "1"]) == 0
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    for line in shown[1].splitlines():
        assert line.rstrip() in said


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_of_schedules_is_current() -> None:
    from docs.make_schedules import PICTURES, page

    assert (ROOT / "docs" / "schedules.md").read_text() == page()
    assert {path.stem for path in PICTURES.glob("*.png")} == set(HEURISTICS.names())
