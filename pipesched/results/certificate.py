"""A certificate is a lower bound together with the argument that proves it, as text that a person can check."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.attainable_spans import Value
from pipesched.results.bound_names import bound_name
from pipesched.results.evidence import Evidence


@dataclass(frozen=True)
class Certificate:
    """No schedule of the problem is below `value_ticks`, a fraction of a tick where a span can be one.

    `kind` names the argument. `device` is the one it speaks of, None if it speaks of the whole. `evidence` is what a
    check needs that does not know the solver (`pipesched/checking`), None for arguments that it cannot check.
    """

    kind: str
    value_ticks: Value
    text: str
    device: int | None = None
    evidence: Evidence | None = None

    @property
    def name(self) -> str:
        """The argument's name for people; `kind` is the one in files."""
        return bound_name(self.kind)

    def document(self) -> dict[str, object]:
        """The object under `certificate` of a JSON answer."""
        return {"kind": self.kind, "text": self.text}
