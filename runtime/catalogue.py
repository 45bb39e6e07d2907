"""The list of exporters: each turns a timeline into the text files of one other program, and registers itself here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipesched.errors import BadInput
from pipesched.registry import Registry
from pipesched.timeline import Timeline
from pipesched.validator import validate

# The text of each file by its suffix: the caller chooses the stem.
Files = dict[str, str]


@dataclass(frozen=True)
class Exporter:
    """One format.

    `suffix` is that of the main file, the one to show where only one can be shown; what else `export` returns are
    side files. `warnings` says what the other program does otherwise than a reader of the schedule would think.
    """

    name: str
    description: str
    suffix: str
    write: Callable[[Timeline], Files]
    warnings: Callable[[Timeline], Sequence[str]] = lambda _: ()

    def export(self, timeline: Timeline) -> Files:
        """The files by suffix, main file included; `BadInput` where the timeline is broken or the format lacks a word.

        Only a valid timeline is written: runtimes trust their input, and a pass that is missing or stands twice ends
        there in a hang or in silently wrong gradients. Too little memory is no reason: the order itself is right.
        """
        broken = [violation for violation in validate(timeline) if violation.rule != "memory"]
        if broken:
            more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
            raise BadInput(f"{self.name}: only a valid schedule can be exported; in this one {broken[0].text}{more}")
        return self.write(timeline)


EXPORTERS: Registry[Exporter] = Registry("runtime", "export format")
