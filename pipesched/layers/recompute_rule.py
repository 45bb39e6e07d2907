"""Rules on the layers that may be recomputed together: those that settings of training runtimes can express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.roles import Role, role_of

# Recomputing a whole layer from its input.
FULL = ("full",)
# Parts of a layer that Megatron recomputes by --recompute-modules: a way has their names, joined by +.
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
# Of these, the one that another is part of: where both are recomputed, it saves no more.
PART_OF = {"moe_act": "moe", "shared_experts": "moe"}
# Other names of the way core_attn.
_ATTENTION = ("selective", "attention")
# What every transformer layer has, whether the file says so or not.
_EVERYWHERE = frozenset(("core_attn", "layernorm"))
# The roles of layers that runtimes recompute.
ROLES = (Role.TRANSFORMER, Role.MTP)


class RecomputeRule(StrEnum):
    """Rules by which runtimes select layers to recompute.

    `ANY`: any layers. `FIRST`: of each stage some of its first transformer layers. `SAME`: of each stage the same
    number of first transformer layers; or the same modules of all layers that have them. `ALL`: all transformer and
    multi-token prediction layers, or none. Except for the modules of `SAME`, all but `ANY` allow mode `full` alone;
    none of them allows that embedding or head are recomputed.
    """

    ANY = "any"
    # Of every stage so many of its first transformer layers.
    FIRST = "first"
    # One number for all stages, or a whole stage where it has fewer, multi-token prediction layers left out; or all
    # layers; or the same modules of all layers that have them.
    SAME = "same"
    # All transformer and multi-token prediction layers, or none.
    ALL = "all"


class _Stage(NamedTuple):
    """The recomputation mode of a stage's transformer layers in order, and of its multi-token prediction layers.

    None for a layer that is not recomputed. `names` are the names of all these layers. `mtp` has the modes of
    multi-token prediction layers.
    """

    layers: tuple[str | None, ...]
    mtp: tuple[str | None, ...]
    names: tuple[str, ...]

    @property
    def modes(self) -> set[str]:
        return {mode for mode in (*self.layers, *self.mtp) if mode is not None}

    @property
    def first(self) -> int:
        """The number of leading transformer layers that are recomputed."""
        return next((at for at, mode in enumerate(self.layers) if mode is None), len(self.layers))


def modules_of(mode: str) -> frozenset[str]:
    """Return the modules that a recomputation mode names; empty if it is not a mode of modules.

    `selective` and `attention` name the module core_attn.
    """
    names = {"core_attn" if one in _ATTENTION else one for one in mode.split("+")}
    return frozenset(names) if names <= set(MODULES) else frozenset()


def selections(kinds: Sequence[LayerType]) -> list[Mapping[str, str]]:
    """Return all recomputations that a list of modules can express, shortest list first, each once.

    `kinds` are a model's types of layers in order. Each has the mode of each type of layer by its name, without the
    layers in which the list recomputes nothing. A list applies to all layers, and recomputes the listed modules that a
    layer has; the layer must have a mode of exactly these modules. A multi-token prediction layer also has the modules
    of the transformer layer before it.
    """
    own: dict[str, dict[frozenset[str], str]] = {}
    parts: dict[str, frozenset[str]] = {}
    before = _EVERYWHERE
    for kind in (kind for kind in kinds if role_of(kind.name) in ROLES):
        modes = {modules_of(mode.name): mode.name for mode in reversed(kind.recompute) if modules_of(mode.name)}
        own[kind.name] = modes
        has = _EVERYWHERE.union(*modes)
        parts[kind.name] = has | before if role_of(kind.name) is Role.MTP else has
        before = parts[kind.name]
    lists = {frozenset[str]()}
    for modes in own.values():
        for mode in modes:
            lists |= {mode | each for each in lists}
    found: list[Mapping[str, str]] = []
    for each in sorted(lists, key=lambda one: (len(one), sorted(one))):
        effects = {name: each & has for name, has in parts.items() if each & has}
        if effects and all(effect in own[name] for name, effect in effects.items()):
            chosen = {name: own[name][effect] for name, effect in effects.items()}
            found += [chosen] if chosen not in found else []
    return found


def why_not_expressible(model: Model, partition: Partition, rule: RecomputeRule) -> str | None:
    """Return the reason why the rule does not allow the partition's recomputation; None if it does."""
    if rule is RecomputeRule.ANY or not partition.recompute:
        return None
    stages = []
    for at, layers in enumerate(partition.layers_of(model)):
        again = partition.recomputed_on(at)
        ends = [one.layer for one in again if one.layers and role_of(one.layer) not in ROLES]
        if ends:
            return f"a recomputed {role_of(ends[0]).value} (stage {at})"
        stages.append(_stage(layers, again))
    used = set().union(*(stage.modes for stage in stages))
    unknown = {mode for mode in used - set(FULL) if rule is not RecomputeRule.SAME or not modules_of(mode)}
    if unknown:
        return f"recomputation in the way {min(unknown)!r}"
    if used - set(FULL):
        return _not_selected(model, stages)
    if rule is RecomputeRule.ALL:
        return _not_all(stages, FULL)
    return _not_first(stages) or (_not_same(stages) if rule is RecomputeRule.SAME else None)


