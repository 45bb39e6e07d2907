"""Random plan files of all kinds, and chains of ever narrower ones, whose plans are all among those of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.even import even_counts
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.vocabulary import FreeVocabulary
from pipesched.schedule.microbatch_groups import ORDER, group_sizes, order_of

_NAMES = ("1f1b", "gpipe", "zb-h1", "zbv", "v-half", "dualpipe-v", ORDER, "zb")
_LESS = Fraction(9, 10)


class Link(NamedTuple):
    """A plan problem of a chain, and what it was restricted to after the one before."""

    restriction: str
    problem: PlanProblem


def drawn_plan(random: Random) -> PlanProblem:
    """Two or three devices, equal or of two classes; schedules, recomputation, vocabulary and pieces free or not."""
    devices, split = random.choice((2, 2, 3)), random.random() < 0.6
    moe = _layer(random, "moe", 1.0, split) | {"count": random.randint(2 * devices, 3 * devices)}
    moe["memory"], moe["activation"] = random.choice((0, 1, 3)), random.choice((0.5, 1, 2))
    moe["recompute"] = [{"name": "full", "time": 1, "keeps": 0.1}, {"name": "moe_act", "time": 0.3, "keeps": 0.7}]
    ends = [_layer(random, name, scale, split) for name, scale in (("embedding", 0.3), ("head", 1.6))]
    layers = [ends[0], *([_layer(random, "dense", 0.6, split) | {"count": 2}] * (random.random() < 0.3)), moe, ends[1]]
    document: dict[str, Any] = {"microbatches": random.choice((devices, devices + 2)), "layers": layers}
    needed = sum(one.get("count", 1) * (one["memory"] + 1.2 * devices * one["activation"]) for one in layers) / devices
    room = round(random.uniform(0.6, 1.3) * needed + 3, 1)
    if devices > 2 and random.random() < 0.3:
        first, speed = random.randint(1, devices - 1), random.choice((0.5, 0.8))
        classes: list[dict[str, Any]] = [{"devices": first}, {"devices": devices - first, "speed": speed}]
        document |= {"cluster": [one | {"memory": room * more} for one, more in zip(classes, (1, 1.5), strict=True)]}
        document["decide"] = {"cluster": "free"}
    else:
        document |= {"devices": devices} | ({"memory": {"capacity": room}} if random.random() < 0.7 else {})
    document |= {
        "placement": random.choice(("free", "free", ["v-shape", "linear"], ["interleaved", "linear", "wave"])),
        "chunks": random.choice(([1, 2], [1, 2], [1, 2, 3])),
        "schedule": random.choice(("free", list(_drawn(random, _NAMES, 3)))),
        "transfer": random.choice((0, 0.25)),
        "objective": random.choice(("makespan", "makespan", "span")),
    }
    if document["schedule"] == "free" and random.random() < 0.15:
        document["vocabulary"] = "free"
    elif random.random() < 0.15:
        document["sequence_chunks"] = [1, 2]
    return plan_problem_from(document)


def _layer(random: Random, name: str, scale: float, split: bool) -> dict[str, Any]:
    times = {key: round(scale * random.uniform(0.7, 1.5), 1) for key in ("forward", "backward", "weight")}
    return {"name": name, "memory": random.choice((0, 2)), "activation": 0.3} | {
        key: times[key] * (1 if split else 1 + (key == "backward")) for key in times if split or key != "weight"
    }


def _drawn(random: Random, of: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    return tuple(random.sample(of, random.randint(1, min(most, len(of)))))


def chain(random: Random, problem: PlanProblem, links: int) -> Iterator[Link]:
    """The problem, then each time one restriction more, as many as there are or are asked for."""
    yield Link("as drawn", problem)
    left = [*_RESTRICTIONS]
    while left and links:
        restrict = left.pop(random.randrange(len(left)))
        link = restrict(random, problem)
        if link is not None:
            problem, links = link.problem, links - 1
            yield link


def _recompute(random: Random, plan: PlanProblem) -> Link | None:
    if plan.recompute is not Decide.FREE or plan.recompute_rule is not RecomputeRule.ANY:
        return None
    rules = [Link(f"layers: {rule}", replace(plan, recompute_rule=rule)) for rule in RecomputeRule]
    return random.choice([*_never(plan), *_never(plan), *rules[1:]])


def _never(plan: PlanProblem) -> list[Link]:
    return [Link(f"recompute: {one}", replace(plan, recompute=one)) for one in Decide if one is not Decide.FREE]


def _partition(_: Random, plan: PlanProblem) -> Link | None:
    chains = [choice.on(plan.cluster.devices).chains[0] for choice in plan.choices]
    able = any(even_counts(plan.model, len(stages)) is not None for stages in chains)
    return (
        Link("partition: even", replace(plan, even=True)) if able and FreeVocabulary() not in plan.additions else None
    )


def _placement(random: Random, plan: PlanProblem) -> Link | None:
    if len(plan.choices) == 1:
        return None
    choices = _drawn(random, plan.choices, len(plan.choices) - 1)
    return Link(f"placement: {', '.join(map(str, choices))}", replace(plan, choices=choices))


def _schedules(random: Random, plan: PlanProblem) -> Link | None:
    if FreeVocabulary() in plan.additions or len(plan.schedules) == 1:
        return None
    names = _drawn(random, plan.schedules or _NAMES, len(plan.schedules or _NAMES) - 1)
    m, p = plan.microbatches, plan.cluster.devices
    groups = [order_of(m, p, size) for size in group_sizes(m, p)] if not plan.schedules and ORDER in names else []
    names = tuple(dict.fromkeys((*names, *groups)))
    return Link(f"schedule: {', '.join(names)}", replace(plan, schedules=names))


def _memory(_: Random, plan: PlanProblem) -> Link | None:
    if plan.cluster.capacity is None:
        return None

    def less(room: Fraction) -> Fraction:
        return _LESS * room // plan.resolution * plan.resolution

    clusters = tuple((name, replace(one, capacity=tuple(map(less, one.capacity or ())))) for name, one in plan.clusters)
    cluster = replace(plan.cluster, capacity=tuple(map(less, plan.cluster.capacity)))
    return Link("memory: a tenth less", replace(plan, cluster=cluster, clusters=clusters))


def _cluster(random: Random, plan: PlanProblem) -> Link | None:
    if not plan.clusters:
        return None
    name, cluster = random.choice(plan.clusters)
    return Link(f"cluster: {name}", replace(plan, cluster=cluster, clusters=()))


def _vocabulary(_: Random, plan: PlanProblem) -> Link | None:
    free = FreeVocabulary()
    return Link("vocabulary: one", free.of_settings(plan)) if free in plan.additions else None


_RESTRICTIONS: tuple[Callable[[Random, PlanProblem], Link | None], ...] = (
    _recompute, _partition, _placement, _schedules, _memory, _cluster, _vocabulary, _placement,
)  # fmt: skip
