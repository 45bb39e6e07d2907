"""Report of `layouts`: the plan of each layout, the recommendation with its reason, and layouts without a plan."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from commands.shared.output import percent
from commands.shared.tables import Column, table
from pipesched.files.model_configs.expected_error import family_of
from pipesched.files.model_configs.layouts import Layout
from pipesched.problem.formatting import peak_of, plain
from pipesched.results.gap import gap
from pipesched.results.layouts import EXACT, FIRST, NO_FIRST_PLAN, LayoutRow, Layouts
from pipesched.schedule.metrics import IDLE
from solver.planning.race import NO_TIME, RaceEntry
from targets.layout_race import LayoutRace

_FIGURES = [
    Column("step (ms)", True),
    Column("of it pipeline", True, 3),
    Column("pipeline's bound", True, 2),
    Column("pipeline's gap to bound", True, 2),
    Column("tokens/s", True),
    Column("MFU", True),
    Column(IDLE, True, 4),
    Column("peak memory (GiB)", True),
    Column("recomputed layers", True, 1),
    Column("order", leave_out=5),
    Column("searched", leave_out=1),
]
# Of layouts with and without a plan so many are shown; `--json` and layouts.csv have all.
_SHOWN, _NAMED = 30, 8
_NOT_TRIED = f"{NO_TIME} (--time-limit)"


class Sheet(NamedTuple):
    """A table: title, columns, rows, and the indices of the rows in bold (`strong`)."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    strong: Sequence[int]


def show(found: Layouts, capacity: Fraction | None, target: str | None) -> None:
    """Print the verdict, the table and the notes on it, if a layout has a plan.

    Then the layouts without a plan, by reason. `capacity` is a device's memory in GiB (None: no limit); `target` is the
    runtime of `--for`.
    """
    if found.recommended is not None:
        print(verdict(found, capacity, target))
        table(*sheet(found, target))
        for sentence in notes(found):
            print(sentence)
    for reason, layouts in without(found).items():
        print(f"{len(layouts)} {reason}: {', '.join(layouts[:_NAMED])}{', …' if layouts[_NAMED:] else ''}")


def sheet(found: Layouts, target: str | None, most: int = _SHOWN) -> Sheet:
    """Return the table of the best `most` layouts with a plan, the recommended one in bold and last if not among them.

    `target`, the runtime of `--for`, is named in the title. Sizes that are 1 in all of them have no column, for some
    names.
    """
    fitting = [row for row in found.rows if row.fits]
    names = [
        name
        for name in Layout._fields
        if any(getattr(row, name) > 1 for row in fitting) or name not in ("context", "expert", "microbatch_size")
    ]
    columns = [*(Column(name.replace("_", " "), True) for name in names), Column("micro-batches", True, 1), *_FIGURES]
    runtime = "" if target is None else f", of plans that {target} runs"
    shown = fitting[:most]
    if found.recommended is not None and found.recommended not in shown:
        shown.append(found.recommended)
    more = f" ({len(shown)} of {len(fitting)})" if len(shown) < len(fitting) else ""
    where = f"{found.name} on {found.gpus} x {found.hardware}, {found.sequences} sequences of {found.sequence} tokens"
    strong = [at for at, row in enumerate(shown) if row == found.recommended]
    return Sheet(f"{where} a step: the best plan known of each layout{runtime}{more}", columns,
                 [_cells(row, names) for row in shown], strong)  # fmt: skip


def verdict(found: Layouts, capacity: Fraction | None, target: str | None) -> str:
    """Return a sentence: the recommended layout, its step in ms, its peak memory, and what is proved of all layouts.

    Proved is that no step is shorter, or a lower bound in ms; nothing if `found.step_lower_bound` is None. Some layout
    must be recommended. `capacity` is a device's memory in GiB, to compare the peak with (None: no limit); `target` is
    the runtime of `--for`, whose layouts alone the proof is about (None: any).
    """
    recommended, best = found.recommended, found.rows[0]
    assert recommended is not None and recommended.peak_memory is not None
    peak = Fraction(str(max(recommended.peak_memory)))
    memory = _peak(recommended) if capacity is None else peak_of(peak, capacity, 1)
    sentence = f"recommended layout: {name_of(recommended)}: step {_ms(recommended.total)} ms, peak memory {memory} GiB"
    if recommended != best:
        more = recommended.total / best.total - 1
        sentence += (
            f"; the shortest step has {name_of(best)}, {_ms(best.total)} ms ({percent(more)} less), which is less plain"
        )
    if found.step_lower_bound is None:
        return f"{sentence}; nothing is proved of all layouts, since some were not looked at"
    proved = f"no layout{'' if target is None else f' that {target} runs'} has a "
    if best.total <= found.step_lower_bound:
        return f"{sentence}; {proved}shorter step"
    apart = percent(gap(Fraction(recommended.total), Fraction(found.step_lower_bound)))
    return f"{sentence}; {proved}step below {_ms(found.step_lower_bound)} ms: a gap of {apart}"


