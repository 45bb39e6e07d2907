"""The objective period: the time after which a schedule of very many micro-batches repeats, for each micro-batch."""

from pipesched.problem.objective import OBJECTIVES, Objective

PERIOD = OBJECTIVES.register(Objective("period", place=2, repeats=True))
