"""Forged certificates of tiny problems, whose optimum is found by trying every order: does the check refuse them?

    python -m benchmarks.forged_evidence [--mutations 10000] [--seed 0] [--write docs/results/forged-evidence.md]

A mutation changes the value, the argument, the device, or the numbers of a certificate's evidence. Then the claim is
either false, above the optimum: the check must refuse it. Or it still is true: the check may find that the changed
evidence proves it, or refuse it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from threading import Event

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from benchmarks.proofs.evidence_mutations import mutated
from benchmarks.proofs.memory_options import exact
from benchmarks.reporting.page import exit_code, machine, show, table
from pipesched.checking.check import ARGUMENTS, OF_PERIODS, check_bound
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import TasksAsStages, relaxation_of
from solver.bounds.saving.certificates import certificates
from solver.cyclic.period_bounds import period_certificates
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.by_device import bounds_by_device
from solver.diagram.joint_weights import bounds_of_joint_weights
from solver.diagram.threshold_bounds import bounds_of_devices, bounds_of_stages
from solver.diagram.threshold_search import ThresholdSearch
from solver.tasks.as_stages import stream_decomposition
from tests.support.exhaustive.optimum import least_value
from tests.support.mode_problems import mode_problem
from tests.support.rows_of_tasks import carried, random_rows, tiny_mirrored
from tests.support.task_brute_force import TooManyOrdersError, optimum, tiny_gathers, tiny_reductions

COMMAND = "python -m benchmarks.forged_evidence --write docs/results/forged-evidence.md"
# Mutations of one certificate; values up to which an exhaustive search of a tiny problem looks; labels of one bound of
# how activations are held.
_EACH, _AT_MOST, _LABELS = 40, 10_000, 100_000
# Those of several streams and of unequal micro-batches.
_NOT_DRAWN = (
    *("stream heads and tails", "stream memory", "memory over time of tasks"),
    "head and tail in order",
)
KINDS = tuple(kind for kind in ARGUMENTS if kind not in _NOT_DRAWN)
_ITERATIONS = "all kinds, of iterations"
_TASKS = "all kinds, of tasks as stages"
_MODES = "decision diagram, of how activations are held"
ROWS = (*KINDS, *(f"{kind}, of periods" for kind in OF_PERIODS), _ITERATIONS, _TASKS, _MODES)


@dataclass
class Tally:
    """Counts by kind of certificate: false claims refused and accepted, true ones with changed evidence likewise."""

    false_refused: Counter[str] = field(default_factory=Counter)
    false_accepted: Counter[str] = field(default_factory=Counter)
    true_refused: Counter[str] = field(default_factory=Counter)
    true_accepted: Counter[str] = field(default_factory=Counter)
    unproved: list[str] = field(default_factory=list)  # genuine certificates that the check refuses

    @property
    def mutations(self) -> int:
        return sum(sum(getattr(self, each.name).values()) for each in fields(self)[:4])


def forge(count: int, seed: int, each: int = _EACH) -> Tally:
    """At least so many mutations of the certificates of random tiny problems, so many of each certificate.

    It goes on until false claims of every row were tried.
    """
    random, tally = Random(seed), Tally()
    kinds = dict.fromkeys(branch.kind for branch in BRANCHES)
    of_kind = [[branch for branch in BRANCHES if branch.kind == kind] for kind in kinds]
    while tally.mutations < count or not all(tally.false_refused[row] + tally.false_accepted[row] for row in ROWS):
        objective = random.choice(objectives())
        if random.random() < 0.3:
            problem = random.choice((tiny_mirrored, mode_problem, mode_problem))(random)
        elif objective.passes is not None:
            problem = random.choice((tiny_gathers, tiny_reductions))(random)
        else:
            problem = replace(draw(random, random.choice(random.choice(of_kind)).likely), objective=objective)
        try:
            best = _least(problem)
        except TooManyOrdersError:
            continue
        if best is not None:
            attack(problem, best, random, tally, each)
    return tally


def _least(problem: Problem) -> Fraction | None:
    """The optimum; of a period, the makespan of one batch: since batches may run in sequence, no period is more."""
    if problem.network.options:
        found = None if why_infeasible(problem) is not None else exact(problem)
        return None if found is None else Fraction(found[0])
    if problem.network.has_collectives or any(stage.tasks for stage in problem.stages):
        return optimum(problem, problem.objective)
    if not problem.objective.repeats:
        return least_value(problem, problem.objective, _AT_MOST)
    if len({len(problem.microbatches_of[chain[0]]) for chain in problem.placement.chains}) > 1:
        return None
    best = least_value(replace(problem, objective=Objective.MAKESPAN), Objective.MAKESPAN, _AT_MOST)
    return None if best is None else best / problem.microbatches


def attack(problem: Problem, best: Fraction, random: Random, tally: Tally, each: int = _EACH) -> None:
    """Mutations of every certificate of a problem with this optimum."""
    of_period = problem.objective.repeats
    kinds = (*KINDS, *OF_PERIODS)
    for genuine in _period_certificates(problem) if of_period else _certificates(problem, best, random):
        row = f"{genuine.kind}, of periods" if of_period else genuine.kind
        row = _ITERATIONS if problem.network.has_collectives else row
        row = _TASKS if isinstance(relaxation_of(genuine.evidence), TasksAsStages) else row
        row = _MODES if problem.network.options else row
        if check_bound(problem, genuine).verdict is not Verdict.VERIFIED:
            tally.unproved.append(f"{genuine} of {problem}")
        for _ in range(each):
            forged = mutated(problem, genuine, best, kinds, random)
            accepted = check_bound(problem, forged).verdict is Verdict.VERIFIED
            if forged.value_ticks > best:
                (tally.false_accepted if accepted else tally.false_refused)[row] += 1
            elif forged.evidence != genuine.evidence:
                (tally.true_accepted if accepted else tally.true_refused)[row] += 1


def _period_certificates(problem: Problem) -> Iterator[Certificate]:
    """The strongest of each kind."""
    known = set[str]()
    for one in period_certificates(problem):
        if one.kind not in known:
            known.add(one.kind)
            yield Certificate(one.kind, simplest(one.value), one.text, one.device, one.evidence)


def _certificates(problem: Problem, best: Fraction, random: Random) -> Iterator[Certificate]:
    if problem.network.options:
        proved = float(max((one.value_ticks for one in certificates(problem, problem.objective)), default=0))
        around = min(proved, float(best) - 1), float(best) + random.choice((0, 1, 20))
        yield from bounds_of_activation_modes(problem, Event(), lambda: around, _LABELS)
        return
    if not problem.network.has_collectives and any(stage.tasks for stage in problem.stages):
        yield from carried(problem, random_rows(random, problem))
        yield from _joint(problem, best, random)
        return
    found = [one for one in certificates(problem, problem.objective) if one.value_ticks > 0]
    if problem.network.has_collectives:
        # Tasks on streams are not covered by every argument.
        yield from (one for one in found if check_bound(problem, one).verdict is not Verdict.NOT_VERIFIED)
        return
    yield from (one for one in found if one.kind in KINDS)
    yield from bounds_of_all_orders(problem, Event(), random.choice((1, 3, 64)))
    near = ceil(best) + random.choice((-1, 0, 1, 20))
    yield from bounds_of_devices(_threshold_search(problem, near, random))
    device = random.randrange(problem.devices)
    yield from bounds_of_stages(_threshold_search(problem, near, random), device)
    yield from _of_more_stages(problem, near, random)
    yield from bounds_by_device(_threshold_search(problem, near, random))


def _joint(problem: Problem, best: Fraction, random: Random) -> Iterator[Certificate]:
    """Bounds in which the weight tasks of a stage hold memory together."""
    own = stream_decomposition(problem)
    if own is not None:
        near = ceil(best) + random.choice((-1, 0, 1, 20))
        stages = [row[0] for row in own.rows]
        yield from map(own.claim, bounds_of_joint_weights(own.plain, stages, Event(), lambda: (near // 2, near)))


def _threshold_search(problem: Problem, near: int, random: Random) -> ThresholdSearch:
    return ThresholdSearch(problem, Event(), lambda: (near // 2, near), random.choice((1, 3, 64)))


def _of_more_stages(problem: Problem, near: int, random: Random) -> Iterator[Certificate]:
    """Certificates of any stages, with completion bounds of any of them: more than the bound itself tries."""
    chains = random.sample(problem.placement.chains, random.randint(1, len(problem.placement.chains)))
    walked = [stage for chain in problem.placement.chains if chain in chains for stage in chain]
    chosen = {*random.sample(walked, random.randint(1, len(walked)))}
    stages = tuple(stage for stage in walked if stage in chosen)
    where, span = problem.placement.stage_device, problem.objective is not Objective.MAKESPAN
    device = random.choice((None, where[random.choice(stages)])) if span else None
    smaller = tuple(s for s in stages if where[s] == device or random.random() < 0.5) or stages[:1]
    evidence = Diagram(stages, random.choice((1, 3, 64)), near, smaller, random.choice((None, 1, 4)), device)
    try:
        yield Certificate(evidence.form, decision_diagram(problem, evidence), "", None, evidence)
    except (NotCoveredError, RefusedEvidenceError):
        return


def markdown(tally: Tally, described: str) -> str:
    """The table of the page, and how many of each kind there were."""
    head = "false claims refused", "false claims accepted", "true, evidence changed: refused", "accepted"
    counts = tally.false_refused, tally.false_accepted, tally.true_refused, tally.true_accepted
    by_kind = ", ".join(f"{kind} {sum(count[kind] for count in counts):,}" for kind in ROWS)
    rows = table(head, [[f"{sum(count.values()):,}" for count in counts]])
    return f"{described}\n\n{rows}\n\n{tally.mutations:,} mutations in all: {by_kind}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Forge, print the table; 1 if the check accepts a false claim or refuses a genuine certificate."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000, help="at least so many (default 10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/forged-evidence.md")
    args = parser.parse_args(arguments)
    tally = forge(args.mutations, args.seed)
    for wrong in tally.unproved:
        print(f"refused though genuine: {wrong}", file=sys.stderr)
    show(args.write, COMMAND, markdown(tally, machine(args.seed, 1, "numba")))
    return 1 if tally.unproved or sum(tally.false_accepted.values()) else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
