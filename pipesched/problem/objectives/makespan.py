"""The objective makespan: the end of the last task."""

from pipesched.problem.objective import OBJECTIVES, Objective

MAKESPAN = OBJECTIVES.register(Objective("makespan", place=0))
