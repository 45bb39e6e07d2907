"""Predicted beside measured steps: `python -m benchmarks.accuracy [--table FILE --configs DIR] [--write]`.

Every row of the table of published measurements is predicted by the formulas that `new --from` and `layouts` use:
the runtime's own cut and schedule, simulated. `--write` puts the tables into docs/results/accuracy.md.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import mean

from benchmarks.measured.figures import Compared, Errors, Order, by, errors, memory, orders
from benchmarks.measured.prediction import predicted
from benchmarks.measured.table import CONFIGS, TABLE, Row, read_table
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files import model_configs
from pipesched.files.atomic_write import write_whole
from pipesched.files.model_configs.expected_error import FILE, kind_of

PAGE = Path(__file__).parents[1] / "docs" / "results" / "accuracy.md"
RECORD = Path(__file__).parent / "data" / "accuracy.json"
EXPECTED = Path(str(files(model_configs))) / FILE
_ENOUGH = 5  # rows of a kind, for their mean to say what to expect
_HEAD = ("rows", "median ratio", "mean error, %", "90th percentile, %", "within 20 %, %")


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
    args = parser.parse_args(arguments)
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
    show(PAGE if args.write else None, "python -m benchmarks.accuracy --write", page(found))
    if args.write:
        write_whole(RECORD, json.dumps(record(found), indent=1) + "\n")
        write_whole(EXPECTED, json.dumps(expected(found), indent=1) + "\n")
    return 0


def compared(path: Path = TABLE, configs: Path = CONFIGS) -> list[Compared]:
    """Every row of a table with its prediction."""
    return [Compared(row, predicted(row, configs)) for row in read_table(path)]


def kind(row: Row) -> str:
    """The family of the GPU and of the model, as `expected_error` names it."""
    return kind_of(row.gpu, row.moe)


def record(found: Sequence[Compared]) -> dict[str, float]:
    """The figures that no change may worsen unsaid, by name; all but the last three are better when smaller."""
    timed = [one for one in found if one.row.seconds]
    bf16, held = errors(one for one in timed if one.row.bf16), memory(found)
    found_orders = orders(timed)
    ordered, schedules = ([one for one in found_orders if one.of_schedules is own] for own in (False, True))
    return {
        "mean error, BF16": round(bf16.mean, 4),
        **{f"mean error, {name}": round(own.mean, 4) for name, own in by(kind, timed).items()},
        "loss by the order": round(mean(one.loss for one in ordered), 4),
        "largest loss by the order": round(max(one.loss for one in ordered), 4),
        "ran, said not to fit": round(held.refused, 4),
        "out of memory, said to fit": round(held.accepted, 4),
        "loss by the order of schedules": round(mean(one.loss for one in schedules), 4),
        "within 20 %, BF16": round(bf16.near, 4),
        "rank correlation": round(mean(one.correlation for one in ordered), 4),
        "rank correlation of schedules": round(mean(one.correlation for one in schedules), 4),
    }


def expected(found: Sequence[Compared]) -> list[dict[str, object]]:
    """What `layouts` says of its own error: that of each kind of which enough steps were measured."""
    own = by(kind, [one for one in found if one.row.seconds])
    return [
        {"kind": name, "mean": round(each.mean, 3), "rows": each.rows}
        for name, each in own.items()
        if each.rows >= _ENOUGH
    ]


def page(found: Sequence[Compared]) -> str:
    """All tables of the page."""
    timed = [one for one in found if one.row.seconds]
    bf16, held = [one for one in timed if one.row.bf16], memory(found)
    fewer = [one for one in timed if not one.row.bf16]
    whole = {"BF16": errors(bf16)} | ({"FP8": errors(fewer)} if fewer else {})
    ordered = orders(timed)
    order_rows = [_order(one.group.replace(" ", "-"), str(one.rows), [one]) for one in ordered if not one.of_schedules]
    for name, of_schedules in (("mean, layouts", False), ("mean, schedules of one layout", True)):
        ones = [one for one in ordered if one.of_schedules is of_schedules]
        order_rows += [_order(name, "", ones)] if ones else []
    parts = [
        "Predicted over measured seconds of a step, by precision:", _errors("precision", whole),
        "By GPU and kind of model (all precisions):", _errors("GPU, model", by(kind, timed)),
        "By source:", _errors("source", by(_source, timed)),
        "Order of the layouts of one model on the same GPUs:",
        table(("layouts", "rows", "rank correlation", "loss, %"), order_rows),
        "Memory:",
        table(("", "rows", "share, %"), [
            ["ran, said not to fit", str(held.ran), f"{100 * held.refused:.1f}"],
            ["out of memory, said to fit", str(held.out_of_memory), f"{100 * held.accepted:.1f}"],
            ["peak more than 10 % off what was allocated", str(held.peaks), f"{100 * held.far:.1f}"],
        ]),
        f"Median of predicted over allocated peaks: {held.ratio:.2f}.",
    ]  # fmt: skip
    return "\n\n".join(parts)


def _errors(name: str, of: Mapping[str, Errors]) -> str:
    rows = [
        [key, str(own.rows), f"{own.median:.2f}", *(f"{100 * share:.1f}" for share in (own.mean, own.p90, own.near))]
        for key, own in of.items()
    ]
    return table((name, *_HEAD), rows)


def _order(name: str, rows: str, of: Sequence[Order]) -> list[str]:
    correlation, loss = mean(one.correlation for one in of), mean(one.loss for one in of)
    return [name, rows, f"{correlation:.2f}", f"{100 * loss:.1f}"]


def _source(row: Row) -> str:
    """The repository or paper, without the file."""
    first, _, rest = row.source.partition(" ")
    return f"{first} {rest.partition(' ')[0]}".rstrip(":,;") if first in ("arXiv", "MegaScale", "Meta") else first


if __name__ == "__main__":
    sys.exit(exit_code(main))
