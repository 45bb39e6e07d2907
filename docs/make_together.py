"""Writes docs/together.md: pairs of features that a file may not have, from the readers' own tables.

python -m docs.make_together
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipesched.files.features import catalogue
from pipesched.files.fields.together import Refused
from pipesched.files.plans.features.catalogue import excluded_pairs

PAGE = Path(__file__).with_name("together.md")
_HEAD = """# What does not go together

Any features of a file may be combined, but for the pairs of this page, which are refused when the file is read, in one
line each. Every other pair is tried by [the matrix](results/matrix.md). The page is written by
`python -m docs.make_together` from the tables that the readers ask.

## In problem files

Of the keys of a [problem file](problem-file.md):

"""
_PLANS = """
A [state](replanning.md) is refused for problems with overlapped blocks, `microbatch_scale` or the objective period.

## In plan files

Of the keys of a [plan file](plans.md):

"""
_TAIL = """
[Limits](limits.md) say what no file can express. What a runtime cannot run is refused by [its export](exporting.md).
"""


def table(refused: Sequence[Refused]) -> str:
    """Return a table of refused pairs of features, as Markdown."""
    rows = ["| found | with | allowed | because |", "|---|---|---|---|"]
    for row in refused:
        found = f"`{row.one.key}` {row.one.value}".strip()
        rows.append(f"| {found} | {row.other.name} | {row.allowed} | {row.why} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """Return the text of docs/together.md."""
    return _HEAD + table(catalogue.excluded_pairs()) + _PLANS + table(excluded_pairs()) + _TAIL


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
