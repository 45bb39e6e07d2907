"""Limits of a runtime's settings and orders, and the plan problem restricted to them.

They apply before the search, so that its result can be run and is the best of those that can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pipesched.errors import BadInput
from pipesched.layers.cluster import Cluster
from pipesched.layers.even import even_counts
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, mistakes
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import FULL, MODULES, ROLES, RecomputeRule, modules_of
from pipesched.layers.roles import Role, check_places, role_of
from pipesched.schedule.microbatch_groups import ORDER, group_sizes, is_taken, order_of
from runtime.partitions.mixer_limits import NO_MIXER, MixerLimits, check_built
from runtime.partitions.setting_limits import BACKWARD_OF_EVERY_STAGE, at_least_each

_RULES = {
    RecomputeRule.ANY: "any layers are recomputed",
    RecomputeRule.FIRST: "recomputed layers are the first ones of their stage",
    RecomputeRule.SAME: "the same number of first layers recomputed on every stage, or all layers, or modules of all",
    RecomputeRule.ALL: "all layers recomputed, or none",
}


class MtpPlace(Enum):
    """Stages on which a runtime allows multi-token prediction layers.

    `ANYWHERE`: any stage. `LAST_STAGE`: the last one. `ONE_STAGE`: all on one stage, of the last chunk and not on
    device 0 (Megatron). `NOWHERE`: the runtime has no such layers.
    """

    ANYWHERE = "anywhere"
    LAST_STAGE = "on the last stage"
    # Megatron: the last chunk of a device other than the first.
    ONE_STAGE = "together on one stage of the last chunk, not on device 0"
    NOWHERE = "nowhere"


@dataclass(frozen=True)
class PlanLimits:
    """Limits of one runtime. `placements` and `schedules` are those that it runs (`schedules` empty: any order).

    `rule`: the layers of a stage that can be recomputed. `mtp`: the stages that may have multi-token prediction layers,
    or `mtp_of` by the names of all layers, where it is not None; `recomputes_mtp`: these can be recomputed.
    `without_mtp`: placements only for models without multi-token prediction.

    `layers_divide`: with several chunks, the number of stages divides that of transformer layers. `whole_backwards`: no
    backward is split into B and W; `whole_last`: none of the last stage. `groups`: the interleaved order has groups of
    micro-batches, as in Megatron. `equal_stages`: all stages have the same number of transformer layers.
    `microbatches_a_device`: at least so many micro-batches for each device. `least_devices`: so many devices or more.
    `split_backwards`: every layer that trains has a W of its own. `context_parallel`: sequences may be cut over several
    devices. `forwards_only`: no layer trains. `every_stage_trains`: every stage has a layer that a gradient reaches, so
    the first stage has all frozen layers at the beginning and the first that trains. `mixers`: the layers of hybrid
    models that it builds. `check` raises `BadInput` if it does not build layers of the names that it is given.
    """

    placements: tuple[str, ...]
    rule: RecomputeRule
    schedules: tuple[str, ...] = ()
    mtp: MtpPlace = MtpPlace.ANYWHERE
    mtp_of: Callable[[Sequence[str]], MtpPlace] | None = None
    without_mtp: tuple[str, ...] = ()
    recomputes_mtp: bool = True
    layers_divide: bool = False
    whole_backwards: bool = False
    whole_last: bool = False
    groups: bool = False
    equal_stages: bool = False
    microbatches_a_device: int = 0
    least_devices: int = 1
    split_backwards: bool = False
    context_parallel: bool = True
    forwards_only: bool = False
    every_stage_trains: bool = False
    mixers: MixerLimits = NO_MIXER
    check: Callable[[list[str]], None] = lambda _: None


def _of_settings(plan: PlanProblem, name: str, limits: PlanLimits) -> PlanProblem:
    """Return the plan problem as far as settings express it: additions that leave a choice are decided as settings do.

    Raises `BadInput` for additions that no settings express at all, such as an encoder, and for the objective period of
    a runtime that runs its own orders. Messages begin with `--for` and `name`, the runtime's.
    """
    for addition in plan.additions:
        try:
            plan = addition.of_settings(plan)
        except BadInput as error:
            raise BadInput(*(f"--for {name}: found {line}" for line in error.mistakes)) from None
    if plan.objective.repeats and limits.schedules:
        raise BadInput(f"--for {name}: found objective period; allowed: makespan or span, since it runs its own orders")
    return plan


def _check_sizes(plan: PlanProblem, name: str, limits: PlanLimits) -> None:
    """Raise `BadInput` for passes, devices, micro-batches or parallelism that the runtime does not take.

    The message begins with `--for` and `name`, the runtime's.
    """
    training = next((layer.name for layer in plan.model.layers if layer.trains), None)
    if limits.forwards_only and training is not None:
        raise BadInput(f"--for {name}: found a backward of layer {training}; allowed: backward 0, or frozen: true")
    if plan.microbatches < limits.microbatches_a_device * plan.cluster.devices:
        raise BadInput(
            f"--for {name}: found {plan.microbatches} micro-batches; allowed: at least "
            f"{at_least_each(limits.microbatches_a_device)} of the "
            f"{plan.cluster.devices} devices"
        )
    if plan.cluster.devices < limits.least_devices:
        raise BadInput(f"--for {name}: found {plan.cluster.devices} device; allowed: at least {limits.least_devices}")
    if limits.split_backwards and not plan.model.splittable:
        raise BadInput(f"--for {name}: found layers without weight; allowed: weight of layers, since its order needs W")
    context = 1 if plan.step is None else plan.step.parallel.context
    if context > 1 and not limits.context_parallel:
        raise BadInput(f"--for {name}: found context parallel {context}; allowed: 1")


def restricted(plan: PlanProblem, name: str, limits: PlanLimits) -> tuple[PlanProblem, tuple[str, ...]]:
    """Return the problem whose plans the runtime can run, and a text for each thing left out.

    Where a plan may leave devices out, each number of devices has limits of its own, and numbers on which the runtime
    runs no plan are left out. Raises `BadInput`, whose message begins with `--for` and `name`, the runtime's, if it can
    run no plan of the problem.
    """
    plan = _of_settings(plan, name, limits)
    if not plan.clusters:
        return _on_one_cluster(plan, name, limits)
    clusters_of = dict[int, list[tuple[str, Cluster]]]()
    for key, cluster in plan.clusters:
        clusters_of.setdefault(cluster.devices, []).append((key, cluster))
    parts, numbers_of, refused = list[PlanProblem](), dict[str, list[int]](), dict[str, list[int]]()
    for devices, clusters in sorted(clusters_of.items()):
        try:
            part, words = _on_one_cluster(replace(plan, cluster=clusters[0][1], clusters=()), name, limits)
        except BadInput as error:
            for line in error.mistakes:
                refused.setdefault(line, []).append(devices)
            continue
        parts.append(replace(part, clusters=tuple(clusters)))
        for word in words:
            numbers_of.setdefault(word, []).append(devices)
    if not parts:
        raise BadInput(*refused)
    texts = [
        word if len(numbers) == len(parts) else f"{word} on {_devices(numbers)}" for word, numbers in numbers_of.items()
    ]
    left_out = [f"no plan on {_devices(of)} ({line.removeprefix(f'--for {name}: ')})" for line, of in refused.items()]
    known = {choice for part in parts for choice in part.choices}
    made = replace(
        plan,
        choices=tuple(choice for choice in plan.choices if choice in known),
        clusters=tuple(one for one in plan.clusters if any(one in part.clusters for part in parts)),
        parts=tuple(parts),
    )
    return made, (*texts, *left_out)


def _devices(numbers: Sequence[int]) -> str:
    """Return numbers of devices as a phrase, such as "2 or 4 devices"."""
    return f"{' or '.join(map(str, numbers))} device{'' if list(numbers) == [1] else 's'}"


def _on_one_cluster(plan: PlanProblem, name: str, limits: PlanLimits) -> tuple[PlanProblem, tuple[str, ...]]:
    """Return the restricted problem and a text for each thing left out, where plans use all devices of one cluster.

    `plan` is already as far as settings express it. `BadInput`, naming the runtime `name`, if it can run no plan of it.
    """
    names = [layer.name for layer in plan.model.sequence]
    try:
        check_places(names)
        check_built(limits.mixers, plan.step, names)
        limits.check(names)
    except BadInput as error:
        raise BadInput(*(f"--for {name}: {line}" for line in error.mistakes)) from None
    _check_sizes(plan, name, limits)
    model, words = plan.model, list[str]()
    if limits.forwards_only:
        model = replace(model, layers=tuple(replace(layer, recompute=()) for layer in model.layers))
    if model.empty_stages:
        # Megatron's layouts may have such stages, which deadlock (NVIDIA/Megatron-LM, issue 1852).
        model = replace(model, empty_stages=False)
        words.append("a layer on every stage")
    mtp = any(role_of(layer.name) is Role.MTP for layer in model.layers)
    place = limits.mtp if limits.mtp_of is None else limits.mtp_of([layer.name for layer in model.layers])
    if mtp and place is MtpPlace.NOWHERE:
        raise BadInput(f"--for {name}: found multi-token prediction layers; allowed: a model without")
    if mtp and place is not MtpPlace.ANYWHERE:
        model = _mtp_together(model, place is MtpPlace.LAST_STAGE or plan.cluster.devices <= 2)
        words += [f"multi-token prediction layers {place.value}"] if model != plan.model else []
    if limits.every_stage_trains and model.before_training:
        model = _trained_first_stage(plan, model, name)
        words.append("a layer that trains on every stage")
    if limits.whole_backwards and model.splittable:
        model = replace(model, layers=tuple(map(_whole, model.layers)))
        words.append("every backward in one pass")
    whole_last = limits.whole_last and model.splittable
    words += ["the last stage's backward in one pass"] if whole_last else []
    rule = RecomputeRule.ANY
    if model.recomputes and plan.recompute is not Decide.NEVER:
        rule = limits.rule
        restricted_model = replace(model, layers=tuple(_expressible(layer, limits) for layer in model.layers))
        if plan.recompute is Decide.ALWAYS and _first_modes(restricted_model) != _first_modes(model):
            raise BadInput(
                f"--for {name}: found decide.recompute always, and a layer whose first way of recomputation it has "
                "no setting for; allowed: free, or the way full of transformer layers"
            )
        left_out = _left_out(model, restricted_model)
        model = restricted_model
        words.append(_RULES[rule])
        words += [f"no recomputation in the way {', '.join(left_out)} (it knows {_known(limits)})"] if left_out else []
    made = replace(plan, model=model, recompute_rule=rule, whole_last=whole_last)
    choices, schedules = _choices(made, plan.model, name, limits), _schedules(plan, name, limits)
    words += [f"placement {', '.join(map(str, choices))}"] if choices != plan.choices else []
    words += [f"order {_orders(schedules)}"] if schedules != plan.schedules else []
    if limits.groups and len(schedules) > len(plan.schedules or limits.schedules):
        words.append("of sizes that make the same number of groups, the least")
    made = replace(made, choices=choices, schedules=schedules)
    if limits.equal_stages:
        made = _equal_stages(made, name)
        words += ["equal stages"] if made.counts != plan.counts else []
    return made, tuple(words)


def _equal_stages(plan: PlanProblem, name: str) -> PlanProblem:
    """Return the problem with the same number of transformer layers on every stage of its placement.

    Raises `BadInput` where that is no whole number, or the file has another partition; the message begins with `--for`
    and `name`, the runtime's.
    """
    stages = _stages_of(plan, plan.choices[0])
    roles = [role_of(layer.name) for layer in plan.model.sequence]
    share, remainder = divmod(roles.count(Role.TRANSFORMER), stages)
    if remainder or not share:
        raise BadInput(
            f"--for {name}: found {roles.count(Role.TRANSFORMER)} transformer layers; allowed: a multiple of the "
            f"{stages} stages"
        )
    first = roles.index(Role.TRANSFORMER)
    last = len(roles) - first - share * (stages - 1)
    counts = (first + share, *[share] * (stages - 2), last)
    wrong = mistakes(plan.model, Partition(counts))
    if wrong:
        raise BadInput(*(f"--for {name}: with equal stages {line}" for line in wrong))
    if plan.counts not in (None, counts):
        raise BadInput(f"--for {name}: found a partition of other stages; allowed: {', '.join(map(str, counts))}")
    return replace(plan, counts=counts, even=False)


def _orders(schedules: tuple[str, ...]) -> str:
    """Return the names of schedules as text, with the group sizes of each in brackets."""
    sizes = dict[str, list[str]]()
    for name, _, size in (schedule.partition(":") for schedule in schedules):
        sizes.setdefault(name, []).extend([size] if size else [])
    return " or ".join(name + (f" (also in groups of {', '.join(own)})" if own else "") for name, own in sizes.items())


def _first_modes(model: Model) -> list[tuple[RecomputeMode, ...]]:
    return [layer.recompute[:1] for layer in model.layers]


def _choices(plan: PlanProblem, whole: Model, name: str, limits: PlanLimits) -> tuple[Choice, ...]:
    """Return the placements that the runtime runs; `whole` is the file's model, that of `plan` is restricted.

    Raises `BadInput` if there is none; the message begins with `--for` and `name`, the runtime's.
    """
    layers = sum(role_of(layer.name) is Role.TRANSFORMER for layer in plan.model.sequence)
    found = [choice for choice in plan.choices if choice.placement in limits.placements and choice.whole]
    more = [*dict.fromkeys(choice.cut.narrowed_by_settings for choice in plan.choices if not choice.whole)]
    if limits.without_mtp and any(role_of(layer.name) is Role.MTP for layer in plan.model.layers):
        found = [one for one in found if one.placement not in limits.without_mtp]
        more.append(f"{', '.join(limits.without_mtp)} without multi-token prediction layers only")
    if limits.layers_divide:
        found = [one for one in found if one.chunks == 1 or layers % (one.chunks * plan.cluster.devices) == 0]
        more.append("the stages of several chunks divide the layers")
    if limits.groups and not group_sizes(plan.microbatches, plan.cluster.devices):
        found = [one for one in found if one.chunks == 1]
        more.append(f"one chunk with fewer micro-batches than devices, {plan.microbatches} on {plan.cluster.devices}")
    if limits.every_stage_trains and plan.model.before_training:
        training = [one for one in found if _trains_on_every_stage(plan, whole, one)]
        if len(training) < len(found):
            most = f"up to {plan.model.most_stages} stages"
            more.append(f"a layer that trains on every stage, since {BACKWARD_OF_EVERY_STAGE}: {most}")
        found = training
    if not found:
        reasons = f" ({'; '.join(more)})" if more else ""
        raise BadInput(
            f"--for {name}: found placement {', '.join(map(str, plan.choices))}; allowed: "
            f"{', '.join(limits.placements)}{reasons}"
        )
    return tuple(found)


def _trains_on_every_stage(plan: PlanProblem, whole: Model, choice: Choice) -> bool:
    """Return True if some partition that the file allows has a layer that trains on every stage of a placement.

    `whole` is the file's model, that of `plan` has its frozen first layers on one stage.
    """
    stages = _stages_of(plan, choice)
    even = even_counts(whole, stages) if plan.even else None
    return stages <= plan.model.most_stages and (even is None or even[0] > whole.before_training)


def _stages_of(plan: PlanProblem, choice: Choice) -> int:
    return len(choice.on(plan.cluster.devices).chains[0])


def _schedules(plan: PlanProblem, name: str, limits: PlanLimits) -> tuple[str, ...]:
    if not limits.schedules:
        return plan.schedules
    m, p = plan.microbatches, plan.cluster.devices
    found = []
    for one in plan.schedules or limits.schedules:
        base, _, number = one.partition(":")
        if base not in limits.schedules or (number and not limits.groups):
            continue
        if base == ORDER and limits.groups:
            sizes = [int(number)] if number else group_sizes(m, p)
            found += [order_of(m, p, size) for size in sizes if is_taken(m, p, size)]
        else:
            found.append(one)
    if not found:
        raise BadInput(
            f"--for {name}: found schedule {', '.join(plan.schedules)}; allowed: {', '.join(limits.schedules)}"
        )
    return tuple(dict.fromkeys(found))


def _whole(layer: LayerType) -> LayerType:
    """Return the layer with a backward that is never split."""
    return replace(layer, backward=layer.full_backward, weight=None, fused=None, freed_by_backward=layer.activation * 0)


def _expressible(layer: LayerType, limits: PlanLimits) -> LayerType:
    """Return the layer with only those recomputation modes that the runtime's settings can express."""
    role = role_of(layer.name)
    some = role in ROLES and (role is not Role.MTP or limits.recomputes_mtp)
    return replace(layer, recompute=tuple(mode for mode in layer.recompute if some and _is_known(mode, limits)))


