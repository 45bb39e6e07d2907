"""The schedule that `solve` recommends, with the reason: its own, or a published one that suffers less from noise."""

from __future__ import annotations

from typing import NamedTuple

from commands.reports.solved.atlas import nearest_cell
from commands.reports.solved.robustness import mean_text, noise_text
from commands.shared.output import percent
from commands.shared.output import time as time_text
from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.results.analysis.robustness import Robustness
from pipesched.results.comparison import OURS
from pipesched.results.solution import Solution


class Recommendation(NamedTuple):
    """The recommended schedule's name, the reason, and a sentence on the nearest cell of the atlas.

    The reason continues a sentence that begins with the name. `atlas` is None where no cell resembles the problem.
    """

    name: str
    reason: str
    atlas: str | None = None

    def __str__(self) -> str:
        own = " (the schedule found)" if self.name == OURS else ""
        return f"recommended: {self.name}{own}, {self.reason}" + (f"; {self.atlas}" if self.atlas else "")


def recommendation(solution: Solution, found: Robustness | None, robust: bool = False) -> Recommendation | None:
    """Return the recommendation, with the atlas's nearest cell if there is one; None without a schedule.

    `found` is the schedule's value under noise, None if not measured; `robust` says that it minimizes the mean under
    noise.
    """
    chosen = _recommendation(solution, found, robust)
    if chosen is None or (cell := nearest_cell(solution.problem)) is None:
        return chosen
    return chosen._replace(atlas=str(cell))


def _recommendation(solution: Solution, found: Robustness | None, robust: bool) -> Recommendation | None:
    """Return the recommendation without a cell of the atlas; None without a schedule.

    It is a published schedule only if that is as good as the one found and better under noise.
    """
    problem, value, best = solution.problem, solution.value_ticks, solution.best_candidate
    if value is None:
        return None
    if best is None or best.metrics is None:
        return Recommendation(OURS, "since none of the published schedules tried applies and fits")
    theirs_best = best.metrics.value_ticks(problem.objective)
    ahead = theirs_best - value
    equal = f"which takes {time_text(problem, value)} as {best.name} does"
    shorter = f"since {best.name}, the best published one that fits, takes {_longer(problem, theirs_best, value)}"
    if found is None or found.best_published is None:
        return Recommendation(OURS, shorter if ahead > 0 else equal)
    rival, under = found.best_published, f"under {noise_text(found.noise)} noise"
    means = f"{mean_text(problem, rival.mean)} against {mean_text(problem, found.mean)} on average"
    theirs = next(one for one in solution.candidates if one.name == rival.name)
    assert theirs.metrics is not None
    value_of_rival = theirs.metrics.value_ticks(problem.objective)
    if found.reverses and value_of_rival == value:
        return Recommendation(rival.name, f"which takes as long as the order found and less {under}: {means}")
    if found.reverses:
        longer = _longer(problem, value_of_rival, value)
        reason = f"for times as the file says; {rival.name}, {longer} without noise, takes less {under}: {means}"
        return Recommendation(OURS, reason if robust else f"{reason} (--robust searches for the least mean)")
    if robust:
        reason = f"since no published schedule that fits takes less {under}"
    else:
        reason = shorter if ahead > 0 else f"{equal}, and {under} no longer than any published one"
    return Recommendation(OURS, reason)


def _longer(problem: Problem, theirs: Value, value: Value) -> str:
    """Return how much longer another schedule takes, as a share, or as a time where the value is 0."""
    return f"{percent(float(theirs / value - 1)) if value else time_text(problem, theirs)} longer"
