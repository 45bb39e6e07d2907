"""Mutants of the search for plans."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant

_TESTS = ("tests/solver/planning/test_restrictions.py", "tests/solver/planning/test_first_plans.py")
_FIRST = "solver/planning/search/first_plans.py"

PLANS = (
    NamedMutant(
        "first plans: no even cut", _FIRST,
        "if even != first and self._may_be_better", "if False and self._may_be_better",
        "the partition that runtimes take is not tried", _TESTS,
    ),
    NamedMutant(
        "first plans: no plan that needs least memory", _FIRST,
        "if self.best is None and known is not None and fit is not None:", "if False:",
        "without time there is no plan where memory is short", _TESTS[1:],
    ),
    NamedMutant(
        "first plans: one restriction of recomputation", _FIRST,
        "for decide in Decide if plan.recompute is Decide.FREE else (plan.recompute,):",
        "for decide in (plan.recompute,):",
        "a plan of a narrower restriction may be better", _TESTS,
    ),
    NamedMutant(
        "first plans: no room is reserved", _FIRST, "fit.reserve(excess)", "fit.reserve([0 for _ in excess])",
        "the same partition is tried again where a device lacks memory", _TESTS,
    ),
    NamedMutant(
        "first plans: only what is worse is tried", _FIRST,
        "_load(problem) * problem.tick < self.best.value", "_load(problem) * problem.tick > self.best.value",
        "a partition of less load is left out", _TESTS,
    ),
    NamedMutant(
        "first plans: the last one is the best", _FIRST,
        "found if self.best is None or found.value < self.best.value else self.best", "found",
        "a later first plan replaces a better one", _TESTS,
    ),
    NamedMutant(
        "first plans: every restriction counts as tried", _FIRST,
        "return any(recut(restricted, one.counts, one) == one for one in self._fitting)", "return True",
        "plans of a narrower restriction are not tried", _TESTS,
    ),
)  # fmt: skip
