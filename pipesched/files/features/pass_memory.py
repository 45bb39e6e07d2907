"""Memory that passes take other than activations: while a pass runs, or until the end of the iteration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.files.exact_numbers import as_numbers
from pipesched.files.features.catalogue import FEATURES, Column, Columns, Feature, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, of_value
from pipesched.problem.problem import Problem
from pipesched.problem.stage import PassMemory

_PASSES = PassMemory._fields


class PassMemorySection(Section):
    """Amounts of memory by kind of pass, in the unit of `memory`."""

    forward: field_types.Numbers | None = Field(None, description="of F; default 0")
    backward: field_types.Numbers | None = Field(None, description="of B, and of a full backward; default 0")
    weight: field_types.Numbers | None = Field(None, description="of W, and of a full backward; default 0")


class WorkspaceKeys(Section):
    """The key `memory.workspace`: memory that passes need while they run."""

    workspace: PassMemorySection | None = Field(
        None, description="held while a pass runs; a full backward holds the larger one of backward and weight"
    )


class UntilEndKeys(Section):
    """The key `memory.until_end`: memory that passes take and keep until the end of the iteration."""

    until_end: PassMemorySection | None = Field(
        None, description="taken when a pass starts and kept until the end of the iteration"
    )


class _Amounts:
    """Conversion and checks of one section of amounts by kind of pass: `workspace` or `until_end`.

    `feature` makes the feature. The key in the file's section `memory` is also the name of the field of `Stage`.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def _section(self, form: ProblemForm) -> Any:
        return getattr(form.memory, self._key, None)

    def memory(self, form: ProblemForm) -> Iterator[Column]:
        section = self._section(form)
        for one in _PASSES if section is not None else ():
            yield (self._key, one), getattr(section, one) or Fraction(0)

    def stages(self, _form: ProblemForm, amounts: Columns, _count: int) -> dict[str, list[PassMemory]]:
        own = [amounts[self._key, one] for one in _PASSES if (self._key, one) in amounts]
        return {self._key: [PassMemory(*each) for each in zip(*own, strict=True)]} if own else {}

    def per_stage(self, form: ProblemForm) -> Iterator[tuple[str, object]]:
        yield from ((f"memory.{self._key}.{one}", getattr(self._section(form), one, None)) for one in _PASSES)

    def mistakes(self, form: ProblemForm, _stages: int | None, wrong: WrongPaths) -> Iterator[str]:
        """Yield a mistake where an amount for W is given but the passes have no W."""
        passes = form.tasks or form.times
        section = self._section(form)
        if section is None or not section.weight or passes is None or passes.weight is not None:
            return
        needed = "tasks.weight" if form.tasks else "times.weight"
        if needed not in wrong:
            yield f"memory.{self._key}.weight: found without {needed}; allowed: with it, or as part of backward"

    def written(self, problem: Problem) -> dict[str, object]:
        own = [getattr(stage, self._key) for stage in problem.stages]
        columns = zip(_PASSES, zip(*own, strict=True), strict=True)
        found = {one: as_numbers(column, problem.resolution) for one, column in columns if any(column)}
        return {"memory": {self._key: found}} if found else {}

    def present_in(self, problem: Problem) -> bool:
        return any(any(getattr(stage, self._key)) for stage in problem.stages)

    def feature(self, keys: type[Section], *refused: Refused) -> Feature:
        """Return the feature with this section's keys; it excludes overlapped blocks and whatever `refused` lists."""
        with_blocks = Refused(
            given("times.overlapped"),
            given(f"memory.{self._key}"),
            "one of the two",
            "what the two passes of a block hold at once has no key",
        )
        return Feature(
            name=f"memory.{self._key}",
            sections={"memory": keys},
            mistakes=self.mistakes,
            memory=self.memory,
            stages=self.stages,
            per_stage=self.per_stage,
            written=self.written,
            refused=(with_blocks, *refused),
            with_units={f"memory.{self._key}": QuantityKind.MEMORY},
            present_in=self.present_in,
        )


FEATURES.register(_Amounts("workspace").feature(WorkspaceKeys))
FEATURES.register(
    _Amounts("until_end").feature(
        UntilEndKeys,
        Refused(
            of_value("objective", "period"),
            given("memory.until_end"),
            "makespan or span",
            "memory that is never given back grows with every period",
        ),
    )
)
