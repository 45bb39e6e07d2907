"""Certificates: a lower bound together with the argument that proves it, as text that a person can check."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.attainable_spans import Value
from pipesched.problem.quantities import DeviceId
from pipesched.results.bound_names import bound_name
from pipesched.results.evidence import Evidence


@dataclass(frozen=True)
class Certificate:
    """A proof that no schedule of the problem has a value less than `value_ticks` (possibly a fraction for a span).

    `kind` names the argument, and `text` states it for a person to check. `device` is the one that it is about, None if
    about the whole problem. `evidence` is the data with which `pipesched/checking` repeats the argument without the
    solver, None for arguments that it cannot check.
    """

    kind: str
    value_ticks: Value
    text: str
    device: DeviceId | None = None
    evidence: Evidence | None = None

    @property
    def name(self) -> str:
        """The argument's name for people; files have `kind`."""
        return bound_name(self.kind)

    def document(self) -> dict[str, object]:
        """Return the object under `certificate` of a JSON answer: kind and text, without value and evidence."""
        return {"kind": self.kind, "text": self.text}
