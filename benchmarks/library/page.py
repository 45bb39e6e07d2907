"""The table of the library for its page of the docs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

from benchmarks.library.entry import Entry
from benchmarks.library.instance import OURS
from benchmarks.library.standing import Standing
from benchmarks.reporting.page import in_percent, table
from pipesched.problem.formatting import counted

HEAD = ("instance", "objective", "published", "best known", "bound", "gap, %", "proved by", "ahead")


def row(found: Standing) -> list[str]:
    """The line of one instance."""
    one, best, bound = found.instance, found.best, found.bound
    published = "; ".join(map(str, found.published)) or "–"
    value = "none yet" if best is None else _number(best.value) + _sender(best)
    return [
        f"[{one.folder.name}](../library/{one.name})",
        f"{one.problem.objective.name}{f', {one.problem.time_unit}' if one.problem.time_unit else ''}",
        published,
        value,
        _number(bound.bound) if bound is not None else "–",
        in_percent(None if found.gap is None else float(found.gap)) or "open",
        "–" if bound is None else bound.proved_by + (" (trusted)" if bound.trusted else ""),
        _ahead(found),
    ]


def text(every: Sequence[Standing]) -> str:
    """The counts of all instances, and a table for each source."""
    parts = [summary(every)]
    for _, group in groupby(every, key=lambda found: found.instance.family):
        rows = [*group]
        source = rows[0].instance.source
        title = source.title if source.url is None else f"[{source.title}]({source.url})"
        parts += [f"## {title}", source.about, table(HEAD, [*map(row, rows)])]
    return "\n\n".join(parts)


def summary(every: Sequence[Standing]) -> str:
    """The number of instances proved, and how often who is ahead."""
    proved = [one for one in every if one.gap == 0]
    trusted = sum(one.bound is not None and one.bound.trusted for one in proved)
    leads = [one.ahead for one in every if one.ahead is not None]
    ours, theirs = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    unchecked = f" ({trusted} of them by an exhaustive search that the check does not repeat)" if trusted else ""
    return (
        f"{counted(len(every), 'instance')}: {len(proved)} proved optimal{unchecked}, {len(every) - len(proved)} open. "
        f"Of {len(leads)} with a published schedule to compare, the best known one is better in {ours}, as good in "
        f"{len(leads) - ours - theirs}, worse in {theirs}."
    )


def _sender(best: Entry) -> str:
    """The name of a file that is not ours, which its sender chose."""
    name = best.path.name.partition(".")[0]
    return "" if name in OURS else f" ({name})"


def _ahead(found: Standing) -> str:
    lead = found.ahead
    if lead is None:
        return "–"
    if lead == 0:
        return "equal"
    return f"{'best known' if lead > 0 else 'published'} by {in_percent(abs(float(lead)))} %"


def _number(value: Fraction | None) -> str:
    return "–" if value is None else f"{float(value):.10g}"


def line(found: Standing) -> str:
    """One line for the terminal."""
    cells = dict(zip(HEAD, row(found), strict=True))
    facts = (
        f"{cells['best known']}, bound {cells['bound']} ({cells['proved by']}), gap {cells['gap, %']}, {cells['ahead']}"
    )
    return f"{found.instance.name}: {facts}"
