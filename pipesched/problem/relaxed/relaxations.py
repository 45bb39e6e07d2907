"""All relaxations, in the order in which they are applied, and the problem that remains after them.

| relaxation | assumes | because |
|---|---|---|
| further resources | nothing | it is the first: the time of parameters is counted where devices run their own tasks |
| lookups | nothing | bounds that know arcs between chains do not know lookups |
| parameters | no lookups | a task that needs no input may run on one device while another one still gathers |
| unequal micro-batches | no parameters | stages get new numbers, and `holders` would still name the old ones |
| workspace | no parameters | gathers take memory without any; it reads the chains of unequal micro-batches |
| arcs between chains | no lookups | bounds may read them (`keeping`); an activation then includes its keys and values |
| saved activations | nothing | it is the last: bounds of modes read all other features that remain |
| partners' memory | no lookups | an alternative to the last one; forwards must wait for those of earlier stages |

A bound names the relaxations that it can do without: it reads the problem that the others give. A value proved for
that problem is proved, with the ticks added, for the problem itself. The check states all of this once more, by the
same names (`pipesched/checking/relaxed/posed.py`), with two relaxations that its evidence names besides: more memory,
and tasks as stages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.formatting import amount
from pipesched.problem.passes import KINDS
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed import arcs_between_chains, least_memory, lookups, partners_memory, pass_memory
from pipesched.problem.relaxed.further_resources import ARGUMENT, drop_further_resources
from pipesched.problem.relaxed.parameter_times import least_parameter_ticks
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem

_BESIDES = (
    "At least {} more passes: the gathering of parameters before the first forward, and the reduction of gradients "
    "{}and the optimizer's step of the stage whose backward ends last."
)
_ON_DEVICE = (
    "At least {} more passes on every device: the gathering of parameters before its first forward, and the reduction "
    "of gradients {}and the optimizer's step of the stage whose backward ends last there."
)


def _besides(problem: Problem) -> str:
    ticks = least_parameter_ticks(problem)
    text = _ON_DEVICE if problem.objective.by_device else _BESIDES
    shared = dict.fromkeys(KINDS[one.kind].name.lower() for stage in problem.stages for one in stage.once if one.of_all)
    return text.format(amount(problem, ticks), "".join(f"and the {name} " for name in shared)) if ticks else ""


PARAMETERS = Relaxation(
    "parameters",
    partial(passes_alone, room_for=min),
    "The network loses gatherings, reductions and steps. A schedule without them ends earlier by at least what is "
    "added back: a gathering comes before all forwards, reduction and step follow the backward that ends last. While a "
    "pass takes memory, the parameters of its stage are there: of a device's stages the least are taken from its "
    "memory.",
    least_parameter_ticks,
    _besides,
    lambda problem: problem.network.of_microbatches,
)
FURTHER_RESOURCES = Relaxation(
    "further resources",
    drop_further_resources,
    ARGUMENT,
    note=lambda _: "So much it takes even if each task occupies one stream alone.",
    drop=lambda problem: problem.network.drop(further_resources=True),
)
UNEQUAL_MICROBATCHES = Relaxation(
    "unequal micro-batches",
    without_scale,
    "It is the same problem: micro-batches of one factor walk a chain of stages that cost what they do, on the same "
    "devices. Only equal ones keep their order.",
)
LOOKUPS = Relaxation(
    "lookups",
    lookups.drop_lookups,
    lookups.ARGUMENT,
    note=lambda _: "Tasks that need nothing of the stage before are left out of this.",
    drop=lookups.network_without_lookups,
)
PASS_MEMORY = Relaxation("workspace", pass_memory.drop_pass_memory, pass_memory.ARGUMENT)
ARCS_BETWEEN_CHAINS = Relaxation(
    "arcs between chains",
    arcs_between_chains.drop_arcs_between_chains,
    arcs_between_chains.ARGUMENT,
    drop=arcs_between_chains.network_without_arcs,
)
SAVED_ACTIVATIONS = Relaxation(
    "saved activations",
    least_memory.with_least_activations,
    least_memory.ARGUMENT,
    note=lambda _: "So much it takes even if copies and recomputations take no time.",
)
PARTNERS_MEMORY = Relaxation(
    "partners' memory",
    partners_memory.share_memory,
    f"{least_memory.ARGUMENT} {partners_memory.ARGUMENT}",
    note=partners_memory.note,
    sharing=partners_memory.sharing,
)
RELAXATIONS = (
    FURTHER_RESOURCES,
    LOOKUPS,
    PARAMETERS,
    UNEQUAL_MICROBATCHES,
    PASS_MEMORY,
    ARCS_BETWEEN_CHAINS,
    SAVED_ACTIVATIONS,
)
WITH_PARTNERS = (*RELAXATIONS[:-1], PARTNERS_MEMORY)


def relaxed(problem: Problem, keeping: Collection[Relaxation] = ()) -> RelaxedProblem:
    """Return the problem after all relaxations except those in `keeping`."""
    return _without(problem, [one for one in RELAXATIONS if one not in keeping])


def with_partners(problem: Problem, keeping: Collection[Relaxation] = ()) -> RelaxedProblem | None:
    """Return the problem after all relaxations except those in `keeping`, with the common memory of partners.

    The relaxation `partners' memory` then takes the place of `saved activations`. None where the common memory limits
    no device more than its own (`sharing` is empty), as where no activation moves to another device.
    """
    if all(stage.offload is None or stage.offload.to is None for stage in problem.stages):
        return None
    found = _without(problem, [one for one in WITH_PARTNERS if one not in keeping])
    return found if found.sharing else None


def _without(problem: Problem, relaxations: Iterable[Relaxation]) -> RelaxedProblem:
    found = RelaxedProblem(problem)
    for relaxation in relaxations:
        found = found.without(relaxation)
    return found
