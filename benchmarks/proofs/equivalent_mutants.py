"""Mutants that change nothing, each with the reason; benchmarks/proofs/mutants.py does not run them."""

from __future__ import annotations

from collections.abc import Mapping

_ANY_MICRO_BATCH = "The number of a micro-batch in a pass whose duration is asked for: all of a stage are alike."
_EQUAL = "Where the two are equal every unit counts alike."
_AS_LONG = "The columns zipped are of one table and so equally long."
_NO_SUCH_TASK = "The tasks of a pass that are gone through at least: where no pass has so many, nothing is added."

# By file and by the mutant's name.
EQUIVALENT: Mapping[str, Mapping[str, str]] = {
    "solver/bounds/analytic/memory_energy.py": {
        "held_at_last_forward: longest > waiting -> longest >= waiting": _EQUAL,
        "area: 0 -> 1": _ANY_MICRO_BATCH,
        "_left_for_weight: 0 -> 1 #3": _ANY_MICRO_BATCH,
    },
    "pipesched/validation/time_rules.py": {
        "streams: 1 -> 2 #3": _NO_SUCH_TASK,
        "streams: True -> False": _AS_LONG,
        "times: True -> False": _AS_LONG,
        "times: True -> False #2": _AS_LONG,
    },
}
