"""Report of `check` on a store of sweeps: each cell, bounds that could not be verified, and counts."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

from commands.reports.checks.cell_check import CellCheck, check_cell
from commands.shared.catalogue import Exit
from commands.shared.output import write_json
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.problem.formatting import counted, plain
from pipesched.sweeps.stored import StoredCell, is_store, stored_cells
from pipesched.sweeps.values import label

_STORE = "sweep.sqlite"


def store_at(path: str) -> Path | None:
    """Return the store of sweeps at a path: the file itself, or the one in the folder of `sweep -o`.

    None if there is none.
    """
    given = Path(path)
    found = given / _STORE if given.is_dir() else given
    return found if is_store(found) else None


def check_sweep(store: Path, args: Namespace) -> Exit:
    """Check every cell of a store and print the report; exit code 1 if something does not hold.

    `BadInput` with `--again`, which is for one cell's file.
    """
    if args.again:
        allowed = "of one cell's file, which `sweep --write CELL` writes"
        raise BadInput(f"--again: found with {store}; allowed: with `check` {allowed}")
    checks = [check_cell(cell) for cell in stored_cells(store)]
    if args.json:
        write_json({"store": str(store), "cells": [_document(one) for one in checks], "counts": _counts(checks)})
    else:
        for one in checks:
            _say(one)
        print(f"{store}: {_summary(checks)}")
    return Exit.DONE if all(one.holds for one in checks) else Exit.NO


def _say(one: CellCheck) -> None:
    print(f"{_place(one.cell)}: {_verdict(one)}")


def _verdict(check: CellCheck) -> str:
    if check.skipped:
        return f"nothing to check, {check.skipped}"
    if check.wrong:
        return "; ".join(check.wrong)
    known, verdict = check.cell.outcome, check.verdict
    valid = "" if known is None or known.value is None else f"{plain(float(known.value))}, valid; "
    if verdict is None:
        return f"{valid}no lower bound is stated"
    if len(check.findings) == 1:
        return f"{valid}{verdict}: {check.findings[0].text}"
    counts = Counter(finding.verdict for finding in check.findings)
    by_verdict = ", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each])
    text = f"{valid}{verdict}: {counted(len(check.findings), 'placement')}, {by_verdict}"
    if verdict in (Verdict.NOT_VERIFIED, Verdict.REFUSED):
        text += f" ({next(finding.text for finding in check.findings if finding.verdict is verdict)})"
    return text


def _place(cell: StoredCell) -> str:
    at = ", ".join(f"{name} {label(value)}" for name, value in cell.at.items())
    return f"{cell.sweep}, cell {cell.number} ({at})"


def _summary(checks: list[CellCheck]) -> str:
    counts = _counts(checks)
    bounds = ", ".join(f"{counts[each.value]} {each}" for each in Verdict)
    text = f"{counted(counts['cells'], 'cell')}; {counts['valid']} with a valid schedule, {counts['wrong']} wrong"
    return f"{text}; bounds: {bounds}; {counts['optimal']} shown to be optimal, {counts['skipped']} not to be checked"


def _counts(checks: list[CellCheck]) -> dict[str, int]:
    solved = [one for one in checks if one.cell.outcome is not None and one.cell.outcome.value is not None]
    found = {
        "cells": len(checks),
        "valid": sum(not one.wrong for one in solved),
        "wrong": sum(bool(one.wrong) for one in checks),
        "optimal": sum(one.optimal for one in checks),
        "skipped": sum(bool(one.skipped) for one in checks),
    }
    return found | {each.value: sum(one.verdict is each for one in checks) for each in Verdict}


def _document(check: CellCheck) -> dict[str, Any]:
    known = check.cell.outcome
    return {
        "sweep": check.cell.sweep,
        "cell": check.cell.number,
        "at": dict(check.cell.at),
        "skipped": check.skipped or None,
        "valid": None if known is None or known.value is None else not check.wrong,
        "wrong": check.wrong,
        "lower_bound": None if known is None or known.lower_bound is None else float(known.lower_bound),
        "bound": None if check.verdict is None else check.verdict.value,
        "findings": [{"bound": each.verdict.value, "text": each.text} for each in check.findings],
        "optimal": check.optimal,
    }
