"""The tables of docs/results/accuracy.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from benchmarks.measured.figures import Compared, Errors, Order, by, memory, orders
from benchmarks.measured.judged import JUDGED, Judged, judged_table
from benchmarks.measured.ratios import by_difference, by_kind, choices, pairs, repeated, shown
from benchmarks.measured.rivals import rivals
from benchmarks.measured.table import Row, kind, kind_and_precision, source_of
from benchmarks.reporting.page import table

_HEAD = ("rows", "median ratio", "mean error, %", "90th percentile, %", "within 20 %, %")
_LEFT_OUT = ("left out: median ratio", "mean error, %", "90th percentile, %", "within 20 %, %")

_SHARES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.125)  # by which a plainer layout may be longer


def page(
    found: Sequence[Compared],
    without: Sequence[Compared],
    holdout: Sequence[Compared] = (),
    unseen: Sequence[Compared] = (),
    blind: Sequence[Compared] = (),
    second_blind: Sequence[Compared] = (),
    third_blind: Sequence[Compared] = (),
    fourth_blind: Sequence[Compared] = (),
    hybrid_blind: Sequence[Compared] = (),
    fifth_blind: Sequence[Compared] = (),
) -> str:
    """All tables of the page.

    `without` are the rows with rates that were fitted without their source, the other tables rows that no rate was
    fitted to, of which the last seven were recorded before any was predicted, on different days.
    """
    timed, others = ([one for one in ones if one.row.seconds] for ones in (found, without))
    memory_errors, ordered = memory(found), list(zip(orders(timed), orders(others), strict=True))
    order_rows = [
        _order(own.group.replace(" ", "-"), str(own.rows), [(own, other)])
        for own, other in ordered
        if not own.of_schedules
    ]
    for name, of_schedules in (("mean, layouts", False), ("mean, schedules of one layout", True)):
        ones = [both for both in ordered if both[0].of_schedules is of_schedules]
        order_rows += [_order(name, "", ones)] if ones else []
    recorded_first = unseen, blind, second_blind, third_blind, fourth_blind, hybrid_blind, fifth_blind
    parts = [
        *_judged(recorded_first),
        "Rows of `measured.csv`, to which rates are fitted: predicted over measured seconds of a step, by precision:",
        _errors("precision", _precision, timed, others),
        "By GPU and kind of model (all precisions):", _errors("GPU, model", kind, timed, others),
        "By source:", _errors("source", source_of, timed, others),
        "Order of the layouts of one model on the same GPUs:",
        table(("layouts", "rows", "rank correlation", "loss, %", "left out: rank correlation", "loss, %"), order_rows),
        *_ratios(others),
        "Memory:",
        table(("", "rows", "share, %"), [
            ["ran, said not to fit", str(memory_errors.ran), f"{100 * memory_errors.refused:.1f}"],
            ["out of memory, said to fit", str(memory_errors.out_of_memory), f"{100 * memory_errors.accepted:.1f}"],
            ["peak more than 10 % off what was allocated", str(memory_errors.peaks), f"{100 * memory_errors.far:.1f}"],
        ]),
        f"Median of predicted over allocated peaks: {memory_errors.ratio:.2f}.",
        *_rivals(timed),
        *_holdout(holdout),
        *(part for own, of in zip(JUDGED, recorded_first, strict=True) for part in _recorded_first(own, of)),
        *_order_alone("Order of the layouts in `fourth_blind.csv` of one model on the same GPUs:", fourth_blind),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _ratios(left_out: Sequence[Compared]) -> list[str]:
    """Errors of ratios of two layouts' steps, and what rules that recommend by them lose."""
    known = pairs(left_out)
    rows = [[name, *shown(each)] for name, each in by_kind(known).items()]
    rows += [[f"all that differ in {name}", *shown(each)] for name, each in by_difference(known).items()]
    rules = [
        ("the least predicted step", 0.0),
        *((f"the plainest within {100 * share:g} %", share) for share in _SHARES),
    ]
    chosen = [(name, choices(left_out, share)) for name, share in rules]
    chosen.append(("the plainest within the error of a ratio, of the other groups", choices(left_out, None)))
    if not rows:
        return []
    return [
        "Ratio of two layouts' steps, of one model on the same GPUs, with rates fitted without their source:",
        table(("pairs of layouts", "pairs", "mean error, %", "median, %", "90th percentile, %"), rows),
        f"Loss of the layout recommended, against the best measured of each of {chosen[0][1].groups} groups:",
        table(("recommended", "mean loss, %", "largest, %"), [
            [name, f"{100 * one.mean:.1f}", f"{100 * one.largest:.1f}"] for name, one in chosen
        ]),
    ]  # fmt: skip


