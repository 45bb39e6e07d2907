"""Search over the micro-batch sizes that a file lists, within one time limit; the best size is the answer."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from pipesched.errors import BadInput
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.results.batch_sizes import BatchSizes, SizeResult
from pipesched.results.solution import Status

_INTERRUPTED = "not searched: interrupted before"
Asked = TypeVar("Asked", Problem, PlanProblem)
Found = TypeVar("Found")


def refuse_for_several(args: Namespace, options: Mapping[str, str]) -> None:
    """Raise `BadInput` for given options that need a file with one micro-batch size.

    `options` has the names of such options, by the attribute of the arguments that each sets.
    """
    found = [
        option
        for name, option in options.items()
        if getattr(args, name) is not None and getattr(args, name) is not False
    ]
    if found:
        raise BadInput(*(f"{option}: found with a list of sizes in the file; allowed: one size" for option in found))


def best_of_sizes(
    sizes: Sequence[tuple[Asked, int | None]],
    args: Namespace,
    search: Callable[[Asked, Namespace], Found],
    result_of: Callable[[Asked, int | None, Found], SizeResult],
    interrupted: Callable[[Found], bool],
) -> tuple[Found, BatchSizes, bool]:
    """Search each micro-batch size of one batch within one time limit; return the best answer, all results, and a flag.

    `sizes` has each problem with the sequences of a micro-batch (None: not known). `search(problem, args)` gets
    arguments with that size's share of the time; `result_of(problem, sequences, answer)` makes the result of a size.
    The results are empty if there is one size. The flag is True if `interrupted(answer)` was True for a size, after
    which no further one is searched. Which answer is best is decided by `BatchSizes.best`; it is the first if no size
    has a schedule. `sizes` must not be empty.
    """
    found = list[Found]()
    for (problem, _), own in zip(sizes, _shares_of_time(args, len(sizes)), strict=True):
        found.append(search(problem, own))
        if interrupted(found[-1]):
            break
    if len(sizes) == 1:
        return found[0], BatchSizes(), interrupted(found[0])
    results = [result_of(*size, one) for size, one in zip(sizes, found, strict=False)]
    results += [
        SizeResult(problem.microbatches, sequences, Status.UNKNOWN, None, Fraction(0), _INTERRUPTED)
        for problem, sequences in sizes[len(found) :]
    ]
    all_sizes = BatchSizes(tuple(results))
    best = found[0 if all_sizes.best is None else results.index(all_sizes.best)]
    return best, all_sizes, interrupted(found[-1])


def _shares_of_time(args: Namespace, sizes: int) -> Iterator[Namespace]:
    """Yield the arguments for each size in turn, with an equal share of the time left as their time limit, in seconds.

    Their `began` is the time of the monotonic clock. With one size it is `args` itself.
    """
    if sizes == 1:
        yield args
        return
    end = time.monotonic() + args.time_limit
    for left in range(sizes, 0, -1):
        now = time.monotonic()
        yield Namespace(**vars(args) | {"time_limit": max(0.0, end - now) / left, "began": now})
