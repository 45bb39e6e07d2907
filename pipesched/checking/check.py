"""The check of a lower bound, from the problem and the evidence in the bound's certificate alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pipesched.checking.attainable import least_attainable
from pipesched.checking.coverage import require_covered
from pipesched.checking.devices.cool_down import cool_down
from pipesched.checking.devices.device_arguments import in_flight_limit, load, round_trip
from pipesched.checking.devices.head_and_tail import head_and_tail
from pipesched.checking.devices.unpaired import unpaired_passes
from pipesched.checking.devices.warm_up import integral_warm_up
from pipesched.checking.diagram.activation_modes import activation_mode_diagram
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.finding import Finding, NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.checking.memory.memory_and_copies import memory_and_copies
from pipesched.checking.memory.memory_and_modes import memory_and_modes
from pipesched.checking.own_ticks import in_own_ticks
from pipesched.checking.period import (
    period_in_flight,
    period_load,
    period_memory,
    period_modes,
    period_stream_load,
)
from pipesched.checking.refutation import require_search
from pipesched.checking.relaxed.posed import posed
from pipesched.checking.streams.load import HARMLESS, stream_load
from pipesched.checking.streams.memory import stream_memory
from pipesched.checking.streams.memory_over_time import memory_of_tasks
from pipesched.checking.streams.tasks import KNOWN, stream_tasks
from pipesched.checking.streams.weights import stream_weights
from pipesched.errors import OutOfRange
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import (
    AroundDevice,
    MemoryOfDevice,
    ModeMultipliers,
    OnDevice,
    OnStage,
    OnStream,
    Refutation,
    ResourceWeights,
    ReturnTo,
    StreamMemory,
    StreamTasks,
    StreamWeights,
    UnknownForm,
)

# A lower bound in ticks.
Value = Fraction | Ticks
Argument = Callable[[Problem, Any, Value], Value]


def _plain(argument: Callable[[Problem, Any], Value]) -> Argument:
    """Return an `Argument` that ignores the stated value, from a function of the problem and the evidence alone."""
    return lambda problem, evidence, _: argument(problem, evidence)


# What each argument proves, by the name of its certificates and by its evidence: in ticks, before it is rounded up to
# a value that a schedule can have.
ARGUMENTS: dict[str, dict[type, Argument]] = {
    "load": {OnDevice: _plain(load), OnStream: _plain(stream_load)},
    "head and tail": {AroundDevice: _plain(head_and_tail)},
    "head and tail in order": {AroundDevice: _plain(head_and_tail)},
    "cool-down": {ReturnTo: _plain(cool_down)},
    "round trip": {OnDevice: _plain(round_trip)},
    "in-flight limit": {OnStage: _plain(in_flight_limit)},
    "integral warm-up": {OnDevice: integral_warm_up},
    "unpaired passes": {OnDevice: _plain(unpaired_passes)},
    "memory and modes": {OnDevice: memory_and_modes},
    "stream heads and tails": {StreamTasks: _plain(stream_tasks)},
    "stream memory": {StreamMemory: _plain(stream_memory)},
    "memory over time of tasks": {MemoryOfDevice: _plain(memory_of_tasks)},
    "decision diagram": {Diagram: _plain(decision_diagram)},
}

# The same of periods, which may be any fraction.
OF_PERIODS: dict[str, dict[type, Argument]] = {
    "load": {OnDevice: _plain(period_load), OnStream: _plain(period_stream_load)},
    "in-flight limit": {OnStage: _plain(period_in_flight)},
    "memory over time": {OnDevice: _plain(period_memory)},
    "load and memory over modes": {ModeMultipliers: _plain(period_modes)},
}

# Quantities that only these arguments know of.
_ALSO_KNOWN: dict[type, frozenset[str]] = {
    OnStream: HARMLESS,
    StreamTasks: KNOWN | {"arcs", "modules", "pieces", "kv_cache"},
    StreamMemory: KNOWN,
    MemoryOfDevice: KNOWN,
}


def check_bound(problem: Problem, certificate: Certificate) -> Finding:
    """Check that no schedule of the problem has an objective value less than the value of a certificate.

    The finding is VERIFIED if the evidence proves the value, REFUSED if it proves less or contradicts the problem,
    TRUSTED for an exhaustive search, which is not repeated, and NOT_VERIFIED where the check does not cover the problem
    or the certificate has no evidence that it knows.
    """
    stated = amount(problem, certificate.value_ticks)
    try:
        spoken_of, claim, valued, added_back, stage_of = posed(problem, certificate)
        if isinstance(claim.evidence, Refutation):
            require_search(spoken_of, claim.evidence)
            text = f"{stated} rests on an exhaustive search by CP-SAT, which is not repeated here"
            return Finding(Verdict.TRUSTED, text)
        proved = _proved(spoken_of, claim, stage_of)
        if not valued.objective.repeats:
            proved = least_attainable(valued, proved)
    except (NotCoveredError, OutOfRange) as why:
        return Finding(Verdict.NOT_VERIFIED, str(why))
    except RefusedEvidenceError as why:
        return Finding(Verdict.REFUSED, f"{certificate.name}: {why}")
    if proved < claim.value_ticks:
        found = amount(problem, proved + added_back)
        return Finding(Verdict.REFUSED, f"{certificate.name}: the evidence proves {found}, and {stated} is stated")
    return Finding(Verdict.VERIFIED, f"no schedule is below {stated} ({certificate.name}, checked from its evidence)")


def _proved(problem: Problem, certificate: Certificate, stage_of: tuple[StageId, ...] | None) -> Value:
    """Return the lower bound that the evidence proves, in ticks.

    Not yet rounded up to a value that a schedule can have. `NotCoveredError` if the check does not know the evidence or
    the problem, `RefusedEvidenceError` if the evidence does not fit the problem. If stages are tasks of passes,
    `stage_of` has the original stage of each. 0 for a certificate of no more than 0 ticks.
    """
    kind, evidence = certificate.kind, in_own_ticks(problem, certificate.evidence)
    if certificate.value_ticks <= 0:
        return 0  # no time is below zero
    if isinstance(evidence, UnknownForm):
        raise NotCoveredError(f"the certificate ({kind}) has {evidence}")
    of_period = problem.objective.repeats
    if isinstance(evidence, ResourceWeights) and not of_period:
        return memory_and_copies(problem, evidence)
    if isinstance(evidence, StreamWeights) and not of_period:
        return stream_weights(problem, evidence)
    if isinstance(evidence, Diagram) and evidence.ways and kind == "decision diagram" and not of_period:
        return activation_mode_diagram(problem, evidence)
    if isinstance(evidence, Diagram) and evidence.joint and kind == "decision diagram" and not of_period:
        require_covered(problem, frozenset())
        return decision_diagram(problem, evidence, stage_of)
    argument = (OF_PERIODS if of_period else ARGUMENTS).get(kind)
    if evidence is None or argument is None:
        raise NotCoveredError(f"the certificate ({kind}) has no evidence that the check understands")
    if type(evidence) not in argument:
        raise RefusedEvidenceError("evidence of another argument")
    require_covered(problem, _ALSO_KNOWN.get(type(evidence), frozenset()))
    return argument[type(evidence)](problem, evidence, certificate.value_ticks)
