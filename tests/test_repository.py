"""The repository as a whole: packages, what is offered, what is imported when, and that README and docs are current."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import pipesched
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.files.problems.schema import json_schema
from pipesched.files.state_file import json_schema as state_schema
from pipesched.problem.passes import F
from pipesched.registry import Registry
from tests.support.columns import costs_of
from tests.support.in_turn import in_turn

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"pipesched", "heuristics", "formulations", "solver", "runtime", "plots", "targets", "web", "commands"}


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_folder_with_modules_is_a_package(package: str) -> None:
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)


@in_turn("name", sorted(set(pipesched.__all__)))
def test_what_pipesched_offers_is_there(name: str) -> None:
    assert getattr(pipesched, name) is not None


def test_a_star_import_leaves_torch_alone_and_all_names_are_completed() -> None:
    lazy = {"torch", "PipelineModel"}
    assert not lazy & {*pipesched.__all__}
    assert {*pipesched.__all__, *lazy} <= {*dir(pipesched)}


def test_pipesched_offers_the_class_of_a_users_model() -> None:
    pytest.importorskip("torch")
    from runtime.pytorch.models import PipelineModel

    assert pipesched.PipelineModel is PipelineModel


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        pipesched.nonsense  # noqa: B018


def test_heavy_libraries_are_imported_only_when_used() -> None:
    script = (
        "import sys, pipesched, pipesched.files.problem_file, pipesched.simulation.simulator, heuristics.catalogue\n"
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
    assert json.loads((ROOT / "docs" / "state.schema.json").read_text()) == state_schema()


def test_the_examples_and_the_documented_problem_are_read() -> None:
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        assert read_problem(path).microbatches > 0
    documented = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "problem-file.md").read_text(), re.DOTALL)
    from pipesched.files.batch_sizes import with_each_size
    from pipesched.files.exact_numbers import read_yaml

    documents = [with_each_size(read_yaml(text, "docs"), "docs")[0].document for text in documented]
    problems = [problem_from(document, "docs") for document in documents]
    plain, batch, of_tasks, lost, chains, two_models, pieces = problems
    shares = [ticks * batch.tick for ticks in (batch.stages[0].forward, batch.stages[0].fused)]
    assert shares == [Fraction("11.2"), Fraction("22.4")]
    assert costs_of(plain).overlapped is not None
    assert (lost.devices, chains.walks.shares) == (15, (6, 2))
    assert two_models.placement.chains == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert (pieces.chain_arcs.pieces, pieces.microbatches) == (4, 8)
    assert of_tasks.resources.transfer_stream == "comm" and len(of_tasks.tasks_of(F, 0)) == 17


def test_the_readme_shows_the_result_of_its_command() -> None:
    from docs.make_readme import printed, shown

    text = (ROOT / "README.md").read_text()
    said = printed(text)
    assert [line for line in shown(text) if line not in said] == [], "run `python -m docs.make_readme`"


def test_the_first_two_commands_of_the_readme_are_the_main_job_and_the_tests() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert commands[0].startswith("python3 go.py compare ")
    assert commands[1] == "python3 go.py test"


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
INDEX = ROOT / "docs" / "README.md"


def links(page: Path) -> set[Path]:
    """The files that a page links to."""
    return {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())}


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@in_turn("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [path for path in links(page) if not path.exists()] == []
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_the_index_of_the_docs_leads_to_every_page() -> None:
    results = ROOT / "docs" / "results" / "README.md"
    assert {*PAGES} - {ROOT / "README.md", INDEX} <= links(INDEX) | links(results)
    assert INDEX in links(ROOT / "README.md")


def words(page: Path) -> int:
    return len(page.read_text().split())


def test_pages_are_short_enough_to_be_read() -> None:
    of_users = INDEX.read_text().partition("## For contributors")[0]
    named = {INDEX.parent / target for target in re.findall(r"\]\(([\w-]+\.md)\)", of_users)}
    assert len(named) > 20
    assert {page.name: words(page) for page in named if words(page) > 2500} == {}
    assert words(ROOT / "docs" / "engine.md") <= 2500
    assert words(ROOT / "CONTRIBUTING.md") <= 1500


def test_every_module_that_a_page_or_a_docstring_tells_to_run_is_there() -> None:
    sources = [*PAGES, *(path for folder in ("benchmarks", "docs") for path in (ROOT / folder).rglob("*.py"))]
    told = {name for path in sources for name in re.findall(r"python3? -m ((?:\w+\.)+\w+)", path.read_text())}
    ours = {name for name in told if (ROOT / name.partition(".")[0]).is_dir()}
    assert len(ours) > 10
    places = {name: ROOT / name.replace(".", "/") for name in ours}
    assert [
        name for name, at in places.items() if not (at.with_suffix(".py").exists() or (at / "__main__.py").exists())
    ] == []


def test_files_of_ours_that_a_page_for_contributors_names_are_there() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    for page in ("code-walks.md", "engine.md", "evidence.md", "proofs.md", "../CONTRIBUTING.md"):
        named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", (ROOT / "docs" / page).read_text()))
        ours = {name for name in named if name.partition("/")[0] in packages}
        assert [name for name in sorted(ours) if not (ROOT / name).exists()] == [], page


def test_files_that_the_docstring_of_a_package_names_are_there() -> None:
    seen = 0
    ours = [path.parent for path in ROOT.glob("*/__init__.py")]
    for package in (path for folder in ours for path in folder.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(package.read_text())) or ""
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", text):
            assert any((folder / name).exists() for folder in (package.parent, ROOT, ROOT / "pipesched")), (
                package,
                name,
            )
            seen += 1
    assert seen > 50


def test_packages_of_many_files_say_which_is_which() -> None:
    """A package of ten modules or more names some of them, unless each is one of a kind, as in a registry."""
    alike = {"pipesched", "benchmarks", "heuristics", "solver/engine/subsolvers"}
    for package in (path for folder in ROOT.glob("*/__init__.py") for path in folder.parent.rglob("__init__.py")):
        where, count = str(package.parent.relative_to(ROOT)), len([*package.parent.glob("*.py")])
        if count > 10 and not where.startswith("tests") and where not in alike:
            assert len(re.findall(r"`[\w/]+\.py`", package.read_text())) >= 3, where


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("load period check", "pipesched/checking/period.py"),
        ("Exit codes", "commands/shared/catalogue.py"),
        ("time slices subsolvers", "solver/engine/allocation.py"),
    ],
)
def test_first_lines_lead_to_a_file(words: str, file: str) -> None:
    from docs.where import found

    assert file in {place.file for place in found(words.split())}


def test_docstrings_are_drawn_with_what_a_caller_sees(tmp_path: Path) -> None:
    from docs.draw_docstrings import documented, main

    assert main(["7", "--count", "3", "-o", str(tmp_path / "sheet.md")]) == 0
    keys = (tmp_path / "sheet.md.key").read_text().splitlines()
    sheet = (tmp_path / "sheet.md").read_text()
    assert len(keys) == 3 and all(f"`{key.split()[2]}` of module" in sheet for key in keys)
    every = {(one.file, one.name): one for one in documented()}
    method = every["pipesched/registry.py", "Registry.register"].text()
    assert "Its class:\n\n```python\nclass Registry(Generic[Item])" in method and "Its module: " in method
    assert "\nTicks: TypeAlias = int" in every["pipesched/schedule/drawing/boxes.py", "makespan"].text()
    assert "Problem" in every["pipesched/problem/formatting.py", "size"].types
    drawn, _, classes = sheet.partition("# Classes in these signatures")
    assert drawn and "\n\n## `Problem` of module `pipesched.problem.problem`\n\n```python\n@dataclass" in classes


def test_the_page_of_schedules_is_current() -> None:
    from docs.make_schedules import PICTURES, page

    assert (ROOT / "docs" / "schedules.md").read_text() == page(), "run `python -m docs.make_schedules`"
    assert {path.stem for path in PICTURES.glob("*.png")} == set(HEURISTICS.names()), (
        "run `python -m docs.make_schedules`"
    )
