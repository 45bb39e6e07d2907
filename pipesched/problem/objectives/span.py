"""The objective span: the longest time from a device's first task to its last."""

from pipesched.problem.objective import OBJECTIVES, Objective

SPAN = OBJECTIVES.register(Objective("span", place=1, by_device=True))
