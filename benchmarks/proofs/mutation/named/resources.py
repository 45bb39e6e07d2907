"""Mutants of tasks that occupy several streams at once."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant

_CLAIMS = "tests/solver/bounds/test_every_bound.py::test_no_claim_is_above_the_optimum_and_each_is_confirmed"
_EVERY_ORDER = f"{_CLAIMS}[tasks of several streams at once]"
_SOLVES = "tests/solver/tasks/test_tasks_at_once.py::test_a_solve_proves_the_optimum_of_every_order"
_BLOCKING = "tests/solver/tasks/test_rendezvous.py"

_NORMS = "tests/solver/tasks/test_norms.py"
_CLAIMS_OF_NORMS = f"{_CLAIMS}[norms]"

RESOURCES = (
    NamedMutant(
        "norm: it occupies the device of its own stage alone", "pipesched/problem/gradient_norm.py",
        "TaskSpec(stream, ticks, also=also)", "TaskSpec(stream, ticks)",
        "the streams of all devices that train", (_NORMS,),
    ),
    NamedMutant(
        "norm: it waits for its own stage alone", "pipesched/problem/features/parameters.py",
        "in self.trained(stages) if own.of_all else (stage,):", "in (stage,):",
        "reductions of the other stages", (_NORMS,),
    ),
    NamedMutant(
        "norm: the bound counts all steps of all devices after it", "pipesched/problem/relaxed/parameter_times.py",
        "if problem.placement.stage_device[s] == device and ONCE", "if ONCE",
        "the time added back after the norm", (_CLAIMS_OF_NORMS,),
    ),
    NamedMutant(
        "load: a task counts on its further streams of any name", "solver/bounds/analytic/load.py",
        "or (device, stream) in further", "or device in [where.device for where in further]",
        "the load of a stream that only other streams of its device are occupied with", (_EVERY_ORDER, _BLOCKING),
    ),
    NamedMutant(
        "load: a send counts for its device", "solver/bounds/analytic/load.py",
        "network.tasks[of][: network.ends[of][-1] + 1]]", "network.tasks[of]]",
        "sends that may end after all passes", ("tests/solver/bounds/test_several_streams.py", _EVERY_ORDER),
    ),
    NamedMutant(
        "exact model: further streams are free", "formulations/variables/operations.py",
        "for where in self.resources(x):", "for where in self.resources(x)[:1]:",
        "no-overlap on the other device", (_SOLVES,),
    ),
    NamedMutant(
        "relaxation: further streams stay", "pipesched/problem/relaxed/further_resources.py",
        "tuple(task._replace(also=()) for", "tuple(task for",
        "bounds that take each task for one on a single stream",
        ("tests/pipesched/problem/test_relaxations.py", _EVERY_ORDER),
    ),
    NamedMutant(
        "dominance: a full backward with a further stream", "pipesched/problem/fused_dominance.py",
        "one_stream &= {*fused[0].also}.issuperset((*backward[0].also, *weight[0].also))", "one_stream &= True",
        "split backwards that occupy more streams than the full one",
        ("tests/pipesched/problem/test_fused_dominance.py::test_a_split_backward_that_occupies_more_streams",),
    ),
    NamedMutant(
        "parameters: a device that runs others' tasks begins with its gathering",
        "pipesched/problem/relaxed/parameter_times.py",
        "if here and device in visited:", "if False:",
        "the time added back for gathering where another device's task begins first", (_EVERY_ORDER,),
    ),
)  # fmt: skip
