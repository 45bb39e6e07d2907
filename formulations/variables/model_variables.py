"""Decision variables of the exact model: starts of operations, chosen modes, and the order on every resource."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import islice

from ortools.sat.python import cp_model

from formulations.jobs.jobs import Decision, Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.variables.blocks import blocks_that_gain
from formulations.variables.known_order import KnownOrder
from formulations.variables.literals import Linear, Literal, Truth, negation, refuse_too_long
from formulations.variables.operations import Operation, Operations
from formulations.variables.resource_order import Pair, ResourceOrder
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, F, Pass
from pipesched.problem.quantities import DeviceId, MicrobatchId, StageId

# Beyond this many, order literals cost more than they help; the model then rests on intervals alone.
MOST_LITERALS = 60_000

# Beyond this many overlapped blocks to choose from, a model that rests on intervals leaves them out.
MOST_BLOCKS = 40_000


class Model:
    """A CP-SAT model (`cp`) under construction, with the variables that constraints use.

    Times are in steps, `scale` of them to a tick (see `Jobs`). `operations` stand for the jobs, `start[x]` is the start
    of operation x, `known` the order of operations that needs no variables; operations that do not run may start
    anywhere. The literal `chosen[c][k]` is true if choice c takes option k, `together[f, b]` if a forward and a
    backward run as a block; blocks that gain nothing have none; without `has_all_blocks` no block has one, and the
    model gives no bound. Without order literals `order` is None; devices that are left out have no order, and no limit
    of memory.
    """

    def __init__(
        self,
        jobs: Jobs,
        most_literals: float = MOST_LITERALS,
        devices: Collection[DeviceId] | None = None,
        horizon: TimeSteps | None = None,
        numbered: bool = True,
    ) -> None:
        """Create the variables, with order literals on `devices` (None: all) if they are at most `most_literals`.

        If some operations run in some modes only, order literals are always created. All starts are at most `horizon`
        steps (None: all jobs and lags in sequence, after the last release time). With `numbered` identical
        micro-batches are numbered in the order in which they begin. Raises `TooLong` if CP-SAT's integers cannot
        represent the times.
        """
        self.jobs, self.problem, self.scale = jobs, jobs.problem, jobs.scale
        self.operations = Operations(jobs)
        self.devices = set(range(self.problem.devices) if devices is None else devices)
        self.known = KnownOrder(self.operations, numbered, devices)
        whole = sum(job.steps for job in jobs.jobs) + sum(one.lag for one in jobs.precedences)
        self.horizon = whole + max(jobs.release, default=0) if horizon is None else horizon
        refuse_too_long(self.horizon)
        self.cp = cp_model.CpModel()
        release = jobs.release or (0,) * len(jobs.jobs)
        self.start = {
            x: self.cp.new_int_var(min([release[n] for n in own]), self.horizon, f"S{x}")
            for x, own in self.operations.jobs_of.items()
        }
        self.chosen = [self._options(choice) for choice in jobs.choices]
        self.order: dict[Resource, ResourceOrder] | None = None
        self.together: Mapping[Pair, cp_model.IntVar] = {}
        self.has_all_blocks = not self.problem.network.blocks or self.problem.network.one_task_each
        may_have_blocks = self.problem.network.blocks and self.has_all_blocks
        blocks = blocks_that_gain(self.operations, self.known, self.devices) if may_have_blocks else iter(())
        if self.operations.mode or self.known.open_pairs(self.devices) <= most_literals:
            self._order({pair: pair for pair in blocks})
        else:
            self._blocks_without_order(list(islice(blocks, MOST_BLOCKS + 1)))
        self._partners: dict[Operation, list[tuple[Pair, cp_model.IntVar]]] = {}
        for pair, literal in self.together.items():
            for x in pair:
                self._partners.setdefault(x, []).append((pair, literal))

    def _options(self, choice: Decision) -> list[Truth]:
        """Return a literal for each option of a choice, exactly one of which is true."""
        name = f"C{choice.stage}.{choice.microbatch}"
        if choice.options == 2:
            second = self.cp.new_bool_var(name)
            return [negation(second), second]
        found = [self.cp.new_bool_var(f"{name}={option}") for option in range(choice.options)]
        self.cp.add_exactly_one(found)
        return [*found]

    def _order(self, blocks: dict[Pair, Pair]) -> None:
        either = blocks | {(y, x): pair for (x, y), pair in blocks.items()}
        self.order = {
            where: ResourceOrder(self.cp, self.known, here, either)
            for where, here in self.operations.on.items()
            if where.device in self.devices
        }
        self.together = {pair: literal for order in self.order.values() for pair, literal in order.together.items()}

    def _blocks_without_order(self, pairs: list[Pair]) -> None:
        """Create a literal for each overlapped block in `pairs`, of a model without order literals.

        If the blocks are too many, none is created, and the model then gives no bound.
        """
        if len(pairs) > MOST_BLOCKS:
            self.has_all_blocks = False
        else:
            self.together = {pair: self.cp.new_bool_var("&".join(map(str, pair))) for pair in pairs}

    @property
    def orders(self) -> Collection[ResourceOrder]:
        """The orders of the resources that have order literals; empty in a model without them."""
        return self.order.values() if self.order is not None else ()

    def runs_job(self, n: JobId) -> Truth:
        """Return True, False or a literal that is true if job n runs under the chosen modes."""
        job = self.jobs.jobs[n]
        return True if job.choice is None else self.chosen[job.choice][job.option]

    def runs(self, x: Operation) -> Truth:
        """Return True, False or a literal that is true if the operation runs.

        One that always runs may have length 0.
        """
        return self.runs_job(self.operations.jobs_of[x][0]) if x in self.operations.mode else True

    def where(self, *operations: Operation) -> list[Literal]:
        """Return the literals that must all be true for these operations to run; empty if they always do."""
        return [runs for runs in map(self.runs, operations) if not isinstance(runs, bool)]

    def where_jobs(self, *jobs: JobId) -> list[Literal]:
        return [runs for runs in map(self.runs_job, jobs) if not isinstance(runs, bool)]

    def before(self, x: Operation, y: Operation) -> Truth | None:
        """Return a truth value: x ends before y starts.

        It is True, False or a literal; None if the model does not order the two.
        """
        orders, there = self.order or {}, self.operations.resources(y)
        for where in self.operations.resources(x):
            if where in there and where in orders:
                return orders[where].before(x, y)
        return None

    @cached_property
    def fused(self) -> dict[tuple[StageId, MicrobatchId], Truth]:
        """For each (stage, micro-batch), True, False or a literal that is true if its backward is full (BW)."""
        found: dict[tuple[int, int], Truth] = {}
        for n, job in enumerate(self.jobs.jobs):
            p = job.task.of
            if p.kind is BW:
                found[p[1:]] = self.runs_job(n)
            elif p.kind is B:
                found.setdefault(p[1:], negation(self.runs_job(n)))
        return found

    @cached_property
    def shortest(self) -> dict[Operation, TimeSteps]:
        """For each operation, the least steps that it adds to the work of its resource, for inequalities of idle time.

        0 if the operation runs in some modes only, or may be empty. What a block saves against its two passes is
        subtracted from the forward.
        """
        ops, jobs = self.operations, self.jobs.jobs
        shortest = {
            x: 0 if not ops.always(x) or ops.is_empty_if_fused(x) else min(jobs[n].steps for n in ops.jobs_of[x])
            for x in self.start
        }
        for forward, backward in self.together:
            block = self.block(forward, backward)
            shortest[backward] = min(shortest[backward], block)
            shortest[forward] = min(shortest[forward], max(0, block - self._whole(backward)))
        return shortest

    def block(self, forward: Operation, backward: Operation) -> TimeSteps:
        """Return the duration in steps of an overlapped block of these two passes; KeyError if they may form none."""
        return self._steps_of_block(forward.stage, backward.stage)

    def _steps_of_block(self, forward: StageId, backward: StageId) -> TimeSteps:
        return max(1, self.problem.network.blocks[forward, backward] * self.scale)

    def _whole(self, backward: Operation) -> TimeSteps:
        """Return the duration in steps of the full backward (BW) of a backward operation."""
        return max(1, self.problem.duration(Pass(BW, backward.stage, backward.microbatch)) * self.scale)

    def duration(self, x: Operation) -> Linear:
        """Return the duration of an operation in steps: a number, or an expression of its fused and block literals.

        That of a W is 0 where its backward is fused. Both operations of a block last as long as the block, in which the
        backward is fused. On devices relaxed to delays it is at most the shortest block that can contain the operation.
        """
        alone, partners = self.alone(x), self._partners.get(x)
        if not partners:
            return alone
        base = self.jobs.jobs[self.operations.jobs_of[x][0]].steps if x.role is F else self._whole(x)
        return alone + sum((self.block(*pair) - base) * literal for pair, literal in partners)

    def alone(self, x: Operation) -> Linear:
        """Return the duration of an operation outside any block in steps: a number, or an expression of a literal.

        A B lasts as long as the BW if fused, and its W is then 0. On devices relaxed to delays it is at most the
        shortest block that can contain the operation.
        """
        jobs = self.operations.jobs_of[x]
        steps = {self.jobs.jobs[n].option: self._least_in_block(x, n) for n in jobs}
        if self.operations.is_empty_if_fused(x):
            return steps[0] * self.runs_job(jobs[0])
        if len(jobs) == 1:
            return next(iter(steps.values()))
        return steps[0] + (steps[1] - steps[0]) * self.fused[x.stage, x.microbatch]

    def _least_in_block(self, x: Operation, n: JobId) -> TimeSteps:
        """Return the least duration of job n of operation x, in steps of time.

        It is the job's own duration; on a device whose operations are relaxed to delays, at most the duration of the
        shortest block that can contain the operation.
        """
        p, alone, device = self.jobs.jobs[n].task.of, self.jobs.jobs[n].steps, self.operations.device(x)
        if self.order is None or device in self.devices or not self.problem.network.blocks or p.kind not in (F, BW):
            return alone
        at = 0 if p.kind is F else 1
        blocks = (pair for pair in self.problem.network.blocks if pair[at] == p.stage)
        return min([alone, *(self._steps_of_block(*pair) for pair in blocks)])

    def end(self, x: Operation) -> Linear:
        return self.start[x] + self.duration(x)