def notes(found: Layouts) -> list[str]:
    """Return lines on the steps' assumptions and errors, the next best layouts, and the cost of each micro-batch size.

    Some layout must be recommended.
    """
    lines = [
        "step: the pipeline from its first forward to its last backward, then what no pass hides of exchanging "
        "gradients and weights among the replicas, and the optimizer's step where it is known; not loading of data"
    ]
    recommended = found.recommended
    assert recommended is not None
    rates = ", ".join(
        f"{name} {value if isinstance(value, str) else plain(value)}" for name, value in recommended.assumed.items()
    )
    lines.append(f"assumed of {found.hardware}: {rates} (`new --from` says where each is from)")
    error = recommended.expected_error
    if error is not None:
        measured = error.kind.partition(" ")[0] == family_of(found.hardware)
        few = "" if measured else f"; too few of {found.hardware} are known, and no other kind has a larger error"
        lines.append(
            f"expected error: {percent(error.mean)} of a step, the mean over {error.rows} published measurements of "
            f"{error.kind} (docs/results/accuracy.md){few}"
        )
        lines.append(
            f"expected error of the ratio of two layouts' steps: {percent(error.ratio)}, the mean over {error.pairs} "
            "pairs of measured layouts"
        )
    equal = [row for row in found.rows if row.equal]
    if len(equal) > 1:
        names = ", ".join(map(name_of, equal[:_NAMED])) + (", …" if equal[_NAMED:] else "")
        lines.append(f"equal within the error of a ratio: {len(equal)} layouts: {names}; measure two or three of them")
    further = next((row for row in found.rows if row.fits and not row.equal), None)
    if further is not None:
        lines.append(
            f"the first that is worse by more than that: {name_of(further)}, whose step takes "
            f"{percent(further.total / found.rows[0].total - 1)} longer than the shortest"
        )
    sizes = found.by_microbatch_size
    if len(sizes) > 1:
        each = ", ".join(f"{size}: {'best' if not more else f'+{percent(more)}'}" for size, more in sizes.items())
        lines.append(f"sequences of a micro-batch, each with its best layout: {each}")
    first = sum(row.fits and row.searched != EXACT for row in found.rows)
    if first:
        lines.append(
            f"{first} layouts marked {FIRST}: the best of the runtime's own orders on a few cuts; only others "
            "were searched for better plans"
        )
    return lines


def lacking(race: LayoutRace, gpus: int) -> str:
    """Return the reason if no layout on `gpus` GPUs fits.

    It names the least memory that parameters take in any layout, and the memory there is.
    """

    def state(one: RaceEntry[Layout]) -> Fraction:
        return sum((layer.memory for layer in one.problem.model.sequence), Fraction()) / one.problem.cluster.devices

    least = min(race.rows, key=state)
    room = min(least.problem.cluster.capacity or (Fraction(),))
    needed = f"{peak_of(state(least), room, 1)} {least.problem.cluster.memory_unit}"
    few = state(least) < room
    enough = f"at least {-(-gpus * state(least) // room)} GPUs, or larger ones" if room and not few else "larger GPUs"
    return (
        f"no layout {'found in the time limit ' if few else ''}fits the memory: parameters, gradients "
        f"and optimizer state alone take {needed} a device, spread as {least.key}; it takes "
        + (f"more or {enough}, or recomputes more in a longer search" if few else enough)
    )


def without(found: Layouts) -> dict[str, list[str]]:
    """Return the names of the layouts without a plan by the reason, a predicate such as `cannot fit the memory`."""
    by_reason: dict[str, list[str]] = {}
    for row in found.rows:
        if row.fits or name_of(row) in found.refused:
            continue
        known = {NO_TIME: _NOT_TRIED, NO_FIRST_PLAN: "have no plan found that fits the memory"}
        reason = known.get(
            row.reason, "cannot fit the memory" if "alone take" in row.reason else "are no better, by the bound"
        )
        by_reason.setdefault(reason, []).append(name_of(row))
    for layout, reason in found.refused.items():
        by_reason.setdefault(_NOT_TRIED if reason == NO_TIME else f"refused ({reason})", []).append(layout)
    return by_reason


def csv_text(found: Layouts) -> str:
    """Return the text of layouts.csv: a line for each layout, with the parts of its step in columns of their own."""
    columns = [name for name in LayoutRow.__dataclass_fields__ if name not in ("step", "assumed", "expected_error")]
    parts = ("total", "pipeline", "exchange", "optimizer")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, *(f"step_{part}" for part in parts)])
    for row in found.rows:
        own = row.document()
        cells = [" ".join(map(str, own[name])) if isinstance(own[name], list) else own[name] for name in columns]
        writer.writerow([*cells, *((row.step or {}).get(part) for part in parts)])
    return out.getvalue()


def name_of(row: LayoutRow) -> str:
    """Return the name of a row's layout, such as `TP2 PP4 DP8`."""
    return str(Layout(**row.sizes))


def _cells(row: LayoutRow, names: list[str]) -> list[str]:
    assert row.peak_memory is not None and row.pipeline_time is not None
    assert row.tokens_per_second is not None and row.lower_bound is not None
    return [
        *(str(getattr(row, name)) for name in names),
        str(row.microbatches),
        _ms(row.total),
        _ms(row.pipeline_time),
        _ms(row.lower_bound),
        percent(row.gap),
        plain(round(row.tokens_per_second)),
        percent(row.mfu),
        percent(row.idle),
        _peak(row),
        str(row.recomputed_layers),
        f"{row.placement}, {row.schedule}",
        str(row.searched),
    ]


def _peak(row: LayoutRow) -> str:
    """Return the peak memory in GiB, rounded down, since it fits."""
    assert row.peak_memory is not None
    return plain(float(Fraction(str(max(row.peak_memory))) * 10 // 1) / 10)


def _ms(time: float) -> str:
    return plain(round(time, 3))
