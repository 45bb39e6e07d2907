"""Unpaired passes: the least time over the numbers of passes outside of overlapped blocks and of split backwards.

Until the first backward can arrive a device runs forwards that no backward pairs with, or idles; after its last forward
it runs backwards that no forward pairs with, or idles. Outside of blocks are as many backwards as forwards, and each
such pair takes more time than a block. Only backwards outside of blocks can be split, and their weight passes
postponed, which may take more time than a full backward. The bound is the least over the number outside of blocks, and
over the number split, of the most that the arguments of load, of head and tail and of round trips prove for these
numbers.
"""

from __future__ import annotations

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.modes.counts import Numbers, modes_count
from solver.bounds.analytic.modes.values import Argument, ModeValues

# Rows, columns and words.
_NEIGHBOURS = (
    (-1, 0, "one less outside"),
    (1, 0, "one more outside"),
    (0, -1, "one less split"),
    (0, 1, "one more split"),
)


def unpaired_passes(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each device with passes a bound on the makespan or span (`objective`) by its least time.

    The minimum is over its numbers of passes outside of blocks and of split backwards. For each pair of numbers the
    strongest argument counts: load, head and tail, or round trips. Empty where neither blocks nor full backwards may
    save time, or a device has too many forwards to count (`modes_count`). The problem must be plain.
    """
    paths = Paths(problem)
    devices = visited(paths.view) if modes_count(paths.view) else ()
    return [_certificate(problem, ModeValues(paths, objective, device)) for device, _ in devices]


def _certificate(problem: Problem, values: ModeValues) -> Certificate:
    least, row, column = values.least()
    argument = values.argument(row, column)
    value = least_from(least, largest_denominator(problem))
    text = f"{_counts(problem, values, row, column)} {_argument(problem, values, argument, row, column)}"
    return Certificate(
        "unpaired passes",
        value,
        f"{text}{_others(problem, values, row, column)}",
        values.device,
        OnDevice(values.device),
    )


def _counts(problem: Problem, values: ModeValues, row: int, column: int) -> str:
    """Return a certificate's sentence on the numbers of passes by mode at an entry of the table, and on the work.

    `row` and `column` are the entry's indices: by forwards outside of blocks, and by split backwards.
    """
    counts = values.counts
    alone, split = int(counts.alone[row]), int(counts.split[column])
    clauses = []
    if len(counts.alone) > 1:
        clauses.append(f"runs {alone} of its {counted(counts.total, 'forward')} outside of overlapped blocks")
    if len(counts.split) > 1:
        clauses.append(f"splits {split} of its {counted(counts.total, 'backward')}")
    work = amount(problem, int(counts.work[row, column]))
    return f"If device {values.device} {' and '.join(clauses)}, it computes {work} in all."


def _argument(problem: Problem, values: ModeValues, argument: Argument, row: int, column: int) -> str:
    """Return the text of an argument for one entry of the table.

    It says when the work begins, how much may be left, and what follows. `row` and `column` are the entry's indices: by
    forwards outside of blocks, and by split backwards.
    """

    def say(ticks: int) -> str:
        return amount(problem, ticks)

    began = "" if argument.owner in (None, values.device) else f" after device {argument.owner} began"
    start, after = (_at(grid, row, column) for grid in (argument.start, argument.after))
    text = f"It cannot begin before {say(argument.head)}{began}, nor its first backward before "
    text += f"{say(argument.first_backward)}; forwards outside of blocks fill "
    filled = f"at most {say(argument.first_backward - start)} of that time" if start > argument.head else "that time"
    value = say(int(argument.values[row, column]))
    if argument.last is None and not after and not argument.tail:
        return f"{text}{filled}: {value}."
    instant = "last gradient" if argument.last is None else "last forward"
    return (
        f"{text}{filled}. When its {instant} ends at most {say(after)} of the work can be left, and from there at "
        f"least {say(argument.tail)} pass until that micro-batch is back: {value}."
    )


def _at(grid: Numbers, row: int, column: int) -> Ticks:
    """Return the ticks at a row and column of `grid`; one with a single row or column has the same entry for all."""
    rows, columns = grid.shape
    return int(grid[min(row, rows - 1), min(column, columns - 1)])


def _others(problem: Problem, values: ModeValues, row: int, column: int) -> str:
    """Return a certificate's sentence with the values at the neighbours of this row and column.

    Empty if there are none.
    """
    near = []
    for down, right, words in _NEIGHBOURS:
        r, c = row + down, column + right
        if 0 <= r < len(values.counts.alone) and 0 <= c < len(values.counts.split) and values.counts.possible[r, c]:
            near.append(f"{amount(problem, int(values.values[r, c]))} with {words}")
    return f" Other numbers give no less: {', '.join(near)}." if near else ""


BOUNDS.register(Bound("unpaired passes", unpaired_passes, rank=6, reads_memory=True))
