"""Variables of a partition: where the stages of a chain begin, and how many layers are recomputed on each.

Consecutive equal layers form a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil

from ortools.sat.python import cp_model

from formulations.partition.extra_loads import ExtraLoads
from formulations.partition.recompute_rows import RecomputeRows
from formulations.partition.stage_terms import ChainPosition, Linear, StageLayers, StageTerms
from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.quantities import StageId

# A device's memory is counted in no more steps than this: CP-SAT's presolve was seen to lose solutions of models whose
# numbers reach 10**12.
MOST_STEPS = 2**22


class PartitionModel:
    """CP-SAT variables of a partition of a model's layers into the stages of a chain of the placement `choice`.

    They are in the model `cp`. `begin[k][r]` layers of run r (an index in `runs`) lie before stage k, or for the last k
    before the end of the chain; `recomputed[k][kind, mode]` layers of stage k are recomputed, by name of layer type and
    mode. Memory is counted in steps of `step`, an amount in the file's unit. Where these are coarser than the
    problem's, demands are rounded down and `capacity` up: every partition that fits the memory is included, and some
    that exceed it by less than a step per layer. `capacity` is by device, less what modules occupy (empty: unlimited),
    and `extra` has the loads of modules. `terms[k]` are those of stage k of a chain and a micro-batch, `pieces[j][k]`
    those of its j-th piece.
    """

    def __init__(self, plan: PlanProblem, choice: Choice) -> None:
        placement = choice.on(plan.cluster.devices)
        stages = len(placement.chains[0])
        self.plan, self.stages, self.cp = plan, stages, cp_model.CpModel()
        largest = max(plan.cluster.capacity or (Fraction(0),)) / plan.resolution
        self.step = plan.resolution * max(1, ceil(largest / MOST_STEPS))
        self.extra = ExtraLoads.of(plan, choice)
        free = zip(plan.cluster.capacity or (), self.extra.memory, strict=False)
        self.capacity = [ceil((room - extra) / self.step) for room, extra in free]
        self.runs = plan.model.layers
        self._whole: list[tuple[cp_model.IntVar, cp_model.IntVar, int]] = []
        self._saved: dict[tuple[int, ...], cp_model.IntVar] = {}
        self.begin = [self._begin(k) for k in range(stages + 1)]
        self._in_order()
        self.recomputed = [self._recomputed(k) for k in range(stages)]
        self._follow_rule()
        slowness = plan.slowness_of_places(placement)
        layers = [
            StageLayers(self._layers_on(k), self.recomputed[k], slowness[k], k == stages - 1) for k in range(stages)
        ]
        models = [piece.model for piece in plan.pieces_of(choice)]
        self.pieces = [[own.terms(plan, model, self.step, len(models)) for own in layers] for model in models]
        whole = [StageTerms.of_all(own) for own in zip(*self.pieces, strict=True)]
        self.terms = self.pieces[0] if len(models) == 1 else whole
        if plan.counts is not None:
            for k, count in enumerate(plan.counts):
                self.cp.add(sum(self._layers_on(k)) == count)

    def needs(self, chain: Sequence[ChainPosition]) -> Iterator[Linear]:
        """Yield the memory that one micro-batch needs on a device in addition to its layers, as expressions.

        `chain`: the device's stages of a chain, in order. There is one level for each stage, at the start of its
        forward or backward: activations of the stages so far, and gathered parameters.
        """
        gather = self.plan.model.parameters.gather
        for at, k in enumerate(chain):
            needed = sum(self.terms[j].activation for j in chain[: at + 1]) + self.terms[k].gathered
            if gather is not None and gather.once:
                # Gathered once, parameters stay from the first forward to the last backward.
                needed += sum(self.terms[j].gathered_to_backward for j in chain[:at])
            yield needed

    def layers_of(self, k: ChainPosition, names: Collection[str]) -> Linear:
        """Return the number of layers on stage k whose name is in `names`."""
        runs_and_counts = zip(self.runs, self._layers_on(k), strict=True)
        return sum(number for run, number in runs_and_counts if run.name in names)

    def of_stage(self, stage: StageId) -> StageTerms:
        """Return times and memory, for one piece of a micro-batch, of a stage given by its number in the problem.

        Of n pieces each has its own stage there: stage s of the placement is, for piece j, stage n s + j.
        """
        where, piece = divmod(stage, len(self.pieces))
        return self.pieces[piece][where % self.stages]

    def saved_by_block(self, forward: StageId, backward: StageId) -> Linear:
        """Return the most ticks that an overlapped block of two stages' passes saves against the two in sequence.

        Stages are given by their numbers in the problem.
        """
        pair = tuple(sorted({forward % self.stages, backward % self.stages}))
        own = [self.terms[k].block_saves for k in pair]
        if len(own) == 1 or all(isinstance(one, int) for one in own):
            return min(own)
        if pair not in self._saved:
            slowest = max(self.plan.cluster.slowness or (Fraction(1),))
            most = sum((layer.saved_in_block for layer in self.plan.model.sequence), Fraction(0))
            self._saved[pair] = self.cp.new_int_var(0, ceil(most * slowest / self.plan.tick), f"saved{pair}")
            self.cp.add_min_equality(self._saved[pair], own)
        return self._saved[pair]

    def _begin(self, k: ChainPosition) -> list[Linear]:
        """Return, by run, the number of its layers before stage k: a variable, or a number at either end of the chain.

        Posts that a run begins only where the one before it has ended, and that the first layer of a run is on the
        stage of the layer before it where it must be (`with_previous`).
        """
        if k in (0, self.stages):
            return [0 if k == 0 else run.count for run in self.runs]
        found: list[Linear] = []
        whole: cp_model.IntVar | None = None
        for r, run in enumerate(self.runs):
            number = self.cp.new_int_var(0, run.count, f"begin{k}.{r}")
            if run.count == 1 and not run.with_previous:
                # For a run of one layer the number itself says if the whole run is before the stage.
                if whole is not None:
                    self.cp.add(number <= whole)
                found.append(number)
                whole = number
                continue
            all_of_it = self.cp.new_bool_var(f"whole{k}.{r}")
            self._whole.append((all_of_it, number, run.count))
            self.cp.add(number == run.count).only_enforce_if(all_of_it)
            self.cp.add(number <= run.count - 1).only_enforce_if(~all_of_it)
            if whole is not None:
                # A run begins where the one before it has ended.
                self.cp.add(number <= run.count * whole)
                if run.with_previous:
                    self.cp.add(number >= whole)
            whole = all_of_it
            found.append(number)
        return found

    def _in_order(self) -> None:
        for k in range(self.stages):
            for before, after in zip(self.begin[k], self.begin[k + 1], strict=True):
                self.cp.add(before <= after)
            self.cp.add(sum(self._layers_on(k)) >= self.plan.model.least_layers)

    def _layers_on(self, k: ChainPosition) -> list[Linear]:
        """Return, for each run of equal consecutive layers, how many of them are on stage k (a linear expression)."""
        return [after - before for before, after in zip(self.begin[k], self.begin[k + 1], strict=True)]

    def _of_kind(self, k: ChainPosition, kind: LayerType) -> Linear:
        return self.layers_of(k, (kind.name,))

    def _recomputed(self, k: ChainPosition) -> dict[tuple[str, str], Linear]:
        if self.plan.recompute is Decide.NEVER:
            return {}
        found: dict[tuple[str, str], Linear] = {}
        for kind in (kind for kind in self.plan.model.kinds if kind.recompute):
            layers = self._of_kind(k, kind)
            if self.plan.recompute is Decide.ALWAYS:
                found[kind.name, kind.recompute[0].name] = layers
                continue
            most = sum(run.count for run in self.runs if run.name == kind.name)
            numbers = [self.cp.new_int_var(0, most, f"{kind.name}.{mode.name}.{k}") for mode in kind.recompute]
            self.cp.add(sum(numbers) <= layers)
            found |= {(kind.name, mode.name): number for mode, number in zip(kind.recompute, numbers, strict=True)}
        return found

    def _follow_rule(self) -> None:
        plan = self.plan
        if plan.recompute_rule is not RecomputeRule.ANY and plan.recompute is not Decide.NEVER:
            counts = [self._layers_on(k) for k in range(self.stages)]
            rows = RecomputeRows(self.cp, self.runs, counts, self.recomputed, plan.recompute is Decide.FREE)
            rows.add(plan.recompute_rule)

    def partition(self, value: Callable[[Linear], int]) -> Partition:
        """Return the partition of a solution; `value` returns the value of an expression in it."""
        counts = tuple(value(sum(self._layers_on(k))) for k in range(self.stages))
        recompute = tuple(
            tuple(Recomputed(*names, value(number)) for names, number in by_mode.items() if value(number))
            for by_mode in self.recomputed
        )
        return Partition(counts, recompute if any(recompute) else ())

    def hint(self, partition: Partition) -> None:
        """Give CP-SAT this partition as a hint, in place of earlier hints."""
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        values = {}
        for variable, number in self.values_of(partition):
            self.cp.add_hint(variable, number)
            values[variable.index] = number
        for literal, variable, whole in self._whole:
            self.cp.add_hint(literal, values[variable.index] == whole)

    def values_of(self, partition: Partition) -> Iterator[tuple[cp_model.IntVar, int]]:
        """Yield every variable that distinguishes partitions, with its value in this partition."""
        for k, numbers in enumerate(self._begins(partition)):
            for variable, number in zip(self.begin[k], numbers, strict=True):
                if isinstance(variable, cp_model.IntVar):
                    yield variable, number
        if self.plan.recompute is not Decide.FREE:
            return
        for k, by_mode in enumerate(self.recomputed):
            known: Mapping[tuple[str, str], int] = {one[:2]: one[2] for one in partition.recomputed_on(k)}
            for names, variable in by_mode.items():
                if isinstance(variable, cp_model.IntVar):
                    yield variable, known.get(names, 0)

    def _begins(self, partition: Partition) -> list[Sequence[int]]:
        """Return, for every stage and for the end of the chain, the number of layers of each run before it."""
        found: list[Sequence[int]] = []
        for layers in (*partition.ranges(), range(sum(partition.counts), 0)):
            left, numbers = layers.start, []
            for run in self.runs:
                numbers.append(min(left, run.count))
                left -= numbers[-1]
            found.append(numbers)
        return found
