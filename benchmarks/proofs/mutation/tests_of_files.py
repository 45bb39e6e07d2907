"""Which tests are meant for which file: those that should notice a mistake in it."""

from __future__ import annotations

_VALUES = "tests/solver/bounds/test_certificate_values.py"
_BOUNDS = (
    _VALUES,
    "tests/solver/bounds/test_memory_energy.py",
    "tests/benchmarks/test_bound_attack.py",
    "tests/solver/bounds/test_analytic_bounds.py",
)
_ATTACK = "tests/benchmarks/test_bound_attack.py"
_MODES = (_VALUES, "tests/solver/bounds/test_mode_bounds.py", _ATTACK)
_DIAGRAMS = "tests/solver/diagram/test_diagrams.py"
_RULES = "tests/pipesched/validation/test_task_rules.py"
_OPTIONS = "tests/pipesched/validation/test_memory_saving_rules.py"
_UNEQUAL = "tests/pipesched/test_microbatch_scale.py"
_VALIDATOR = ("tests/pipesched/validation/test_validator.py", _RULES, _OPTIONS, _UNEQUAL)
_CHECK = ("tests/pipesched/checking/test_coverage.py", "tests/pipesched/checking/test_proved_values.py")
# Each file, and the tests meant for it, the quick ones first.
TESTS: dict[str, tuple[str, ...]] = {
    "solver/bounds/analytic/idle_time/memory_energy.py": _BOUNDS[:2],
    "solver/bounds/analytic/idle_time/busy_interval.py": _BOUNDS,
    "solver/bounds/analytic/critical_paths.py": ("tests/solver/bounds/test_critical_paths.py", *_BOUNDS),
    "solver/bounds/analytic/load.py": ("tests/solver/bounds/test_several_streams.py", *_BOUNDS),
    "solver/bounds/analytic/catalogue.py": ("tests/solver/bounds/test_several_streams.py",),
    "solver/bounds/analytic/idle_time/idle_gaps.py": _BOUNDS,
    "solver/bounds/analytic/idle_time/knapsack.py": _BOUNDS,
    "solver/bounds/analytic/round_trip.py": _BOUNDS,
    "solver/bounds/analytic/head_and_tail.py": _BOUNDS,
    "solver/bounds/analytic/head_and_tail_in_order.py": ("tests/solver/bounds/test_head_and_tail_in_order.py", _VALUES),
    "solver/bounds/analytic/cool_down.py": ("tests/solver/bounds/test_cool_down.py", _VALUES),
    "solver/bounds/analytic/integral_warmup.py": _BOUNDS,
    "solver/bounds/analytic/in_flight.py": _BOUNDS[:2],
    "solver/bounds/analytic/heads_and_tails.py": _BOUNDS[:2],
    **{
        f"solver/bounds/analytic/{name}.py": ("tests/solver/bounds/test_several_streams.py",)
        for name in ("stream_head_and_tail", "stream_heads_and_tails", "stream_chains", "stream_memory")
    },
    **{
        f"{name}.py": ("tests/solver/bounds/test_waiting_weights.py", "tests/solver/bounds/test_saving_bounds.py")
        for name in ("solver/bounds/analytic/stream_weights", "pipesched/checking/streams/weights")
    },
    **{
        f"solver/bounds/saving/{name}.py": ("tests/solver/bounds/test_saving_bounds.py",)
        for name in ("certificates", "memory_and_copies", "rows_of_device")
    },
    **{
        f"solver/bounds/analytic/{name}.py": _MODES
        for name in (
            "modes/counts",
            "modes/values",
            "modes/delays",
            "modes/memory",
            "unpaired_passes",
            "memory_and_modes",
        )
    },
    "solver/cyclic/period_bounds.py": _BOUNDS[:2],
    **{
        f"solver/bounds/crossing/{name}.py": (
            "tests/solver/bounds/crossings/test_crossings.py",
            "tests/benchmarks/test_bound_attack.py",
        )
        for name in ("bound", "line", "states", "rounds")
    },
    **{
        f"solver/diagram/{name}.py": (_DIAGRAMS, "tests/solver/diagram/test_reduction.py", _ATTACK)
        for name in (
            *("all_orders", "below", "certificate", "completion", "device_sets", "expansion", "follow", "guide"),
            *("layers", "moves", "reduction", "repetition", "steps", "transitions", "values"),
        )
    },
    **{
        f"{name}.py": (_DIAGRAMS,)
        for name in (
            *(f"solver/diagram/all_chains/{one}" for one in ("bound", "follow", "guide", "layers", "steps")),
            *(f"pipesched/checking/crossing_chains/{one}" for one in ("alone", "argument", "fewer", "orders")),
        )
    },
    **{
        f"pipesched/checking/diagram/{name}.py": ("tests/pipesched/checking/test_diagram.py",)
        for name in (
            *("argument", "completion", "guide", "labels", "moves", "repetition", "replay", "walk", "weights"),
        )
    },
    **{
        f"pipesched/validation/{name}.py": _VALIDATOR
        for name in ("validator", "order_rules", "time_rules", "memory_rule", "pass_rules", "cycle_rule")
    },
    "pipesched/validation/task_order_rules.py": (_RULES,),
    **{
        f"pipesched/validation/{name}.py": (
            _RULES,
            _OPTIONS,
            "tests/pipesched/validation/test_memory_on_any_timing.py",
        )
        for name in ("memory_order_rule", "units_of_memory", "vector_clocks")
    },
    **{
        f"pipesched/checking/{name}.py": _CHECK
        for name in (
            "attainable",
            "coverage",
            "device_arguments",
            "head_and_tail",
            "least_times",
            "memory_and_modes",
            "memory_over_time",
            "more_memory",
            "one_device",
            "period",
            "streams/head_and_tail",
            "streams/load",
            "streams/tasks",
            "streams/task_paths",
            "unpaired",
            "warm_up",
        )
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_crossings.py",)
        for name in (
            "solver/bounds/crossing/bound",
            "solver/bounds/crossing/line",
            "solver/bounds/crossing/rounds",
            "solver/bounds/crossing/states",
            "pipesched/checking/crossings/argument",
            "pipesched/checking/crossings/rounds",
        )
    },
    **{
        f"pipesched/checking/{name}.py": ("tests/solver/bounds/test_saving_bounds.py",)
        for name in ("least_held", "memory_and_copies")
    },
    "pipesched/checking/streams/memory.py": ("tests/solver/bounds/test_several_streams.py",),
    "pipesched/checking/check.py": (*_CHECK, "tests/solver/bounds/test_saving_bounds.py"),
    "pipesched/checking/cool_down.py": ("tests/solver/bounds/test_cool_down.py", *_CHECK),
    "pipesched/checking/plan_check.py": ("tests/pipesched/checking/test_plan_findings.py",),
    "solver/cyclic/replication.py": ("tests/solver/cyclic/test_replication.py",),
    "runtime/lowering/deadlock.py": (
        "tests/runtime/lowering/test_deadlock.py",
        "tests/runtime/lowering/test_programs.py",
    ),
}
