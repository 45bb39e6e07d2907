"""The page of the matrix: counts of all, of single features, pairs and triples, and of every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from benchmarks.reporting.page import table

_COLUMNS = (
    "cases",
    "refused at reading",
    "solved",
    "proved",
    "exact model",
    "every order",
    "commands",
    "wrong",
    "tracebacks",
)


def markdown(outcomes: Sequence[dict[str, Any]], described: str) -> str:
    """Tables by size of the set, and by pair of features."""
    rows = []
    for kind in ("problem", "plan"):
        for size, called in ((1, "features"), (2, "pairs"), (3, "triples")):
            own = [one for one in outcomes if one["kind"] == kind and len(one["names"]) == size]
            if own:
                rows.append([f"{called} of {kind} files", *_counts(own)])
    by_seed = ", ".join(map(str, sorted({one["seed"] for one in outcomes})))
    text = f"{described}. Seeds of cases: {by_seed}.\n\n" + table(("", *_COLUMNS), rows)
    for kind in ("problem", "plan"):
        text += "\n\n" + _by_feature([one for one in outcomes if one["kind"] == kind], kind)
    faults = [one for one in outcomes if one["faults"]]
    lines = [
        f"- {one['kind']}: {' + '.join(one['names'])} (seed {one['seed']}): {_short(one['faults'][0])}"
        for one in faults
    ]
    return text + ("\n\nOpen:\n\n" + "\n".join(lines) if lines else "")


def _short(fault: str) -> str:
    line = fault.splitlines()[0]
    return line if len(line) < 140 else f"{line[:140]}..."


def _counts(own: Sequence[dict[str, Any]]) -> list[str]:
    faults = [fault for one in own for fault in one["faults"]]
    traces = sum("traceback" in fault for fault in faults)
    found = (
        len(own),
        *(sum(bool(one[key]) for one in own) for key in ("refused", "solved", "proved", "exact", "brute")),
        sum(one["commands"] for one in own),
        len(faults) - traces,
        traces,
    )
    return [f"{number:,}" for number in found]


def _by_feature(outcomes: Sequence[dict[str, Any]], kind: str) -> str:
    """For each feature in how many cases it was with another: the fewest and the most of any pair."""
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for one in outcomes:
        for pair in combinations(sorted(one["names"]), 2):
            count = pairs.setdefault(pair, Counter())
            count["cases"] += 1
            for key in ("refused", "solved", "proved", "exact"):
                count[key] += bool(one[key])
            count["faults"] += bool(one["faults"])
    rows = []
    for name in sorted({name for pair in pairs for name in pair}):
        own = [count for pair, count in pairs.items() if name in pair]
        rows.append([name, str(len(own)), *(str(sum(count[key] for count in own)) for key in
                     ("cases", "refused", "solved", "proved", "exact", "faults"))])  # fmt: skip
    head = (
        f"feature of {kind} files",
        "pairs",
        "cases of these",
        "refused",
        "solved",
        "proved",
        "exact model",
        "faults",
    )
    return table(head, rows)
