"""The stages of each device and path lengths between stages as expressions, from which rows of bounds are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from formulations.partition.partition_model import PartitionModel
from formulations.partition.stage_terms import ChainPosition, Linear, StageTerms
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Choice
from pipesched.problem.quantities import DeviceId, Ticks


@dataclass(frozen=True)
class PathLengths:
    """Least path lengths in ticks for each stage k of a chain, by its position, as expressions of a partition.

    `head[k]` is from the start to the stage's first forward, `tail[k]` from the end of its last gradient to the end,
    `around[k]` from the end of a forward of the stage to the earliest start of the same micro-batch's backward.
    """

    head: list[Linear]
    tail: list[Linear]
    around: list[Linear]


class ChainPaths:
    """A partition's times and memory by device of the placement `choice`, and path lengths if it is `one_chain`.

    Expressions are in the variables of `model`, to which it adds variables and rows. `longest` is an upper bound on any
    path in ticks, 0 with several chains.
    """

    def __init__(self, model: PartitionModel, choice: Choice) -> None:
        plan = model.plan
        self.model, self.plan, self._choice = model, plan, choice
        self.placement = choice.on(plan.cluster.devices)
        self.chains = self.placement.chains
        self.one_chain = len(self.chains) == 1
        self._least: dict[str, Linear] = {}
        own, every = plan.model.parameters, plan.model.sequence
        time = own.added + sum((one.gather + one.reduce + one.step for one in every), Fraction(0))
        memory = (own.gather.memory if own.gather else 0) + sum((one.gathered for one in every), Fraction(0))
        slowest = max(plan.slowness_of_places(self.placement))
        steps = (own.step or 0) * self.placement.stages + sum((one.step for one in every), Fraction(0))
        self._most_steps = int(steps * slowest / plan.tick)
        norm = 0 if model.extra.norm is None else model.extra.norm + self._most_steps
        # No stage's time and memory for its parameters exceed these, nor with a norm the longest step of all devices.
        self._most = max(int(time * slowest / plan.tick) + norm, int(memory / model.step), model.extra.most)
        layers = plan.model.sequence
        work = sum((_longest(layer) for layer in layers), Fraction(0)) / plan.tick
        overhead = (plan.model.forward_overhead + plan.model.backward_overhead) * len(self.chains[0]) / plan.tick
        # No path through the stages and back is longer.
        lags = sum(map(sum, self._lags())) + model.extra.head + model.extra.tail + model.extra.around
        self.longest = int((work + overhead) * slowest) + lags if self.one_chain else 0

    def positions(self, device: DeviceId) -> tuple[ChainPosition, ...]:
        """Return the positions in its chain (0: first) of each stage of a device."""
        length = len(self.chains[0])
        return tuple(stage % length for stage in self.placement.stages_of[device])

    def static(self, device: DeviceId) -> Linear:
        """Return the memory of a device, in steps, that is in use whenever a pass takes some.

        It is the memory of the device's layers, and the parameters of the stage that gathers least.
        """
        return self.layers(device) + self.least(device, f"gathered{device}", lambda terms: terms.gathered)

    def layers(self, device: DeviceId) -> Linear:
        """Return the memory of a device's layers, which is in use at all times, in steps of the partition model."""
        return sum(self.model.terms[k].memory for k in self.positions(device))

    def least(
        self,
        device: DeviceId,
        name: str,
        of: Callable[[StageTerms], Linear],
        extra: Mapping[DeviceId, Ticks] | None = None,
    ) -> Linear:
        """Return the least value of a term, such as the ticks of a gather, over the stages of a device.

        `of(terms)` returns the term of a stage, and `extra` has a further value for each device with such work outside
        of the partition. The result is the term itself if there is only one, the least of several numbers, or else a
        variable, called `name`, which later calls with this name return again; 0 for a device that has none.
        """
        own = [of(self.model.terms[k]) for k in self.positions(device)]
        own += [extra[device]] if extra and device in extra else []
        if len(own) <= 1 or all(isinstance(each, int) for each in own):
            return min(own, default=0)
        if name not in self._least:
            self._least[name] = self.model.cp.new_int_var(0, self._most, name)
            self.model.cp.add_min_equality(self._least[name], own)
        return self._least[name]

    def longest_step(self) -> Linear:
        """Return a variable that is at least the ticks of all optimizer steps of a device, for each device."""
        found = self.model.cp.new_int_var(0, self._most_steps, "longest step")
        for device in range(self.placement.devices):
            self.model.cp.add(found >= sum(self.model.terms[k].step for k in self.positions(device)))
        return found

    def paths(self) -> PathLengths:
        """Return the path lengths of the chain, each as a variable of its own, so that rows stay short.

        Only for a placement with one chain. Paths are those of a micro-batch's first piece, whose forward is the first
        on a device and whose backward the last.
        """
        lags = self._lags()
        stages, terms = range(len(self.chains[0])), self.model.pieces[0]
        extra = self.model.extra
        head: list[Linear] = [extra.head]
        back: list[Linear] = [extra.tail]
        for k in stages[:-1]:
            head.append(self.named(f"head{k + 1}", head[-1] + terms[k].forward + lags[k][0], self.longest))
            # The last backward, on the first stage, runs to the end of its W, unless something follows its gradient.
            last = terms[k].least_backward if k == 0 and not extra.tail else terms[k].gradient
            back.append(self.named(f"tail{k + 1}", back[-1] + last + lags[k][1], self.longest))
        around: list[Linear] = [extra.around]
        for k in reversed(stages[:-1]):
            there = terms[k + 1].forward + terms[k + 1].gradient + sum(lags[k])
            around.insert(0, self.named(f"around{k}", around[0] + there, self.longest))
        return PathLengths(head, back, around)

    def named(self, name: str, expression: Linear, most: int) -> Linear:
        """Return a new variable that equals the expression, and with it restrict the expression to 0 to `most`."""
        variable = self.model.cp.new_int_var(0, most, name)
        self.model.cp.add(variable == expression)
        return variable

    def _lags(self) -> list[tuple[Ticks, Ticks]]:
        """Return for each stage but the last the least ticks of a transfer to the next, and of the gradient back."""
        return self.plan.least_lags(self._choice)


def _longest(layer: LayerType) -> Fraction:
    """Return a layer's forward plus its longest backward, including recomputation, in the file's time unit."""
    again = max((mode.time for mode in layer.recompute), default=Fraction(0))
    return layer.forward + max(layer.full_backward, layer.backward + (layer.weight or 0)) + again