def _is_known(mode: RecomputeMode, limits: PlanLimits) -> bool:
    return mode.name in FULL or (limits.rule is RecomputeRule.SAME and bool(modules_of(mode.name)))


def _known(limits: PlanLimits) -> str:
    modules = f", {', '.join(MODULES)} and several of these joined by +" if limits.rule is RecomputeRule.SAME else ""
    return f"{', '.join(FULL)}{modules}"


def _left_out(before: Model, after: Model) -> list[str]:
    """Return the names of the recomputation modes of `before` that no layer of `after` has."""
    kept = {mode.name for layer in after.layers for mode in layer.recompute}
    return list(
        dict.fromkeys(mode.name for layer in before.layers for mode in layer.recompute if mode.name not in kept)
    )


def _trained_first_stage(plan: PlanProblem, model: Model, name: str) -> Model:
    """Return the model with its first layers together on one stage, up to the first layer that a gradient reaches.

    Raises `BadInput` if none does, or if the others are too few for the devices or are cut in another place by the
    partition given. The message begins with `--for` and `name`, the runtime's.
    """
    found = f"--for {name}: found {model.before_training} frozen layers before the first that trains"
    allowed = f"allowed: a layer that trains on every stage, since {BACKWARD_OF_EVERY_STAGE}"
    if model.before_training == len(model.sequence):
        raise BadInput(f"--for {name}: found frozen layers alone; {allowed}")
    layers, left = list[LayerType](), model.before_training + 1
    for layer in model.layers:
        number = min(left, layer.count)
        left -= number
        layers += [replace(layer, count=1, with_previous=bool(layers) or at > 0) for at in range(number)]
        if number < layer.count:
            layers.append(replace(layer, count=layer.count - number, with_previous=layer.with_previous and not number))
    made = replace(model, layers=tuple(layers))
    if plan.counts is not None and plan.counts[0] <= model.before_training:
        raise BadInput(f"{found}, and a partition with {plan.counts[0]} layers on the first stage; {allowed}")
    every = [(stages, even_counts(model, stages)) for stages in {_stages_of(plan, one) for one in plan.choices}]
    even = [(stages, counts[0]) for stages, counts in every if plan.even and counts is not None]
    if even and all(first <= model.before_training for _, first in even):
        stages, first = min(even)
        raise BadInput(f"{found}, and partition even with {first} layers on the first of {stages} stages; {allowed}")
    if plan.cluster.devices > made.most_stages:
        raise BadInput(f"{found}, and too few behind them for {plan.cluster.devices} devices; {allowed}")
    return made


def _mtp_together(model: Model, with_head: bool) -> Model:
    """Return the model whose multi-token prediction layers must share a stage, with the head if `with_head`."""
    layers: list[LayerType] = []
    for layer in model.layers:
        after_mtp = bool(layers) and role_of(layers[-1].name) is Role.MTP
        role = role_of(layer.name)
        if role is Role.MTP:
            first = replace(layer, count=1, with_previous=layer.with_previous or after_mtp)
            layers += [first, *[replace(first, with_previous=True)] * (layer.count - 1)]
        else:
            layers.append(replace(layer, with_previous=layer.with_previous or (after_mtp and with_head)))
    return replace(model, layers=tuple(layers))
