"""1F1B, plain and interleaved, in which unequal micro-batches enter with small ones first and last: verl's rule.

Warm-up and cool-down are as long as the micro-batches that run in them.
"""

from __future__ import annotations

from collections.abc import Callable

from heuristics.building.microbatch_orders import any_order, renumbered, small_at_both_ends
from heuristics.building.requirements import one_stage_a_device, round_robin
from heuristics.catalogue import HEURISTICS, Heuristic
from heuristics.interleaved_1f1b import interleaved_1f1b
from heuristics.one_f_one_b import one_f_one_b
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def _with_small_ends(problem: Problem, base: Callable[[Problem], Schedule], name: str) -> Schedule:
    any_order(problem)
    return renumbered(base(problem), small_at_both_ends(problem), name)


def one_f_one_b_small_ends(problem: Problem) -> Schedule:
    """Return 1F1B with the smallest micro-batches first and last.

    Raises `DoesNotApply` unless they are unequal and in any order, and there is one stage per device.
    """
    one_stage_a_device(problem)
    return _with_small_ends(problem, one_f_one_b, "1f1b-small-ends")


def interleaved_1f1b_small_ends(problem: Problem) -> Schedule:
    """Return interleaved 1F1B with the smallest micro-batches first and last.

    Raises `DoesNotApply` unless they are unequal and in any order, and stage s is on device s mod p.
    """
    round_robin(problem)
    return _with_small_ends(problem, interleaved_1f1b, "interleaved-small-ends")


for _order, _name, _where in (
    (one_f_one_b_small_ends, "1f1b-small-ends", "one stage a device"),
    (interleaved_1f1b_small_ends, "interleaved-small-ends", "interleaved placement"),
):
    HEURISTICS.register(
        Heuristic(
            name=_name,
            reference="verl, utils/seqlen_balancing.py, rearrange_micro_batches",
            needs=f"{_where}; unequal micro-batches in any order (microbatch_order: free)",
            bubble="no closed form",
            peak="no closed form",
            order=_order,
        )
    )
