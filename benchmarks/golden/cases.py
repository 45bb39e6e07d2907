"""The stored files: every example, and drawn pairs of features of problem and plan files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.plan_run import plan_document
from benchmarks.matrix.run import KINDS
from benchmarks.matrix.switch import together
from pipesched.files.atomic_write import write_whole
from pipesched.files.exact_numbers import read_yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# The drawn documents as they were: the matrix gets features, and draws others then.
DOCUMENTS = Path(__file__).with_name("drawn.json")
# Drawn pairs by kind of file, and what draws them.
DRAWN, SEED = {"problem": 300, "plan": 60}, 58
# Files of models, hardware and states are no problems.
_FOLDERS = {"problem": (".", "long", "modules", "states"), "plan": ("plans",)}


class File(NamedTuple):
    """A file by its name, its kind, and its document; an example is no drawn one."""

    name: str
    kind: str
    document: Any
    drawn: bool


def files() -> Iterator[File]:
    """All, in the order in which they are stored."""
    for kind, folders in _FOLDERS.items():
        for folder in folders:
            for path in sorted((EXAMPLES / folder).glob("*.yaml")):
                name = path.relative_to(EXAMPLES).as_posix()
                yield File(name, kind, read_yaml(path.read_text(encoding="utf-8"), path.name), False)
    for name, text in json.loads(DOCUMENTS.read_text(encoding="utf-8")).items():
        yield File(name, name.partition(":")[0], json.loads(text, parse_float=Decimal), True)


def draw() -> None:
    """Draw new documents, of the features that the matrix has now, and write them."""
    rows = []
    for kind, count in DRAWN.items():
        every = list(together(KINDS[kind], 2))
        for names in sorted(Random(f"{SEED} {kind}").sample(every, count)):
            document = problem_case(names, SEED).document if kind == "problem" else plan_document(names, SEED)
            text = " ".join(text_of(document).split())
            name = f"{kind}: {' + '.join(names)}"
            rows.append(f"{json.dumps(name)}: {json.dumps(text)}")
    write_whole(DOCUMENTS, "{\n" + ",\n".join(rows) + "\n}\n")