def _rivals(timed: Sequence[Compared]) -> list[str]:
    """Errors of other models on the same rows."""
    found = [
        [one.name, str(one.rows), f"{100 * one.error:.1f}", f"{100 * one.own:.1f}",
         *(["-", "-"] if one.peak_error is None or one.own_peak is None
           else [f"{100 * one.peak_error:.1f}", f"{100 * one.own_peak:.1f}"])]
        for one in rivals(timed)
    ]  # fmt: skip
    head = ("model", "rows", "its mean error, %", "pipesched's, %", "its mean error of peaks, %", "pipesched's, %")
    return ["Others on the same rows:", table(head, found)] if found else []


def _holdout(of: Sequence[Compared]) -> list[str]:
    """Rows that no rate was fitted to."""
    if not of:
        return []

    return [
        "`holdout.csv`, Megatron-Bridge's later performance summaries, to which no rate was fitted, but which were "
        "looked at (those of GB300 when its factor over B200 was set):",
        _errors("GPU, model, precision", kind_and_precision, of),
        _errors("all of them", lambda _: "mean", of),
        "Layouts that are in these rows more than once, in several releases of the same software: how much longer the "
        "slowest run takes than the fastest, and the error that is left to a prediction which is one number for all",
        table(
            ("GPU, model, precision", "layouts", "rows", "spread, %", "least possible error, %"),
            [
                [name, str(one.layouts), str(one.rows), f"{100 * one.spread:.1f}", f"{100 * one.least_error:.1f}"]
                for name, one in repeated(of, kind_and_precision).items()
            ],
        ),
    ]


def _judged(tables: Sequence[Sequence[Compared]]) -> list[str]:
    """First predictions of the tables that were recorded before any of their rows was predicted."""
    return (
        ["Judged blind, and what today's formulas say of the same rows:", judged_table(tables)] if all(tables) else []
    )


def _recorded_first(judged: Judged, of: Sequence[Compared]) -> list[str]:
    """Today's predictions of rows that were recorded before any of them was predicted."""
    of = [one for one in of if one.row.seconds]
    if not of:
        return []
    return [
        f"`{judged.file}`, {judged.title}, by today's formulas:",
        _errors("GPU, model, precision", kind_and_precision, of),
        _errors("source", source_of, of),
        _errors("precision", _precision, of),
        _errors("all of them", lambda _: "mean", of),
    ]


def _order_alone(title: str, of: Sequence[Compared]) -> list[str]:
    """The order of the layouts of each group, of rows that have a measured step."""
    found = [one for one in orders([one for one in of if one.row.seconds]) if not one.of_schedules]
    if not found:
        return []
    rows = [
        [one.group.replace(" ", "-"), str(one.rows), f"{one.correlation:.2f}", f"{100 * one.loss:.1f}"] for one in found
    ]
    correlation, loss = mean(one.correlation for one in found), mean(one.loss for one in found)
    rows.append(["mean", "", f"{correlation:.2f}", f"{100 * loss:.1f}"])
    return [title, table(("layouts", "rows", "rank correlation", "loss, %"), rows)]


def _precision(row: Row) -> str:
    return "BF16" if row.bf16 else "fewer bits"


def _errors(
    name: str, key: Callable[[Row], str], timed: Sequence[Compared], without: Sequence[Compared] | None = None
) -> str:
    rows, others = by(key, timed), by(key, without or ())
    return table(
        (name, *_HEAD, *(_LEFT_OUT if others else ())),
        [[one, str(own.rows), *_shown(own), *(_shown(others[one]) if others else ())] for one, own in rows.items()],
    )


def _shown(of: Errors) -> list[str]:
    return [f"{of.median:.2f}", *(f"{100 * share:.1f}" for share in (of.mean, of.p90, of.near))]


def _order(name: str, rows: str, of: Sequence[tuple[Order, Order]]) -> list[str]:
    shown = []
    for ones in zip(*of, strict=True):
        correlation, loss = mean(one.correlation for one in ones), mean(one.loss for one in ones)
        shown += [f"{correlation:.2f}", f"{100 * loss:.1f}"]
    return [name, rows, *shown]
