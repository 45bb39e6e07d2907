"""Report of `solve` on a schedule under random durations, and `--robust`, which minimizes its mean under them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from math import ceil, log10

from commands.options.search import interrupt_sets, limits_of, progress_line
from commands.options.values import share
from commands.shared.watch import stop_event
from pipesched.problem.formatting import counted, plain, with_unit
from pipesched.problem.problem import Problem
from pipesched.results.analysis.robustness import Robustness
from pipesched.results.solution import Solution
from pipesched.simulation.noise import Noise
from solver.analysis.robustness import USUAL, most_robust, robustness

# Means are shown to so small a share of themselves: changes are shown in per cents with two decimals.
_LEAST_CHANGE = 1e-4
# Seconds that sampling may take after the search: this share of the time limit, or so many.
_SHARE, _LEAST_SECONDS = 0.05, 1.0


def add_robust(parser: ArgumentParser) -> None:
    """Add the option `--robust`: the relative standard deviation of durations, a `Fraction` from 0 to 1, else None."""
    parser.add_argument(
        "--robust",
        type=share,
        metavar="SHARE",
        help="the least mean found under random durations of this relative standard deviation, as 5%% or 0.05 (up to "
        "the time limit again)",
    )


def of(solution: Solution, args: Namespace) -> Robustness | None:
    """Return the mean value under noise of a solution's schedule, and of the best published one.

    None without a schedule, for a period, and where sampling would take more than a second and 5 % of the time limit.
    The noise is that of `--robust`, or else the default.
    """
    return robustness(solution, _noise(args), max(_LEAST_SECONDS, _SHARE * args.time_limit))


def searched(solution: Solution, args: Namespace) -> Solution:
    """Search for the schedule of least mean under noise, show progress, and return the solution with it.

    Ctrl-C keeps the best found so far.
    """
    stop = stop_event(args)
    noise = _noise(args)
    with interrupt_sets(stop), progress_line() as say:

        def on_progress(mean: float) -> None:
            say(f"least mean under {noise_text(noise)} noise so far: {mean_text(solution.problem, mean)}")

        return most_robust(solution, noise, limits_of(args), on_progress, stop)


def _noise(args: Namespace) -> Noise:
    deviation = USUAL.deviation if args.robust is None else float(args.robust)
    return USUAL._replace(deviation=deviation, seed=args.seed)


def sentences(problem: Problem, found: Robustness, value: float | None) -> list[str]:
    """Return a sentence with the mean under noise, and that of the best published schedule if there is one.

    `value` is that without noise, in the file's unit (None: not compared).
    """
    best, noise = found.best_published, found.noise
    samples = f"{counted(noise.samples, 'sample')}, seed {noise.seed}"
    sentence = f"under {noise_text(noise)} noise ({samples}): mean {problem.objective} {mean_text(problem, found.mean)}"
    if value:
        sentence += (
            f" ({100 * (found.mean / value - 1):+.2f} % from {with_unit(value, problem.time_unit)} without noise)"
        )
    if best is None:
        return [sentence]
    return [f"{sentence}; the best published one, {best.name}: {mean_text(problem, best.mean)}"]


def noise_text(noise: Noise) -> str:
    """Return the standard deviation of the noise, in per cent of each duration."""
    return f"{plain(100 * noise.deviation)} %"


def mean_text(problem: Problem, number: float) -> str:
    """Return a mean in the file's unit, with enough digits to show a change of 0.01 %."""
    digits = ceil(-log10(_LEAST_CHANGE * number)) if number > 0 else 0
    return f"{number:.{max(0, digits)}f} {problem.time_unit}".rstrip()
