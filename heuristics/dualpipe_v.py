"""DualPipeV: DualPipe cut in half; both directions share one V of stages, so every layer is stored once."""

from __future__ import annotations

from heuristics.building.requirements import split_backward, v_of_stages
from heuristics.building.task_interleaving import interleaved
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.dualpipe import Direction, eight_steps, eight_steps_form
from pipesched.errors import DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def dualpipe_v(problem: Problem) -> Schedule:
    """Return DualPipe's order on the first p of 2p devices, each of which also has the stage of its mirror image.

    Passes of the other half run on the V's second leg instead. Raises `DoesNotApply` unless backwards split, device d
    has stages d and 2p-1-d, and there are 2p micro-batches or more.
    """
    split_backward(problem)
    p, microbatches_of = _microbatch_a_stage(problem), problem.microbatches_of
    orders = (
        tuple(eight_steps(Direction(down, microbatches_of[down]), Direction(up, microbatches_of[up]), d, p))
        for d, (down, up) in enumerate(problem.placement.stages_of)
    )
    return interleaved(problem, Schedule(tuple(orders), "dualpipe-v"))


def _microbatch_a_stage(problem: Problem) -> int:
    """Return the number of devices; raises `DoesNotApply` unless placement and micro-batches are those of DualPipeV."""
    p, m = v_of_stages(problem), problem.microbatches
    if m < 2 * p:
        raise DoesNotApply(f"needs at least {2 * p} micro-batches (one a stage); found {m}")
    return p


def _closed_form(problem: Problem) -> ClosedForm | None:
    return eight_steps_form(problem, _microbatch_a_stage(problem))


HEURISTICS.register(
    Heuristic(
        name="dualpipe-v",
        reference="deepseek-ai/DualPipe, DualPipeV; Sea AI Lab, Cut-in-half",
        needs="v-shape placement, at least as many micro-batches as stages; a backward that splits",
        bubble="(p-1)(F&B + BW-3W) of one chunk on the last device, if F = B >= W, BW = B+W and F&B >= BW; "
        "(p-1)(F+B-W) without F&B",
        peak="2p+1 chunk activations on every device",
        order=dualpipe_v,
        same_for_all_costs=True,
        closed_form=_closed_form,
    )
)
