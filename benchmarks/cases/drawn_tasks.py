"""A suite of problems whose passes are several tasks or that move activations, drawn for a seed.

Exchange between experts, copies to the host, recomputation, sequence chunks, gathered parameters and encoders: what the
passes of `drawn_problems` do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem

Document = dict[str, object]


def drawn_tasks(seed: int) -> tuple[Problem, ...]:
    """An equal number of each kind for every seed; a number of the suite is drawn by itself, and can be drawn alone."""
    kinds = [kind for kind, times in _KINDS for _ in range(times)]
    return tuple(_feasible(f"{seed}-{number}", kind) for number, kind in enumerate(kinds, 1))


def _feasible(name: str, kind: Callable[[Random, int], Document]) -> Problem:
    random = Random(f"drawn tasks {name}")
    while True:
        devices = round(2 * 4 ** random.random())
        document = {
            "devices": devices,
            "microbatches": random.randint(devices, 3 * devices),
            "objective": random.choice(("makespan", "span")),
            **kind(random, devices),
        }
        described = "{} {} p={devices} m={microbatches}".format(name, kind.__name__[1:], **document)
        problem = problem_from({"name": described, **document}, described)
        if why_infeasible(problem) is None:
            return problem


def _exchange(random: Random, devices: int) -> Document:
    """Layers of experts: tokens go to them and come back on a stream of their own, around the passes' own tasks."""
    share = random.uniform(0.2, 1.2)  # of the exchange in the computation between

    def task(name: str, time: float, **more: str) -> Document:
        return {"name": name, "time": round(time * random.uniform(0.8, 1.2), 1), **more}

    def there(name: str) -> Document:
        return task(name, 4 * share, on="comm")

    placement = random.choice(("linear", "v-shape", "interleaved"))
    return {
        "streams": ["compute", "comm"],
        "placement": placement,
        **({"chunks": 2} if placement == "interleaved" else {}),
        "tasks": {
            "forward": [
                task("attn", 4),
                there("send"),
                task("mlp", 6),
                there("get"),
            ],
            "backward": [
                there("get"),
                task("mlp", 6),
                there("send"),
                task("attn", 6),
            ],
            "weight": [task("mlp-w", 6, after="mlp"), task("attn-w", 3, after="attn")],
        },
        "times": {"transfer": random.choice((0, 1, 3))},
        "memory": {
            "activation": 1,
            "capacity": round(random.uniform(0.5, 1.5) * devices * (1 if placement == "linear" else 2), 1),
        },
    }


def _saving(random: Random, devices: int, *, copies: bool, again: bool) -> Document:
    memory: Document = {"activation": 1, "capacity": round(max(1.0, random.uniform(0.3, 0.8) * devices), 1)}
    decide: Document = {}
    if copies:
        length = random.randint(4, 20)
        memory["offload"] = {"out": length, "in": length, "on": random.choice(("copy", ["d2h", "h2d"]))}
        decide["offload"] = "free"
    if again:
        memory["recompute"] = [
            {"name": "full", "time": 10, "keeps": 0.1},
            {"name": "some", "time": random.randint(2, 5), "keeps": 0.6},
        ]
        decide["recompute"] = "free"
    return {"times": _times(random), "memory": {**memory, "decide": decide}}


def _offload(random: Random, devices: int) -> Document:
    return _saving(random, devices, copies=True, again=False)


def _recompute(random: Random, devices: int) -> Document:
    return _saving(random, devices, copies=False, again=True)


def _both(random: Random, devices: int) -> Document:
    return _saving(random, devices, copies=True, again=True)


def _chunks(random: Random, devices: int) -> Document:
    """Pieces of sequences, later ones longer by what is before them."""
    pieces, step = random.choice((2, 4)), random.randint(0, 3)
    back = random.randint(2 * step, 2 * step + 2)
    return {
        "microbatches": random.randint(1, devices),
        "sequence_chunks": pieces,
        "times": {
            "forward": {"first": 8, "each_earlier": step},
            "backward": {"first": 14, "each_earlier": back},
            "transfer": random.choice((0, 1)),
        },
        "memory": {"activation": 1, "capacity": round(random.uniform(0.6, 1.5) * (devices + pieces), 1)},
    }


def _gathers(random: Random, devices: int) -> Document:
    """Parameters of stages gathered before use and given back, as with fully sharded data parallelism."""
    return {
        "placement": "interleaved",
        "chunks": 2,
        "times": {"forward": 5, "backward": random.randint(8, 12), "transfer": random.choice((0, 1))},
        "memory": {"activation": 1, "capacity": round(random.uniform(1.2, 2.5) * devices + 3, 1)},
        "parameters": {"gather": {"time": random.randint(1, 6), "on": "dp", "memory": 3, "keep": "free"}},
        "objective": "iteration",
    }


def _modules(random: Random, devices: int) -> Document:
    """An encoder on the devices of the trunk, each of whose passes serves two micro-batches."""
    return {
        "microbatches": 2 * random.randint(devices // 2, devices),
        "times": {"forward": 10, "backward": 20, "transfer": 1},
        "memory": {"activation": 3, "capacity": round(random.uniform(3, 5) * devices + 3, 1)},
        "modules": {
            "vision": {
                "placement": list(range(devices)),
                "serves": 2,
                "times": {"forward": random.randint(2, 5), "backward": random.randint(4, 10), "transfer": 1},
                "memory": {"activation": 0.75},
            }
        },
    }


def _times(random: Random) -> Document:
    back = random.randint(8, 12)
    return {
        "forward": 10,
        "backward": back,
        "weight": random.randint(back // 2, back),
        "transfer": random.choice((0, 1)),
    }


_KINDS = ((_exchange, 6), (_offload, 3), (_recompute, 3), (_both, 2), (_chunks, 3), (_gathers, 2), (_modules, 1))
