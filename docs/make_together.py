"""Writes docs/together.md: what two features of a problem file may not do together, from the reader's own table.

python -m docs.make_together
"""

from __future__ import annotations

from pathlib import Path

from pipesched.files.problems.together import REFUSED

PAGE = Path(__file__).with_name("together.md")
_HEAD = """# What does not go together

Any features of a [problem file](problem-file.md) may be combined, but for these pairs, which are refused when the file
is read, in one line each. Every other pair is tried by [the matrix](results/matrix.md). This page is written by
`python -m docs.make_together` from the table that the reader asks.

| found | with | allowed | because |
|---|---|---|---|
"""
_TAIL = """
A [state](replanning.md) is refused for problems with overlapped blocks, `microbatch_scale` or the objective period.
What a plan file may not combine its reader says, and [limits](limits.md) say what no file can express. What a runtime
cannot run is refused by [its export](exporting.md).
"""


def page() -> str:
    """The whole page."""
    rows = []
    for row in REFUSED:
        found = f"`{row.one.key}` {row.one.value}".strip()
        rows.append(f"| {found} | {row.other.name} | {row.allowed} | {row.why} |")
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
