"""The norm of all gradients in a plan: one task of all devices that train, before every optimizer step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.addition import Addition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.gradient_norm import with_norm
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks


@dataclass(frozen=True)
class GradientNorm(Addition):
    """A norm that takes `time`, in the file's unit, on a stream of every device that trains."""

    stream: str
    time: Fraction

    def added(self, problem: Problem, plan: PlanProblem, /) -> Problem:
        """Return the problem in which every step waits for the norm of the gradients of all stages."""
        return with_norm(problem, self.stream, plan.ticks(self.time))

    def before_steps(self, plan: PlanProblem, /) -> Ticks:
        """Return the ticks of the norm."""
        return plan.ticks(self.time)
