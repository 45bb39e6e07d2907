"""Report of `solve`: verdict, table of schedules, argument of the bound, and results of further questions."""

from __future__ import annotations

from dataclasses import dataclass, field

from commands.reports import schedule_table
from commands.reports.solved import min_memory, robustness, sensitivity
from commands.reports.solved.recommendation import Recommendation
from commands.shared.output import WHY_IDLE, complain, idle_lines, idle_sentence, memory_line, percent
from commands.shared.output import time as time_text
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.analysis.explanation import Explanation
from pipesched.results.analysis.least_memory import LeastMemory
from pipesched.results.analysis.robustness import Robustness
from pipesched.results.batch_sizes import BatchSizes
from pipesched.results.comparison import with_solution
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import Metrics
from pipesched.simulation.idle_causes import IdleCause


@dataclass(frozen=True)
class SolveResults:
    """All results of one run of `solve`: the solution, and the answers to further questions.

    `memory` is the least memory for a value, `explanation` the bottleneck with the effects of changes; both are None if
    not asked for, without a schedule, or after Ctrl-C. `noise` is how the schedule fares under random durations, None
    where that was not sampled. `robust` is True if the schedule was chosen for its mean under noise, `recommended` is
    the schedule to use, found or published; None without one, and where less memory or a runtime was asked for. `idle`
    are the shares of idle time by cause, None if there was no time or no schedule. `sizes` are the results of all
    micro-batch sizes, empty where the file has one; the solution is the best of them.
    """

    solution: Solution
    memory: LeastMemory | None = None
    explanation: Explanation | None = None
    noise: Robustness | None = None
    robust: bool = False
    recommended: Recommendation | None = None
    idle: dict[IdleCause, float] | None = None
    sizes: BatchSizes = field(default_factory=BatchSizes)


def verdict(found: SolveResults, metrics: Metrics) -> str:
    """Return the value found and the bound proved as a sentence.

    If free memory is maximised first, a sentence on that precedes it.
    """
    free = found.solution.free
    first = "" if free is None else free.sentence(found.solution.problem.memory_unit, "schedule") + "\n"
    return first + _verdict(found, metrics)


def _verdict(found: SolveResults, metrics: Metrics) -> str:
    solution = found.solution
    problem, objective = solution.problem, solution.problem.objective
    value = f"{objective.name} {time_text(problem, solution.value_ticks)}"
    scope = "" if solution.free is None else " that leaves as much memory free"
    bound = time_text(problem, solution.lower_bound_ticks)
    idle = idle_sentence(problem, metrics)
    if solution.status is Status.OPTIMAL:
        return f"optimal: {value}; no schedule{scope} is better; {idle}"
    if found.robust:
        return f"chosen for its mean under noise: {value} without noise; none is below {bound}; {idle}"
    if found.memory and in_ticks_of(problem, found.memory.best, found.memory.scale.problem) != solution.value_ticks:
        best = time_text(found.memory.scale.problem, found.memory.best)
        known = f"the optimum is {best}" if best == bound else f"the best found is {best}, none is below {bound}"
        return f"chosen for low memory: {value} ({known}); {idle}"
    return f"best found: {value}; none{scope} is below {bound}: a gap of {percent(solution.gap or 0)}; {idle}"


def show(found: SolveResults, why_not: bool) -> None:
    """Print the verdict, the table of schedules, and sentences on memory, idle time, the bound and further results.

    `why_not` adds the reasons why schedules do not apply. An infeasible problem has its reason alone, on stderr;
    without a schedule there is only the table, and a message.
    """
    solution = found.solution
    problem = solution.problem
    if solution.status is Status.INFEASIBLE:
        complain(f"infeasible: {solution.reason}")
        return
    if solution.metrics is not None:
        print(verdict(found, solution.metrics))
        if found.recommended:
            print(found.recommended)
        print(*found.sizes.sentences(), sep="\n", end="\n" if found.sizes.results else "")
    schedule_table.show(problem, with_solution(solution), solution.lower_bound_ticks, why_not=why_not)
    if solution.metrics is None:
        complain("no schedule found in the time given")
        return
    print(memory_line(problem, solution.metrics))
    for line in _idle_lines(solution, found.idle):
        print(line)
    if solution.certificate:
        print(f"why none is below the bound ({solution.certificate.name}): {solution.certificate.text}")
    if found.noise:
        print("\n".join(robustness.sentences(problem, found.noise, solution.value)))
    for text in solution.notes:
        if text not in problem.notes:  # those were said as the file was read
            print(f"note: {text}")
    if found.memory:
        print("\n".join(min_memory.sentences(found.memory)))
    if found.explanation:
        sensitivity.show(solution, found.explanation)
    if solution.interrupted:
        print("interrupted: this is the best schedule found until then")


def _idle_lines(solution: Solution, shares: dict[IdleCause, float] | None) -> list[str]:
    """Return a heading and a line for each cause of idle time, in the causes' order: its share and its meaning.

    Empty without a schedule, or if no device idles. `shares` is None if there was no time to find the causes; one
    line then says so.
    """
    if solution.timeline is None:
        return []
    if shares is None:
        return ["why devices idle: no time to say of so many passes; a longer --time-limit has it, and so has simulate"]
    return [f"{WHY_IDLE}:", *(f"  {line}" for line in idle_lines(shares))] if shares else []
