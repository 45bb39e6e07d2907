"""Mutants of the search for plans."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant

_FIRST, _TESTS = "solver/planning/search/first_plans.py", "tests/solver/planning/test_first_plans.py"
_EVEN = (f"{_TESTS}::test_no_first_plan_takes_longer_than_the_cut_that_runtimes_take",)
_AT_ONCE = (f"{_TESTS}::test_without_any_time_there_is_the_plan_that_needs_least_memory",)
_LEAST = (f"{_TESTS}::test_the_best_first_plan_is_the_least_over_all_partitions",)
_ROOM = (f"{_TESTS}::test_the_room_that_a_partition_lacked_is_left_to_the_device_on_the_next_one",)
_FREE = (f"{_TESTS}::test_free_recomputation_makes_room_without_recomputing_too",)

PLANS = (
    NamedMutant(
        "first plans: no even cut", _FIRST,
        "if even != first and self._may_be_better", "if False and self._may_be_better",
        "the partition that runtimes take is not tried", _EVEN,
    ),
    NamedMutant(
        "first plans: no plan that needs least memory", _FIRST,
        "if self.best is None and known is not None and fit is not None:", "if False:",
        "without time there is no plan where memory is short", _AT_ONCE,
    ),
    NamedMutant(
        "first plans: one restriction of recomputation", _FIRST,
        "for decide in Decide if plan.recompute is Decide.FREE else (plan.recompute,):",
        "for decide in (plan.recompute,):",
        "a plan of a narrower restriction may be better", _FREE,
    ),
    NamedMutant(
        "stage costs: known without their recomputation", "pipesched/layers/stage_costs.py",
        "key = layers.start, layers.stop, recomputed", "key = layers.start, layers.stop, None",
        "a stage that recomputes its layers costs what it does without", _FREE,
    ),
    NamedMutant(
        "first plans: no room is reserved", _FIRST, "fit.reserve(excess)", "fit.reserve([0 for _ in excess])",
        "the same partition is tried again where a device lacks memory", _ROOM,
    ),
    NamedMutant(
        "first plans: only what is worse is tried", _FIRST,
        "_load(problem) * problem.tick < self.best.value", "_load(problem) * problem.tick > self.best.value",
        "a partition of less load is left out", _LEAST,
    ),
    NamedMutant(
        "first plans: the last one is the best", _FIRST,
        "found if self.best is None or found.value < self.best.value else self.best", "found",
        "a later first plan replaces a better one", _LEAST,
    ),
    NamedMutant(
        "first plans: every restriction counts as tried", _FIRST,
        "return any(recut(restricted, one.counts, one) == one for one in self._fitting)", "return True",
        "plans of a narrower restriction are not tried", _FREE,
    ),
    NamedMutant(
        "blocks: savings of the stage that saves more", "pipesched/problem/stage.py",
        "min(saves, other)", "max(saves, other)",
        "a block is shorter than what one of its stages can hide", ("tests/pipesched/files/test_saves_of_blocks.py",),
    ),
    NamedMutant(
        "bounds over partitions: blocks save no load", "pipesched/layers/layer.py",
        "min(self.full_backward - self.saved_in_block, self.backward + ", "min(self.full_backward, self.backward + ",
        "a device is claimed to work longer than in blocks", ("tests/solver/planning/test_overlapped_layers.py",),
    ),
)  # fmt: skip
