"""Times and memory of modules outside the partition, such as an encoder or a shared vocabulary, for bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from pipesched.layers.fixed_module import FixedModule, Joins
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.stage import gradient_lag


@dataclass
class ExtraLoads:
    """Ticks and memory that no partition changes; lists have one number for each device, including a module's own.

    Work of a device for all micro-batches, each pass in one list: `before` precedes its last gradient (it feeds the
    first stage), `between` lies after its first forward and before its last gradient, `after` follows its first
    forward. `head` ticks precede the first stage's first forward, `tail` ticks follow its last gradient, `around` ticks
    lie between the last stage's forward and the backward of the same micro-batch. `memory` is occupied at all times, in
    the file's unit. `norm` ticks lie between all reductions and all optimizer steps (None: a step waits for no norm);
    a norm needs no module. `gathers` and `once` are, for each device with extra stages, the least time of one of them
    to gather its parameters before its passes, and to reduce gradients and step after them; head and tail include their
    own. All of this, transfers and norm too, takes at most `most` ticks if run one after the other.
    """

    before: list[Ticks]
    between: list[Ticks]
    after: list[Ticks]
    memory: list[Fraction]
    head: Ticks = 0
    tail: Ticks = 0
    around: Ticks = 0
    most: Ticks = 0
    norm: Ticks | None = None
    gathers: dict[DeviceId, Ticks] = field(default_factory=dict)
    once: dict[DeviceId, Ticks] = field(default_factory=dict)
    plan: PlanProblem = field(repr=False, kw_only=True)

    @classmethod
    def of(cls, plan: PlanProblem, choice: Choice) -> ExtraLoads:
        """Return the ticks and memory of a plan problem's modules on this placement, and its norm of gradients.

        Without modules all is zero or empty, except for `norm` and `most`, which includes it.
        """
        devices = plan.all_devices.devices
        found = cls([0] * devices, [0] * devices, [0] * devices, [Fraction(0)] * devices, plan=plan)
        # Where nothing trains there is no norm.
        trains = any(not layer.forward_only for layer in plan.model.sequence)
        additions = plan.additions if trains else ()
        norms = [ticks for addition in additions if (ticks := addition.before_steps(plan)) is not None]
        found.norm = sum(norms) if norms else None
        found.most = sum(norms)
        where = choice.on(plan.cluster.devices)
        ends = where.stage_device[where.chains[0][0]], where.stage_device[where.chains[0][-1]]
        for module in plan.modules:
            parts = [part.costs for part in module.parts]
            if module.joins is Joins.FEEDS:
                found._chains(module, ends[0])
            elif module.joins is Joins.PARTS_BEFORE:
                found._parts_before(parts, ends[0])
            else:
                found._parts_after(parts, ends[1])
        return found

    @property
    def by_position(self) -> tuple[list[Ticks], list[Ticks], list[Ticks]]:
        """The lists `before`, `between` and `after`, in this order: ticks of modules by device."""
        return self.before, self.between, self.after

    def load(self, device: DeviceId) -> Ticks:
        """Return the ticks on a device of all passes, for all micro-batches, of modules outside the partition.

        Without what is done once for their parameters: gathers, reductions and optimizer steps. 0 without such modules.
        """
        return self.before[device] + self.between[device] + self.after[device]

    def _chains(self, module: FixedModule, fed: DeviceId) -> None:
        """Add the stages of a module that feeds the first stage, on device `fed`; its chains take passes in turn.

        Sets `head` and `tail`, the ticks before and after the passes of the first stage, except for the span of several
        copies.
        """
        chains, passes = module.chains, self.plan.microbatches // module.serves
        copies = len(chains)
        for copy, chain in enumerate(chains):
            for stage in chain:
                self._runs(stage.device, stage.costs, len(range(copy, passes, copies)))
        if copies > 1 and self.plan.objective.by_device:
            return  # no device begins first and ends last
        first, last = chains[0], chains[(passes - 1) % copies]
        there = [(a.device, b.device) for a, b in pairwise(first)] + [(first[-1].device, fed)]
        back = [(b.device, a.device) for a, b in pairwise(last)] + [(fed, last[-1].device)]
        self.head = self._ticks(first[0].costs.gather)
        self.head += sum(self._ticks(stage.costs.forward) for stage in first) + self._lags(there)
        after_gradient = self._work(last[0].costs) - self._ticks(last[0].costs.forward)
        self.tail = after_gradient + sum(self._gradient(stage.costs) for stage in last[1:])
        self.tail += gradient_lag(last[-1].costs, self._lags(back))
        self.tail += self._after(last[0].costs)

    def _parts_before(self, parts: Sequence[StageCosts], fed: DeviceId) -> None:
        """Add a module's parts, one on each device, that run before the first stage, on device `fed`: an embedding.

        Their forwards precede the first stage's, and their backwards follow its backward.
        """
        for device, costs in enumerate(parts):
            self._runs(device, costs, self.plan.microbatches)
        slowest = max(range(len(parts)), key=lambda device: parts[device].forward)
        ends = [slowest] if self.plan.objective.by_device else range(len(parts))
        ahead = (self._ticks(part.gather + part.forward) for part in parts)
        self.head = max(self.head, max(ahead) + self._joining)
        after_gradient = (
            self._work(parts[d])
            - self._ticks(parts[d].forward)
            + gradient_lag(parts[d], self._lags([(fed, d)]))
            + self._after(parts[d])
            for d in ends
        )
        self.tail = max(self.tail, *after_gradient)

    def _parts_after(self, parts: Sequence[StageCosts], follows: DeviceId) -> None:
        """Add a head's parts, one a device, that run between the forward and the backward of the stage on `follows`.

        Costs are per micro-batch, in the file's unit; loads are ticks of all micro-batches, but `around` of one.
        Collectives among all parts end the forwards, and the gradients, for which the last stage's backward waits.
        """
        m, forwards = self.plan.microbatches, list[int]()
        for device, costs in enumerate(parts):
            forward, gradient = self._ticks(costs.forward), self._gradient(costs)
            forwards.append(forward + self._lags([(follows, device)]))
            self.between[device] += m * (forward + gradient)
            self.after[device] += m * (self._work(costs) - forward - gradient)
            self._add_common(device, costs, m)
        self.around = max(self.around, max(forwards) + max(map(self._gradient, parts)) + 2 * self._joining)

    def _runs(self, device: DeviceId, costs: StageCosts, passes: int) -> None:
        forward = self._ticks(costs.forward)
        self.before[device] += passes * forward
        self.after[device] += passes * (self._work(costs) - forward)
        self._add_common(device, costs, passes)

    def _add_common(self, device: DeviceId, costs: StageCosts, passes: int) -> None:
        self.memory[device] += costs.memory
        backward = max(costs.fused, costs.backward + (costs.weight or 0))
        ahead, after = self._ticks(costs.gather), self._after(costs)
        self.most += passes * (self._ticks(costs.forward + backward) + 4 * self._joining) + ahead + after
        self.gathers[device] = min(ahead, self.gathers.get(device, ahead))
        self.once[device] = min(after, self.once.get(device, after))

    def _after(self, costs: StageCosts) -> Ticks:
        """Return the ticks of all reduction buckets, the norm, and the optimizer step after a stage's last backward."""
        return self._ticks(costs.reduce + costs.step) + (self.norm or 0)

    @property
    def _joining(self) -> Ticks:
        """Ticks of a collective among a module's parts: the longest transfer."""
        return self._ticks(self.plan.all_devices.longest_lag)

    def _lags(self, links: Iterable[tuple[DeviceId, DeviceId]]) -> Ticks:
        return sum(self._ticks(self.plan.all_devices.lag(*link)) for link in links)

    def _work(self, costs: StageCosts) -> Ticks:
        return self._ticks(costs.work)

    def _gradient(self, costs: StageCosts) -> Ticks:
        return self._ticks(min(costs.backward, costs.fused) if self.plan.model.splittable else costs.fused)

    def _ticks(self, time: Fraction) -> Ticks:
        return int(time / self.plan.tick)
