"""A problem as typed into the page, converted to a document and to a `Problem`, within the server's limits."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import converted_document, problem_from
from pipesched.problem.pass_names import microbatches_text
from pipesched.problem.problem import Problem
from web.settings import Settings

SOURCE = "problem"
_PLAN_KEYS = frozenset({"layers", "model"})


def document_of(text: str, settings: Settings) -> object:
    """Return the document in a text, with exact decimals; `BadInput` if it is empty, too long or no YAML.

    No key names a file: only the text itself is read.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > settings.text_bytes:
        raise BadInput(f"{SOURCE}: found {size} bytes; allowed: up to {settings.text_bytes}")
    if not text.strip():
        raise BadInput(f"{SOURCE}: the text is empty")
    return read_yaml(text.replace("\r\n", "\n").replace("\r", "\n"), SOURCE)


def is_plan(document: object) -> bool:
    """Return True if a document is a plan file: a model made of layers, whose stages are to be chosen."""
    return isinstance(document, dict) and bool(_PLAN_KEYS & document.keys())


def problem_of(document: object, settings: Settings) -> Problem:
    """Return the problem of a document; `BadInput` lists every mistake.

    `BadInput` too for a plan or a schedule file, and for a problem too large for the page.
    """
    if isinstance(document, dict) and document.get("format") == "pipesched-schedule":
        allowed = "a problem or a plan (`pipesched export` and `plot` read schedules)"
        raise BadInput(f"{SOURCE}: found a schedule file; allowed: {allowed}")
    if is_plan(document):
        raise BadInput(f"{SOURCE}: found a plan file; allowed: a problem, such as a solve of the plan chooses")
    problem = problem_from(converted_document(document, SOURCE), SOURCE, SOURCE)
    stages = len(problem.stages) // problem.chain_arcs.pieces
    cells = sum(map(len, problem.microbatches_of))
    if cells > settings.cells:
        raise BadInput(
            f"{SOURCE}: microbatches: found {microbatches_text(problem)} on {stages} stages; allowed on this page: up "
            f"to {settings.cells} stages times micro-batches (`pipesched solve` takes more)"
        )
    tasks = problem.microbatches * sum(max(3, len(stage.tasks)) for stage in problem.stages)
    if tasks > settings.tasks:
        raise BadInput(
            f"{SOURCE}: tasks: found {tasks} in all; allowed on this page: up to {settings.tasks} (`pipesched solve` "
            "takes more)"
        )
    return problem
