"""States of iterations under way, at random, and the least end of what remains by trying every order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem.device_resources import Pool
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.state import Ran, State
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem, random_order
from tests.support.piece_problems import random_sequence

_SHAPES = (
    (1, {}, 3),
    (2, {}, 2),
    (3, {}, 2),
    (1, {"placement": "v-shape"}, 2),
    (2, {"placement": [0, 1, 0]}, 2),
    (2, {"placement": "bidirectional"}, 2),
)


def tiny_state(random: Random) -> tuple[Problem, State]:
    """A random order of a tiny problem, run for a while, then times and transfers that have changed."""
    devices, keys, microbatches = random.choice(_SHAPES)
    pieces = {"sequence_chunks": 2} if random.random() < 0.3 else {}
    microbatches = microbatches if not pieces or keys.get("placement") == "bidirectional" else 1
    split = not pieces and random.random() < 0.5

    def times() -> dict[str, object]:
        found: dict[str, object] = {key: random.randint(0, 4) for key in ("forward", "backward", "transfer")}
        return found | ({"weight": random.randint(0, 3), "fused": random.randint(0, 6)} if split else {})

    memory: dict[str, object] = {"activation": random.randint(1, 2)}
    memory |= {"kept_for_later": random.randint(0, 1)} if pieces else {}
    memory |= {"freed_by_backward": random.choice((0, 1, -1))} if split else {}
    keys = keys | pieces
    before = problem(devices, microbatches, times=times(), memory=memory, **keys)
    order = random_sequence(before, random) if pieces else random_order(before, random)
    timeline = simulate(before, order)
    now = random.randint(0, measure(timeline).makespan)
    ran = {p: Ran(timeline.start(p), timeline.end(p)) for p in order.passes() if timeline.start(p) <= now}
    changed = problem(devices, microbatches, times=times(), memory=memory, **keys)
    if random.random() < 0.7:
        peaks = measure(timeline).peak_memory
        changed = replace(changed, pools=tuple(Pool(peak + random.randint(0, 1)) for peak in peaks))
    return changed, State(now, ran)


def least_end(one: Problem, state: State, most: int = 200_000) -> int | None:
    """The least end of all orders of what remains, in every mode; None if memory lets none run to its end.

    ValueError where there are more than `most` beginnings of orders.
    """
    where, chain_of = one.placement.stage_device, {s: c for c in one.placement.chains for s in c}
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    best: int | None = None
    tried = 0

    def lag(low: int, high: int, down: bool) -> int:
        a, b = (where[low], where[high]) if down else (where[high], where[low])
        return 0 if a == b else one.stages[low].transfer + (one.links[a][b] if one.links else 0)

    def ticks(p: Pass) -> int:
        own = one.stages[p.stage]
        return {F: own.forward, B: own.backward, W: own.weight or 0, BW: own.fused}[p.kind]

    def backward(done: dict[Pass, int], stage: int, j: int) -> int | None:
        return next((done[p] for p in (Pass(B, stage, j), Pass(BW, stage, j)) if p in done), None)

    def begins(p: Pass, done: dict[Pass, int]) -> int | None:
        """When all that a pass needs is there; None before that has been placed."""
        walk, needs = chain_of[p.stage], list[int | None]()
        at = walk.index(p.stage)
        if p.kind is F:
            if at:
                end = done.get(Pass(F, walk[at - 1], p.microbatch))
                needs.append(None if end is None else end + lag(walk[at - 1], p.stage, True))
        elif p.kind is W:
            needs.append(done.get(Pass(B, *p[1:])))
        else:
            needs.append(done.get(Pass(F, *p[1:])))
            if at + 1 < len(walk):
                end = backward(done, walk[at + 1], p.microbatch)
                needs.append(None if end is None else end + lag(p.stage, walk[at + 1], False))
        for early, late, backwards, *_ in one.stage_arcs:
            if late == p.stage and p.kind is not W and backwards == (p.kind is not F):
                i = one.microbatches_of[early][one.microbatches_of[late].index(p.microbatch)]
                needs.append(backward(done, early, i) if backwards else done.get(Pass(F, early, i)))
        known = [end for end in needs if end is not None]
        return None if len(known) < len(needs) else max([state.now, *known])

    def change(p: Pass) -> tuple[int, int]:
        own = one.stages[p.stage]
        if p.kind is F:
            return own.activation + own.lent, own.activation + own.lent
        if p.kind is BW:
            return 0, -own.activation - own.collected
        if p.kind is B:
            return max(0, -own.freed), -own.freed - own.collected
        return 0, own.freed - own.activation

    def able(done: dict[Pass, int]) -> list[Pass]:
        found = []
        for s, j in pairs:
            kinds = {p.kind for p in (Pass(kind, s, j) for kind in (F, B, W, BW)) if p in done}
            wanted = [F] if not kinds else [BW, *([B] if one.splittable else [])] if kinds == {F} else []
            found += [Pass(kind, s, j) for kind in (wanted or ([W] if kinds == {F, B} else []))]
        return found

    def go_on(done: dict[Pass, int], free: list[int], held: list[int]) -> None:
        nonlocal best, tried
        tried += 1
        if tried > most:
            raise ValueError("too many orders")
        if best is not None and max(done.values(), default=0) >= best:
            return
        ready = able(done)
        if not ready:
            best = max(done.values(), default=0)
            return
        for p in ready:
            start, device = begins(p, done), where[p.stage]
            taken, kept = change(p)
            room = one.room[device]
            if start is None or (room is not None and taken > 0 and held[device] + taken > room):
                continue
            end = max(start, free[device]) + ticks(p)
            more = {d: end if d == device else free[d] for d in range(one.devices)}
            level = [h + (kept if d == device else 0) for d, h in enumerate(held)]
            go_on(done | {p: end}, list(more.values()), level)

    free, held = [state.now] * one.devices, [0] * one.devices
    for p, (_, end) in state.ran.items():
        free[where[p.stage]] = max(free[where[p.stage]], end)
        held[where[p.stage]] += change(p)[1]
    go_on({p: end for p, (_, end) in state.ran.items()}, free, held)
    return best
