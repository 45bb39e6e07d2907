"""Registry of constraints: each module of this package registers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.jobs.jobs import Jobs
from formulations.variables.model_variables import Model
from pipesched.registry import Registry
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class Constraint:
    """A rule for schedules, stated twice: `check` judges a timeline in plain Python, `post` adds it to a CP-SAT model.

    A test enumerates small timelines and compares the two. `of_problem`: True if every valid schedule satisfies the
    rule, so that the validator demands it too; False for symmetry breaking. `posted_if` returns True for jobs of which
    the rule says something, such as jobs with gathered parameters; None: it is posted on all.
    """

    name: str
    check: Callable[[Timeline], bool]
    post: Callable[[Model], None]
    of_problem: bool = True
    posted_if: Callable[[Jobs], bool] | None = None


CONSTRAINTS: Registry[Constraint] = Registry("formulations.constraints", "constraint")
