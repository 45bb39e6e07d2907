"""The objective iteration: the end of the last task, including work once an iteration for parameters."""

from pipesched.problem.objective import OBJECTIVES, Objective
from pipesched.problem.objectives.makespan import MAKESPAN

ITERATION = OBJECTIVES.register(Objective("iteration", place=3, passes=MAKESPAN))
