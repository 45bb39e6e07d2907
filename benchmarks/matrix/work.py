"""The sets of switches of a run of the matrix, and how these are run in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.matrix.outcome import Outcome
from benchmarks.matrix.run import KINDS, run_drawn
from benchmarks.matrix.store import Lines
from benchmarks.matrix.switch import together

# One triple in so many goes through every command.
_THOROUGH = 100
# So many run in one process.
_CASES_OF_A_PROCESS = 200


class Work(NamedTuple):
    """A set of switches of a kind of file, the seed that draws its case, and whether every command runs on it."""

    kind: str
    names: tuple[str, ...]
    seed: int
    thorough: bool


def works(pairs: bool, triples: int, seed: int, thorough: int = 1) -> Iterator[Work]:
    """Single switches and all pairs, if they are asked for, and so many triples; one pair in `thorough` runs all."""
    for kind, own in KINDS.items() if pairs else ():
        yield from (Work(kind, names, seed, True) for names in together(own, 1))
        yield from (Work(kind, names, seed, at % thorough == 0) for at, names in enumerate(together(own, 2)))
    random = Random(seed)
    sets = {kind: list(together(own, 3)) for kind, own in KINDS.items()}
    every = [(kind, names) for kind, found in sets.items() for names in found]
    random.shuffle(every)
    for at in range(triples):
        kind, names = every[at % len(every)]
        yield Work(kind, names, seed + at // len(every), at % _THOROUGH == 0)


def run_all(todo: Sequence[Work], folder: Path, workers: int) -> None:
    """Run them in so many processes at a time, each replaced after some cases: what libraries keep of each adds up."""
    parts = [todo[at : at + _CASES_OF_A_PROCESS] for at in range(0, len(todo), _CASES_OF_A_PROCESS)]
    with ThreadPoolExecutor(workers) as pool:
        for one in [pool.submit(_run_part, part, folder) for part in parts]:
            one.result()


def _run_part(part: Sequence[Work], folder: Path) -> None:
    """Run them in a process; a case that ends it counts as one with a fault, and the others go on in a new process."""
    while part:
        process = get_context("spawn").Process(target=run_here, args=(part, folder))
        process.start()
        process.join()
        if process.exitcode == 0:
            return
        done = Lines(folder / f"{process.pid}.jsonl").known()
        work, *part = [one for one in part if one[:3] not in done]
        _keep(work, Outcome(*work[:3], faults=[f"ends its process with code {process.exitcode}"]), folder)


def run_here(part: Sequence[Work], folder: Path) -> None:
    """Run them one after the other, keep the outcomes in a file of the folder, and print their faults.

    Until the program that started this one has ended: commands answer a signal themselves, and go on.
    """
    parent = parent_process()
    for work in part:
        if parent is not None and not parent.is_alive():
            return
        _keep(work, run_drawn(*work), folder)


def _keep(work: Work, outcome: Outcome, folder: Path) -> None:
    Lines(folder / f"{os.getpid()}.jsonl").keep(outcome)
    for fault in outcome.faults:
        print(f"{work.kind} {' + '.join(work.names)} (seed {work.seed}): {fault[:400]}", file=sys.stderr, flush=True)
