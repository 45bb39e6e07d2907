"""Predicted and measured steps: `python -m benchmarks.accuracy [--table FILE --configs DIR] [--fit | --write]`.

Every row of the table of published measurements is predicted by the formulas that `new --from` and `layouts` use:
the runtime's own cut and schedule, simulated. `--write` puts the tables into docs/results/accuracy.md; `--fit` fits the
rates of devices to the rows, all of them and without each source in turn, for the table of devices and that page.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from statistics import mean

from benchmarks.measured.figures import Compared, by, errors, memory, orders
from benchmarks.measured.fit import devices_with, fitted
from benchmarks.measured.prediction import predicted
from benchmarks.measured.ratios import Pair, by_kind, choices, pairs
from benchmarks.measured.stored import PREDICTIONS, predictions_text, rounded
from benchmarks.measured.table import (
    BLIND,
    CONFIGS,
    FIFTH_BLIND,
    FOURTH_BLIND,
    HOLDOUT,
    HYBRID_BLIND,
    SECOND_BLIND,
    TABLE,
    THIRD_BLIND,
    UNSEEN,
    kind,
    kind_and_precision,
    read_table,
    source_of,
)
from benchmarks.measured.tables import page
from benchmarks.reporting.page import exit_code, show
from pipesched.files import model_configs
from pipesched.files.atomic_write import write_whole
from pipesched.files.model_configs.expected_error import FILE
from targets.layout_rows import RecommendParams

PAGE = Path(__file__).parents[1] / "docs" / "results" / "accuracy.md"
RECORD = Path(__file__).parent / "data" / "accuracy.json"
RATES = Path(__file__).parent / "data" / "rates.json"
EXPECTED = Path(str(files(model_configs))) / FILE
RECOMMENDED_WITHIN = RecommendParams().as_good
# Tables of rows that no rate was fitted to, by what the record calls them.
OTHERS = {
    "held out": HOLDOUT, "unseen": UNSEEN, "blind": BLIND, "recorded later": SECOND_BLIND, "recorded last": THIRD_BLIND,
    "of other code": FOURTH_BLIND, "of hybrid models": HYBRID_BLIND, "of other machines": FIFTH_BLIND,
}  # fmt: skip
# And the table of rows that rates are fitted to, with these rates and with those fitted without a row's source.
FITTED, LEFT_OUT = "fitted", "left out"
_ENOUGH = 5  # rows of a kind, for their mean to say what to expect


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict all rows, print or write the tables."""
    parser = ArgumentParser("python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE, help="measured rows (default: those of the repository)")
    parser.add_argument("--configs", type=Path, default=CONFIGS, help="folder of the models' configurations")
    parser.add_argument(
        "--write",
        action="store_true",
        help="into docs/results/accuracy.md, with what CI compares and `layouts` expects",
    )
    parser.add_argument("--rows", action="store_true", help="print every row with its prediction, as CSV")
    parser.add_argument("--fit", action="store_true", help="fit the rates of devices (minutes), into data/rates.json")
    args = parser.parse_args(arguments)
    if args.fit:
        write_whole(RATES, json.dumps(fitted(read_table(args.table), args.configs)._asdict(), indent=1) + "\n")
        return 0
    found = compared(args.table, args.configs)
    if args.rows:
        print("id,kind,measured_s,predicted_s,ratio,peak_gib,capacity_gib")
        for one in found:
            row, own = one.row, one.found
            ratio = f"{one.ratio:.3f}" if row.seconds else ""
            print(
                row.id,
                kind(row),
                row.seconds or "",
                f"{own.seconds:.4f}",
                ratio,
                f"{own.peak:.1f},{own.capacity:.1f}",
                sep=",",
            )
        return 0
    found, without = rounded(found), rounded(left_out(found, args.configs))
    others = [rounded(compared(path)) for path in OTHERS.values()] if args.table == TABLE else []
    show(PAGE if args.write else None, "python -m benchmarks.accuracy --write", page(found, without, *others))
    if args.write:
        write_whole(RECORD, json.dumps(record(found, without, others), indent=1) + "\n")
        tables = dict(zip((FITTED, LEFT_OUT, *OTHERS), (found, without, *others), strict=True))
        write_whole(PREDICTIONS, predictions_text(tables))
        write_whole(EXPECTED, json.dumps(expected([*without, *tables["of hybrid models"]]), indent=1) + "\n")
    return 0


def compared(path: Path = TABLE, configs: Path = CONFIGS) -> list[Compared]:
    """Every row of a table with its prediction."""
    return [Compared(row, predicted(row, configs)) for row in read_table(path)]


def left_out(found: Sequence[Compared], configs: Path = CONFIGS) -> list[Compared]:
    """The same rows, each predicted with rates that were fitted without its source."""
    without = {name: devices_with(rates) for name, rates in json.loads(RATES.read_text("utf-8"))["without"].items()}
    return [
        one._replace(found=predicted(one.row, configs, without[source_of(one.row)]))
        if source_of(one.row) in without else one
        for one in found
    ]  # fmt: skip


def record(
    found: Sequence[Compared], without: Sequence[Compared], others: Sequence[Sequence[Compared]]
) -> dict[str, float]:
    """The figures that no change may worsen unsaid, by name."""
    known = figures_of_rows(found) | figures_left_out(without)
    for which, rows in zip(OTHERS, others, strict=True):
        known |= figures_of_others(rows, which)
    return known


def figures_of_rows(found: Sequence[Compared]) -> dict[str, float]:
    """The figures of the rows that the rates were fitted to."""
    timed = [one for one in found if one.row.seconds]
    bf16, memory_errors = errors(one for one in timed if one.row.bf16), memory(found)
    found_orders = orders(timed)
    ordered, schedules = ([one for one in found_orders if one.of_schedules is own] for own in (False, True))
    return {
        "mean error, BF16": round(bf16.mean, 4),
        **{f"mean error, {name}": round(own.mean, 4) for name, own in by(kind, timed).items()},
        "loss by the order": round(mean(one.loss for one in ordered), 4),
        "largest loss by the order": round(max(one.loss for one in ordered), 4),
        "ran, said not to fit": round(memory_errors.refused, 4),
        "out of memory, said to fit": round(memory_errors.accepted, 4),
        "loss by the order of schedules": round(mean(one.loss for one in schedules), 4),
        "within 20 %, BF16": round(bf16.near, 4),
        "rank correlation": round(mean(one.correlation for one in ordered), 4),
        "rank correlation of schedules": round(mean(one.correlation for one in schedules), 4),
    }


def figures_left_out(without: Sequence[Compared]) -> dict[str, float]:
    """The figures of the same rows, each predicted with rates that were fitted without its source."""
    judged = [one for one in without if one.row.seconds]
    return {
        "mean error, BF16, left out": round(errors(one for one in judged if one.row.bf16).mean, 4),
        "error of a ratio, left out": round(mean(pair.error for pair in pairs(without)), 4),
        "loss of what is recommended, left out": round(choices(without, RECOMMENDED_WITHIN).mean, 4),
    }


def figures_of_others(rows: Sequence[Compared], which: str) -> dict[str, float]:
    """The figures of a table of rows that no rate was fitted to; `which` is its name in `OTHERS`."""
    rows = [one for one in rows if one.row.seconds]
    own = {f"mean error, {name}, {which}": round(one.mean, 4) for name, one in by(kind_and_precision, rows).items()}
    return own | {f"mean error, {which}": round(errors(rows).mean, 4)}


def expected(found: Sequence[Compared]) -> list[dict[str, object]]:
    """The errors that `layouts` states: that of each kind of which enough steps were measured.

    And that of a ratio of two layouts: over the pairs of the kind, over all pairs where it has too few. Of hybrid
    models `found` has the rows that no rate was fitted to.
    """
    own, every = by(kind, [one for one in found if one.row.seconds]), pairs(found)
    of_kind = by_kind(every)
    return [
        {"kind": name, "mean": round(each.mean, 3), "rows": each.rows, **_ratio(of_kind.get(name, []), every)}
        for name, each in own.items()
        if each.rows >= _ENOUGH
    ]


def _ratio(own: Sequence[float], every: Sequence[Pair]) -> dict[str, object]:
    known = own if len(own) >= _ENOUGH else [pair.error for pair in every]
    return {"ratio": round(mean(known), 3), "pairs": len(known)}


if __name__ == "__main__":
    sys.exit(exit_code(main))