def _stage(layers: Sequence[LayerType], again: Sequence[Recomputed]) -> _Stage:
    """Return the modes of a stage's layers.

    Entries apply in order, each to the first layers of its name not yet taken.
    """
    left: dict[str, Counter[str]] = {}
    for one in again:
        left.setdefault(one.layer, Counter())[one.mode] += one.layers

    def mode_of(name: str) -> str | None:
        for mode, number in left.get(name, {}).items():
            if number:
                left[name][mode] -= 1
                return mode
        return None

    modes = [(role_of(layer.name), mode_of(layer.name)) for layer in layers]
    transformer, mtp = (tuple(mode for role, mode in modes if role is wanted) for wanted in ROLES)
    names = [layer.name for wanted in ROLES for layer in layers if role_of(layer.name) is wanted]
    return _Stage(transformer, mtp, tuple(names))


def _not_selected(model: Model, stages: Sequence[_Stage]) -> str | None:
    """Return a reason unless one list of modules describes the recomputation of all layers.

    None if one does.
    """
    every = [one for stage in stages for one in zip(stage.names, (*stage.layers, *stage.mtp), strict=True)]
    if any(all(chosen.get(name) == mode for name, mode in every) for chosen in selections(model.kinds)):
        return None
    return "recomputed modules that are not the same of all layers"


def _not_all(stages: Sequence[_Stage], modes: Sequence[str]) -> str | None:
    """Return a reason if some layers are recomputed in these modes and others are not, else None."""
    every = [mode for stage in stages for mode in (*stage.layers, *stage.mtp)]
    number = sum(mode in modes for mode in every)
    return None if number in (0, len(every)) else f"{number} of {len(every)} layers recomputed, not all or none"


def _not_first(stages: Sequence[_Stage]) -> str | None:
    """Return a reason unless the recomputed layers are the first of their stage.

    Multi-token prediction layers count as last. None if they are.
    """
    for at, stage in enumerate(stages):
        every = [mode is not None for mode in (*stage.layers, *stage.mtp)]
        if every != sorted(every, reverse=True):
            return f"layers recomputed on stage {at} that are not its first"
    return None


def _not_same(stages: Sequence[_Stage]) -> str | None:
    """Return a reason if stages recompute different numbers of layers, else None.

    A stage with fewer layers may recompute all of them. Multi-token prediction layers may be recomputed only if all
    layers of all stages are.
    """
    counts, lengths = [stage.first for stage in stages], [len(stage.layers) for stage in stages]
    mtp = [mode is not None for stage in stages for mode in stage.mtp]
    if any(mtp) and not (all(mtp) and counts == lengths):
        return "recomputed multi-token prediction layers, and not all other layers"
    if counts != [min(max(counts), each) for each in lengths]:
        return f"{', '.join(map(str, counts))} layers recomputed by stage, not the same number"
    return None
