"""Writes docs/parameters.md: the parameters that tune a solve, as their classes give them.

python -m docs.make_parameters
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solver.parameters import Tuned, parameter_classes, tuned_fields

PAGE = Path(__file__).parent / "parameters.md"

HEADER = """# Parameters

The numbers by which a search was tuned. They change how soon a solve is how good, never whether what it says is right.
Each is a field of a frozen class beside the algorithm that it tunes. *Experiment* is empty where the default was chosen
by judgement and never measured alone. `python -m benchmarks.tune CLASS.FIELD` searches for a better default on drawn
problems. This page is written by `python -m docs.make_parameters`.
"""
# Packages with parameters.
PACKAGES = ("solver", "targets")


def page() -> str:
    """Return the text of docs/parameters.md."""
    parts = [HEADER]
    for package in PACKAGES:
        for found in parameter_classes(package):
            parts.append(f"## {found.__name__}\n\n{_summary(found)} (`{found.__module__.replace('.', '/')}.py`)\n")
            parts.append("| parameter | default | unit | range | experiment |\n|---|---|---|---|---|")
            parts += [_row(name, default, tuned) for name, (default, tuned) in tuned_fields(found).items()]
            parts.append("")
    return "\n".join(parts)


def _summary(of: type) -> str:
    """Return the first paragraph of a parameter class's docstring, as one line."""
    return " ".join((of.__doc__ or "").split("\n\n")[0].split())


def _row(name: str, default: Any, tuned: Tuned) -> str:
    values = default if isinstance(default, tuple) else (default,)
    shown = ", ".join(f"{value:.4g}" if isinstance(value, float) else _whole(value) for value in values)
    span = f"{_whole(tuned.low)} to {_whole(tuned.high)}"
    return f"| `{name}` | {shown} | {tuned.unit} | {span} | {tuned.experiment or ''} |"


def _whole(value: float | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    PAGE.write_text(page())
