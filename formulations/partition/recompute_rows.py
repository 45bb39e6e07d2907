"""Rows that restrict which layers may be recomputed together, by the rule of a runtime (`RecomputeRule`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from formulations.partition.stage_terms import ChainPosition, Linear
from pipesched.layers.layer import LayerType
from pipesched.layers.recompute_rule import FULL, ROLES, RecomputeRule, modules_of, selections
from pipesched.layers.roles import Role, role_of

# For one stage: a number for each run, by its index.
ByRun = Mapping[int, Linear] | Sequence[Linear]
# For one stage: the recomputed layers by layer type and mode.
Numbers = Mapping[tuple[str, str], Linear]


class RecomputeRows:
    """Rows for the recomputed layers of a partition's stages, which `add` adds to the model `cp`.

    `runs` are the model's runs of equal layers, `on_stage[k][r]` is the number of layers of run r on stage k,
    `numbers[k]` the number recomputed there by layer type and mode: variables if `free`, otherwise all layers of a
    type.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        runs: Sequence[LayerType],
        on_stage: Sequence[Sequence[Linear]],
        numbers: Sequence[Numbers],
        free: bool,
    ) -> None:
        self._cp, self._runs, self._on_stage, self._numbers, self._free = cp, runs, on_stage, numbers, free
        self._own = [r for r, run in enumerate(runs) if role_of(run.name) in ROLES]
        self._full = [self._by_run(k) for k in range(len(numbers))]

    def add(self, rule: RecomputeRule) -> None:
        """Add the rows of a rule; they allow the partitions to which `why_not_expressible` has no objection."""
        for numbers in self._numbers:
            for (name, mode), number in numbers.items():
                known = mode in FULL or (rule is RecomputeRule.SAME and modules_of(mode))
                if role_of(name) not in ROLES or not known:
                    self._cp.add(number == 0)
        if rule is RecomputeRule.ALL:
            self._all_or_none()
            return
        for k in range(len(self._numbers)):
            self._first(k)
        if rule is RecomputeRule.SAME:
            self._same()

    def _by_run(self, k: ChainPosition) -> dict[int, Linear]:
        """Return, by index of a transformer or multi-token-prediction run, its layers fully recomputed on stage k."""
        found: dict[int, Linear] = {}
        for name in dict.fromkeys(self._runs[r].name for r in self._own):
            own = [r for r in self._own if self._runs[r].name == name]
            total = sum(self._numbers[k].get((name, mode), 0) for mode in FULL)
            if len(own) == 1 or isinstance(total, int):
                found |= dict.fromkeys(own, total)
            elif not self._free:
                found |= {r: self._on_stage[k][r] for r in own}
            else:
                each = {r: self._cp.new_int_var(0, self._runs[r].count, f"whole{k}.{r}") for r in own}
                for r, number in each.items():
                    self._cp.add(number <= self._on_stage[k][r])
                self._cp.add(sum(each.values()) == total)
                found |= each
        return found

    def _first(self, k: ChainPosition) -> None:
        """Require on stage k that a layer is recomputed only if all layers before it on the stage are."""
        before: cp_model.IntVar | None = None
        for r in self._own:
            number, on_stage = self._full[k][r], self._on_stage[k][r]
            if before is not None:
                self._cp.add(number <= self._runs[r].count * before)
            whole = self._cp.new_bool_var(f"all{k}.{r}")
            self._cp.add(number == on_stage).only_enforce_if(whole)
            if before is not None:
                self._cp.add_implication(whole, before)
            before = whole

    def _all_or_none(self) -> None:
        """Require that every layer of the model is recomputed in full, or none is."""
        every = self._cp.new_bool_var("every layer")
        for k, numbers in enumerate(self._numbers):
            for name in self._names:
                number = sum(numbers.get((name, mode), 0) for mode in FULL)
                self._cp.add(number == self._layers_of(k, name)).only_enforce_if(every)
                self._cp.add(number == 0).only_enforce_if(~every)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(self._runs[r].name for r in self._own))

    def _layers_of(self, k: ChainPosition, name: str) -> Linear:
        return sum(self._on_stage[k][r] for r in self._own if self._runs[r].name == name)

    def _selected(self) -> cp_model.IntVar:
        """Add the option that one list of modules is recomputed in all layers.

        Return the literal that is true if it is used.
        """
        lists = selections([self._runs[r] for r in self._own])
        literals = [self._cp.new_bool_var(f"modules{number}") for number in range(len(lists))]
        some = self._cp.new_bool_var("modules")
        self._cp.add(sum(literals) == some)
        for k, numbers in enumerate(self._numbers):
            for (name, mode), number in numbers.items():
                if name not in self._names or not modules_of(mode):
                    continue
                for selection, literal in zip(lists, literals, strict=True):
                    wanted = self._layers_of(k, name) if selection.get(name) == mode else 0
                    self._cp.add(number == wanted).only_enforce_if(literal)
                self._cp.add(number == 0).only_enforce_if(~some)
        return some

    def _same(self) -> None:
        """Require that all stages recompute alike: as many first layers each, all layers, or one list of modules.

        With one number for all stages no multi-token-prediction layer is recomputed; a list of modules applies to all
        layers.
        """
        some = self._selected()
        everything = self._cp.new_bool_var("everything")
        most = sum(self._runs[r].count for r in self._own)
        common = self._cp.new_int_var(0, most, "layers recomputed")
        self._cp.add(common == 0).only_enforce_if(some)
        self._cp.add_implication(some, ~everything)
        for k in range(len(self._numbers)):
            layers, on_stage = self._of(k, Role.TRANSFORMER, self._full), self._of(k, Role.TRANSFORMER, self._on_stage)
            fewer = self._cp.new_bool_var(f"fewer{k}")
            self._cp.add(layers <= common)
            self._cp.add(layers == common).only_enforce_if(~fewer)
            self._cp.add(layers == on_stage).only_enforce_if(fewer)
            mtp = self._of(k, Role.MTP, self._full)
            self._cp.add(layers == on_stage).only_enforce_if(everything)
            self._cp.add(mtp == self._of(k, Role.MTP, self._on_stage)).only_enforce_if(everything)
            self._cp.add(mtp == 0).only_enforce_if(~everything)

    def _of(self, k: ChainPosition, role: Role, numbers: Sequence[ByRun]) -> Linear:
        """Return the sum, over the runs of a role, of the numbers of stage k."""
        return sum(numbers[k][r] for r in self._own if role_of(self._runs[r].name) is role)
