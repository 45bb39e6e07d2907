"""Tables of measured rows that were committed before any formula had seen one of them, and the errors of that day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.measured.figures import Compared, errors
from benchmarks.reporting.page import table


class Judged(NamedTuple):
    """The first prediction of a table in benchmarks/data: a fact that later formulas do not change.

    `rows` had a measured step that day, and were recorded in the commit `recorded`. The formulas of the commit
    `formulas` were off by `error`, on rows in BF16 by `bf16` (None: not written down that day), with the share `near`
    within 20 %, all in %. `dependent` is what other tables knew of the rows.
    """

    file: str
    title: str
    rows: int
    recorded: str
    formulas: str
    error: float
    bf16: float | None
    near: float
    dependent: str


# In the order in which they were recorded, which is that of the tables of benchmarks.accuracy.
JUDGED = (
    Judged(
        "unseen.csv", "other sources", 163, "e2eed161", "before 8b454b84", 14.3, 18.1, 83,
        "Megatron-Bridge, NeMo and torchtitan have other rows in the fitted table",
    ),
    Judged(
        "blind.csv", "torchtitan, NeMo 24.07, AutoModel, Megatron-Bridge 25.09", 64, "440df18c", "f0f819fe", 19.5, 17.2,
        57.8, "all sources but one have other rows in earlier tables",
    ),
    Judged(
        "second_blind.csv", "MLPerf, FlagPerf, JAX, dgxc-benchmarking 25.08 and later", 112, "74ba8a2b", "b4174f57",
        12.6, 13.9, 83.9, "NVIDIA's sources have other releases in earlier tables",
    ),
    Judged(
        "third_blind.csv", "MLPerf's other submitters, Google Cloud, IBM, AWS, NeMo 25.07", 118, "16e30886", "16e30886",
        10.3, 9.7, 89.0,
        "submitters run NVIDIA's or AMD's code; 11 rows have the layout of an earlier row, none of a fitted one",
    ),
    Judged(
        "fourth_blind.csv", "training code that no other table has", 113, "6b6ef917", "df836d61", 13.2, 13.2, 80.5,
        "none; 82 rows are of one page and network (nanotron)",
    ),
    Judged(
        "hybrid_blind.csv", "hybrid models", 53, "331f7394", "276c481e", 25.4, None, 41.5,
        "50 are Megatron-Bridge's, of which other tables have other models",
    ),
    Judged(
        "fifth_blind.csv", "MLPerf 5.1 on other machines, Mixtral under FSDP2", 53, "59913deb", "59913deb", 13.4, None,
        71.7, "44 repeat a layout on another machine, so that they judge machines more than formulas",
    ),
)  # fmt: skip


def judged_table(tables: Sequence[Sequence[Compared]]) -> str:
    """Return the table of first predictions and of those of today's formulas; `tables` in the order of `JUDGED`."""
    rows = []
    for own, found in zip(JUDGED, tables, strict=True):
        today = errors(one for one in found if one.row.seconds)
        rows.append([
            f"`{own.file}`: {own.title}", str(own.rows), own.recorded, own.formulas, f"{own.error:.1f}",
            "-" if own.bf16 is None else f"{own.bf16:.1f}", f"{own.near:g}", own.dependent,
            str(today.rows), f"{100 * today.mean:.1f}", f"{100 * today.near:.1f}",
        ])  # fmt: skip
    head = (
        "table", "rows", "recorded in commit", "formulas of commit", "error of that day, %", "BF16, %",
        "within 20 %, %", "not independent", "rows today", "error today, %", "within 20 % today, %",
    )  # fmt: skip
    return table(head, rows)
