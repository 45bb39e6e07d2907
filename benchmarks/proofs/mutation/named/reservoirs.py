"""Mutants of memory of devices that activations of other devices move to."""

from __future__ import annotations

from benchmarks.proofs.mutation.named.mutant import NamedMutant

_EVERY_ORDER = (
    "tests/formulations/test_task_model.py::test_with_activations_that_may_be_saved_the_optimum_is_that_of_every_order"
    "[tiny_lent]"
)
_NETWORK = "tests/pipesched/files/test_offload_to.py::test_the_network_has_the_other_device_as_the_reservoir_of_copies"
_RULES = "tests/pipesched/validation/test_lent_memory_rules.py"
_RELAXED = "tests/pipesched/problem/test_lent_memory_relaxed.py"
_PARTNERS = "tests/pipesched/problem/test_partners_memory.py"
_AMPLE = "tests/solver/tasks/test_lent_memory.py::test_memory_that_others_may_take_limits"

RESERVOIRS = (
    NamedMutant(
        "exact model: what moves to another device takes nothing there", "formulations/jobs/jobs_of_problem.py",
        "for pool, (a, b) in network.changes(of):", "for pool, (a, b) in network.changes(of)[:1]:",
        "the capacity of the device that holds activations of others", (_EVERY_ORDER,),
    ),
    NamedMutant(
        "network: what moves takes nothing elsewhere",
        "pipesched/problem/lowering/network_of_problem.py",
        "MemoryChange(*change_elsewhere(stages[s], kind))),)", "MemoryChange(0, 0)),)",
        "the reservoir of a copy", (_NETWORK, _EVERY_ORDER),
    ),
    NamedMutant(
        "validator: orders of one stream say all of memory", "pipesched/validation/memory_order_rule.py",
        "alone = len(problem.streams) == 1 and not moves_to_devices(problem)", "alone = len(problem.streams) == 1",
        "copies on the first stream of one device that take memory of another",
        (_RULES,),
    ),
    NamedMutant(
        "validator: a device holds nothing of others", "pipesched/validation/memory_rule.py",
        "copies = _copies_of_others(timeline, device)", "copies = list[_CopyOfOther]()",
        "the level of a device over time", (_RULES,),
    ),
    NamedMutant(
        "metrics: a peak without activations of others", "pipesched/schedule/metrics.py",
        "for one in changes_elsewhere(timeline, reservoir)]", "for one in ()]",
        "the memory level of a device", (_RULES,),
    ),
    NamedMutant(
        "relaxations: only a device's own copies take its memory", "pipesched/problem/network/task_network.py",
        "for number, change in self.changes(of)", "for number, change in self.changes(of)[:1]",
        "memory taken of a device while no parameters are gathered there, without workspace", (_RELAXED,),
    ),
    NamedMutant(
        "check: only a device's own copies take its memory", "pipesched/checking/relaxed/taken_by_modes.py",
        "found |= {OFFLOAD} if copies.to == device else set()", "pass",
        "memory taken of a device while no parameters are gathered there, without workspace", (_RELAXED,),
    ),
    NamedMutant(
        "ample memory: what others move there is not counted", "pipesched/problem/relaxed/ample_memory.py",
        "total += max(0, change.total) * _number(problem, stage)", "total += 0",
        "memory that never limits", (_AMPLE,),
    ),
    NamedMutant(
        "partners: what earlier stages keep counts for every later stage of a device",
        "pipesched/problem/relaxed/partners_memory.py",
        "device: 0 if device == where[stage] else more + own", "device: more + own",
        "an activation counted twice in the memory of a group", (_PARTNERS,),
    ),
    NamedMutant(
        "partners: the memory of the largest", "pipesched/problem/relaxed/partners_memory.py",
        "whole, together, devices = sum(limited)", "whole, together, devices = max(limited)",
        "the memory of a group", (_PARTNERS,),
    ),
    NamedMutant(
        "partners: what moves to the host stays in the group", "pipesched/problem/relaxed/partners_memory.py",
        "(0 if to_host else moves)", "moves",
        "what an activation keeps in the group", (_PARTNERS,),
    ),
    NamedMutant(
        "check of partners: earlier stages of the same device count too",
        "pipesched/checking/relaxed/memory_of_partners.py",
        "while at is not None and where[at] != where[stage]:", "while at is not None:",
        "an activation counted twice in the memory of a group", (_PARTNERS,),
    ),
)  # fmt: skip
