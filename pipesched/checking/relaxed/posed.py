"""The relaxed problem that a certificate's evidence refers to: the relaxations and their order.

Three are named by the evidence (`results.evidence.RelaxedBy`), one within the other in their order here: more memory,
memory of partners, tasks as stages. All others are implied: they follow from the problem and the kind of evidence.
Names and order are those of `problem/relaxed/relaxations.py`, which the solver reads and this check does not.

| relaxation | what is left | named, or implied unless |
|---|---|---|
| more memory | devices have the memory, no less than their own, that the evidence names | named |
| further resources | tasks occupy one stream each | the argument counts what a stream runs |
| lookups | passes begin with the first task that waits for another pass | |
| parameters | no collectives and steps; their time before and after all passes is added back | |
| unequal micro-batches | chains of equal ones; the same problem | |
| workspace | passes have none, and keep nothing until the end | |
| arcs between chains | chains do not wait for each other | the argument reads such arcs |
| single tasks | passes of one task on the stream of their stage have no tasks; the same problem | |
| saved activations | copies and recomputations take no time | the argument reads the modes of activations |
| partners' memory | the named devices have the memory of their group of partners | named; after saved activations |
| tasks as stages | the named tasks are stages | named |

More memory is first: the capacities are those of the file, of which parameters and workspace then take their least.
Parameters come after lookups, as a task that waits for none may run while another device still gathers; unequal
micro-batches after parameters, as stages get new numbers; workspace after both, as gathers have none.

Each is a relaxation or the same problem, so that bounds of the last are bounds of the first. The attainable values of
schedules are those of the problem after single tasks. For an exhaustive search, which reads the problem itself, only
more memory is applied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.memory.more_memory import with_capacities
from pipesched.checking.relaxed.arcs import without_arcs_between_chains
from pipesched.checking.relaxed.further_resources import without_further_resources
from pipesched.checking.relaxed.least_memory import with_least_memory
from pipesched.checking.relaxed.lookups import without_lookups
from pipesched.checking.relaxed.memory_of_partners import with_memory_of_partners
from pipesched.checking.relaxed.microbatches import with_equal_microbatches
from pipesched.checking.relaxed.parameters import around_passes, without_parameters
from pipesched.checking.relaxed.pass_memory import without_pass_memory
from pipesched.checking.relaxed.single_tasks import without_single_tasks
from pipesched.checking.streams.tasks_as_stages import as_plain
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import (
    Evidence,
    MemoryOfPartners,
    MoreMemory,
    OfRelaxed,
    OnStream,
    Refutation,
    RelaxedBy,
    ResourceWeights,
    StreamTasks,
    StreamWeights,
    TasksAsStages,
)

_Relaxation = TypeVar("_Relaxation", bound=RelaxedBy)


class Posed(NamedTuple):
    """A relaxed problem, and what a certificate claims about it.

    `certificate` has the kind and evidence of the argument itself, and as value the stated value less `added_back`, in
    ticks of the original problem. `valued` is the problem whose attainable values count. Where stages are tasks,
    `stage_of` has for each the number of the original stage that its tasks belong to; else it is None.
    """

    problem: Problem
    certificate: Certificate
    valued: Problem
    added_back: Ticks
    stage_of: tuple[StageId, ...] | None = None


def posed(problem: Problem, certificate: Certificate) -> Posed:
    """Return the relaxed problem and the claim of a certificate.

    `RefusedEvidenceError` if the evidence names relaxations in another order than they are applied in, or that do not
    fit its argument or the problem; `NotCoveredError` if the check does not know such a relaxation of this problem.
    """
    memory, claim = _opened(certificate, MoreMemory)
    partners, claim = _opened(claim, MemoryOfPartners)
    evidence = claim.evidence
    tasks, claim = _opened(claim, TasksAsStages)
    if isinstance(claim.evidence, OfRelaxed):
        raise RefusedEvidenceError(f"{claim.evidence.relaxation.form} within a relaxation that is applied later")
    if partners is not None and isinstance(evidence, Refutation):
        raise RefusedEvidenceError("memory of partners in an exhaustive search, which reads the problem itself")
    if partners is not None and _reads_modes(evidence):
        raise RefusedEvidenceError("memory of partners in an argument that reads the modes of activations")
    problem = problem if memory is None else with_capacities(problem, memory)
    if isinstance(evidence, Refutation):
        return Posed(problem, claim, problem, 0)
    if not isinstance(evidence, OnStream):
        problem = without_further_resources(problem)
    problem = without_lookups(problem)
    added_back = around_passes(problem)
    problem = without_pass_memory(with_equal_microbatches(without_parameters(problem)))
    if not isinstance(evidence, StreamTasks):
        problem = without_arcs_between_chains(problem)
    valued = without_single_tasks(problem)
    problem = valued if _reads_modes(evidence) else with_least_memory(valued)
    problem = problem if partners is None else with_memory_of_partners(problem, valued, partners)
    problem = problem if tasks is None else as_plain(problem, tasks)
    stage_of = None if tasks is None else tuple(row[0] for row in tasks.stages)
    claim = replace(claim, value_ticks=claim.value_ticks - added_back)
    return Posed(problem, claim, valued, added_back, stage_of)


def _opened(certificate: Certificate, kind: type[_Relaxation]) -> tuple[_Relaxation | None, Certificate]:
    """Return the relaxation of this kind that the evidence names, and the certificate of the argument after it.

    None and the certificate itself where it names another one or none.
    """
    evidence = certificate.evidence
    if not isinstance(evidence, OfRelaxed) or not isinstance(evidence.relaxation, kind):
        return None, certificate
    return evidence.relaxation, replace(certificate, kind=evidence.kind, evidence=evidence.evidence)


def _reads_modes(evidence: Evidence | None) -> bool:
    """Return True if the argument of this evidence reads the modes of activations."""
    return evidence.ways if isinstance(evidence, Diagram) else isinstance(evidence, ResourceWeights | StreamWeights)
