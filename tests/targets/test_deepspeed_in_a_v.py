"""`solve --for deepspeed` of stages in a V, for which DeepSpeed has an engine that runs any order."""

from pipesched.files.problem_file import problem_from
from pipesched.results.solution import Status
from runtime.exporters.restrictions import RESTRICTIONS
from solver.solve import solve
from targets.schedules import expressed, restricted
from tests.support.counted import counted


def test_forwards_of_the_last_stage_stay_where_the_best_order_has_them() -> None:
    times = {"forward": [4, 2, 1, 4], "backward": [5, 4, 2, 4]}
    problem = problem_from({"devices": 2, "microbatches": 4, "placement": "v-shape", "times": times})
    found = expressed(solve(restricted(problem, "deepspeed"), counted(20)), "deepspeed", problem)
    assert (found.value, found.status) == (68, Status.OPTIMAL)
    assert not any("cannot be expressed" in note or "last stage" in note for note in found.notes)
    linear = problem_from({"devices": 4, "microbatches": 4, "times": times})
    assert RESTRICTIONS["deepspeed"].words(linear) == ("on the last stage every backward directly follows its forward",)
