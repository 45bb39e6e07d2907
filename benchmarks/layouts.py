"""`layouts` by the number of GPUs: its first pass, and how good its answer is against that of a longer search.

    python -m benchmarks.layouts --write                       the first pass of each model and number of GPUs
    python -m benchmarks.layouts --longer 3600 --write          also a search of so many seconds, of one of them

Processor seconds are those of the whole pass in one process: rates, layers and a plan of every layout.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from time import process_time
from typing import NamedTuple

from benchmarks.measured.table import CONFIGS
from benchmarks.reporting.page import exit_code, machine, show, table
from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_file import find_device
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.problem.formatting import plain
from pipesched.results.layouts import EXACT, Layouts
from solver.limits import Limits
from solver.planning.time_shares import TimeShares
from targets.layout_answer import answered
from targets.layout_race import Batch, LayoutRace, first_plans

PAGE = Path(__file__).parents[1] / "docs" / "results" / "layouts.md"
_TARGET = "megatron"
_ALL = 10**6  # s: the first pass looks at every layout


class Subject(NamedTuple):
    """A model on so many GPUs, and the micro-batches of a step on all replicas together."""

    model: str
    gpus: int
    microbatches: int
    hardware: str = "h100-80gb"

    @property
    def wanted(self) -> Wanted:
        return Wanted(1, 1, *find_device(self.hardware))


SUBJECTS = (
    Subject("llama3-8b", 8, 64), Subject("qwen3-30b-a3b", 8, 64), Subject("llama3-70b", 64, 256),
    Subject("qwen3-235b-a22b", 64, 512), Subject("llama3-70b", 512, 1024), Subject("deepseek-v3", 512, 1024),
    Subject("llama3.1-405b", 2048, 2048), Subject("deepseek-v3", 2048, 7680),
)  # fmt: skip
# The one whose answer is compared with that of a longer search.
SEARCHED = Subject("deepseek-v3", 512, 1024)
HEAD = ("model", "GPUs", "layouts", "that fit", "processor seconds", "best first plan", "step (ms)")
SEARCH_HEAD = (
    "seconds",
    "searched exactly",
    "recommended",
    "step (ms)",
    "no layout's step is below",
    "first plan (ms)",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the first passes, and the searches where they are asked for; print or write the tables."""
    parser = ArgumentParser("python -m benchmarks.layouts", description=__doc__)
    parser.add_argument("--longer", type=float, metavar="SECONDS", help="compare the default with so long a search")
    parser.add_argument("--default", type=float, default=50, metavar="SECONDS", help="of a search (default: 50)")
    parser.add_argument("--gpus", type=int, default=10**6, metavar="N", help="leave out what has more")
    parser.add_argument("--write", action="store_true", help="into docs/results/layouts.md")
    args = parser.parse_args(arguments)
    page = PAGE if args.write else None
    subjects = [one for one in SUBJECTS if one.gpus <= args.gpus]
    whole = len(subjects) == len(SUBJECTS)
    if page is not None and not whole and not args.longer:
        raise BadInput(f"--write: found with --gpus {args.gpus}, which leaves rows out; allowed: with all rows")
    rows = [first_pass(one) for one in subjects]
    show(page if whole else None, "python -m benchmarks.layouts --write", f"{machine(0, 1)}\n\n{table(HEAD, rows)}")
    if args.longer:
        found = [searched(SEARCHED, seconds) for seconds in (args.default, args.longer)]
        show(
            page,
            "python -m benchmarks.layouts --longer 3600 --write",
            f"{machine(0, os.cpu_count() or 1)}\n\n{table(SEARCH_HEAD, found)}",
        )
    return 0


def first_pass(one: Subject) -> list[str]:
    """The figures of one model and number of GPUs."""
    before = process_time()
    race = _first(one)
    seconds = process_time() - before
    fitting = [row for row in race.rows if row.step is not None]
    best = min(fitting, key=lambda row: row.step.total if row.step is not None else 0, default=None)
    name, step = ("none", "") if best is None or best.step is None else (str(best.key), _ms(float(best.step.total)))
    return [one.model, str(one.gpus), str(len(race.rows)), str(len(fitting)), f"{seconds:.1f}", name, step]


def searched(one: Subject, seconds: float) -> list[str]:
    """The figures of a search of so many seconds."""
    found = answer(one, seconds)
    best = found.recommended
    assert best is not None
    exact = sum(row.searched == EXACT for row in found.rows)
    first = min(float(row.step.total) for row in _first(one).rows if row.step is not None)
    name = " ".join(f"{key.replace('_', ' ')} {size}" for key, size in best.sizes.items() if size > 1)
    return [plain(seconds), str(exact), name, _ms(best.total), _ms(found.step_lower_bound or 0), _ms(first)]


def answer(one: Subject, seconds: float) -> Layouts:
    """The answer of `layouts` within a time limit."""
    config = read_config(str(CONFIGS / f"{one.model}.json"))
    return answered(
        config, one.wanted, one.gpus, Batch(one.microbatches), {}, one.model, _TARGET, Limits(seconds=seconds),
        lambda *_: None, lambda _: None, Event(), lambda: None,
    ).layouts  # fmt: skip


def _first(one: Subject) -> LayoutRace:
    config, time = read_config(str(CONFIGS / f"{one.model}.json")), TimeShares(Limits(seconds=_ALL))
    batch = Batch(one.microbatches)
    return first_plans(
        config, one.wanted, one.gpus, batch, {}, one.model, _TARGET, time, lambda *_: None, Event()
    )  # fmt: skip


def _ms(time: float) -> str:
    return plain(round(time, 1))


if __name__ == "__main__":
    sys.exit(exit_code(main))
