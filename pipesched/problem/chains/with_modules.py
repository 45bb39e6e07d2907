"""A trunk and its modules as one problem: a chain of stages for each, with arcs between the chains.

A module's pass runs before the forwards that it feeds, and its backward after all of their backwards, as in the
multi-module pipelines of Optimus (arXiv 2408.03505) and FlagScale's `vit_batch_factor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesched.problem.features.chain_arcs import NO_ARCS, ChainArcs
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.module import Module
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.features.walks import Walks
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.problem.rescale import in_common_steps
from pipesched.problem.stage import Stage


def with_modules(trunk: Problem, modules: Sequence[tuple[Module, Problem]]) -> Problem:
    """Return the problem of a trunk joined with all its modules, in the largest tick and step of memory common to them.

    Each module is given with the problem of its own stages. If a module that is not `shared` has several copies, they
    take its passes in turn, and micro-batches keep their order on every stage of the returned problem. `ValueError` for
    a trunk of several chains, such as one that has modules already; without modules the trunk is returned.
    """
    if not modules:
        return trunk
    if len(trunk.placement.chains) > 1 or trunk.chain_arcs != NO_ARCS:
        raise ValueError(f"found a trunk of {len(trunk.placement.chains)} chains; allowed: one, without arcs")
    trunk, *others = in_common_steps([trunk, *(own for _, own in modules)])
    where, devices, stages = trunk.placement, list(trunk.placement.stage_device), list(trunk.stages)
    chains, shares, arcs = [*where.chains], [trunk.microbatches], list[StageArc]()
    static = list(trunk.static)
    for (module, _), own in zip(modules, others, strict=True):
        passes = trunk.microbatches // module.serves
        devices += own.placement.stage_device
        stages += [replace(stage, static=0) for stage in own.stages]
        static = [own_static + more for own_static, more in zip(static, own.static, strict=True)]
        for copy, chain in enumerate(module.chains):
            chains.append(chain)
            taking_turns = module.copies > 1 and not module.shared
            shares.append(len(range(copy, passes, module.copies)) if taking_turns else passes)
            places = tuple(j for j in range(trunk.microbatches) if j // module.serves % module.copies == copy)
            only = places if taking_turns else ()
            if module.barriers:
                arcs += _of_head_part(module, chain[0])
                continue
            arcs += [StageArc(chain[-1], fed, places=only, barrier=module.shared) for fed in module.feeds]
            arcs += [StageArc(fed, chain[-1], backward=True, places=only) for fed in module.feeds]
    copied = any(module.copies > 1 and not module.shared for module, _ in modules)
    return replace(
        trunk,
        placement=Placement(where.name, where.devices, tuple(devices), tuple(chains)),
        microbatches=sum(shares),
        stages=tuple(replace(stage, static=0) for stage in stages),
        pools=tuple(Pool(pool.capacity, own_static) for pool, own_static in zip(trunk.pools, static, strict=True)),
        walks=Walks(tuple(shares), tuple(range(len(stages))) if copied else ()),
        chain_arcs=ChainArcs(tuple(arcs), modules=tuple(module for module, _ in modules)),
        notes=tuple(dict.fromkeys(note for one in (trunk, *others) for note in one.notes)),
    )


def with_shared(trunk: Problem, shared: Sequence[tuple[str, Sequence[Stage]]], heads: Sequence[str]) -> Problem:
    """Return the problem of a trunk with modules that are split over all devices, each device running one part.

    `shared` has for each module its name and its stage on every device, in the trunk's ticks. Modules named in `heads`
    follow the trunk's last stage, with two barriers; all others feed its first stage. `ValueError` for a trunk of
    several chains.
    """
    devices, chain = trunk.devices, trunk.placement.chains[0]
    where, modules = Placement("", devices, tuple(range(devices)), tuple((d,) for d in range(devices))), []
    for number, (name, parts) in enumerate(shared):
        first, fed = trunk.placement.stages + number * devices, chain[-1] if name in heads else chain[0]
        module = Module(name, first, 1, devices, (fed,), 1, shared=True, barriers=2 * (name in heads))
        modules.append((module, replace(trunk, placement=where, stages=tuple(parts), pools=())))
    return with_modules(trunk, modules)


def _of_head_part(module: Module, part: StageId) -> list[StageArc]:
    """Return the arcs of a head's part on one device, to and from the trunk and the parts on other devices.

    With two barriers the backwards of all parts wait for the forwards of all, and the last stage of the trunk waits for
    these backwards; with one barrier the forwards have already computed the gradient of the input (arXiv 2411.05288,
    algorithms 1 and 2).
    """
    (last,) = module.feeds
    waiting = [chain[0] for chain in module.chains] + [last] * (module.barriers == 1)
    arcs = [
        StageArc(last, part),
        *(StageArc(part, one, True, waits_for_forwards=True, barrier=True) for one in waiting),
    ]
    return arcs if module.barriers == 1 else [*arcs, StageArc(part, last, backward=True, barrier=True)]
