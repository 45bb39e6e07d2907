"""The registry of exporters: `EXPORTERS`, each of which writes a timeline as text files for another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput, did_you_mean
from pipesched.files.features.catalogue import FEATURES
from pipesched.problem.passes import BW, OF_PARAMETERS, B, F, W
from pipesched.registry import Registry
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate

# The text of each file by its suffix, as `.csv`: the caller puts the stem before it.
Files = dict[str, str]


# What was chosen for each option of a format, by name; `stem` is always there: the files' path without their suffixes.
Settings = Mapping[str, str]


@dataclass(frozen=True)
class Option:
    """An option of a format. `allowed` lists its values; empty: any text, which the writer checks.

    `default` is the value if none is given.
    """

    name: str
    description: str
    default: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exporter:
    """A format of exported schedules.

    `write` returns the text of all files, `suffix` is the ending of the main one, as `.csv`. `refuse` raises `BadInput`
    for an order that the other program cannot run. `warnings` returns texts on what the other program does differently
    from what the schedule suggests. `proof` returns a sentence on the rules under which the exported program was proved
    free of deadlock, and raises `BadInput` with the cycle of waits if it is not; it is None for formats that nobody
    executes. `options` are the options of the format.

    The other fields say what a format can express: `streams`, the order of tasks on several streams, not of whole
    passes alone; `copies`, copies to the host on streams of their own, and recomputation, as whole passes; `features`,
    features of problem files that not every format can express; `collectives`, gatherings, drops and reductions among
    the passes of a device; `transfers`, sends and receives in the order of the schedule, where they take time of both
    devices; `every_feature`, whatever a schedule runs, including modules.
    """

    name: str
    description: str
    suffix: str
    write: Callable[[Timeline, Settings], Files]
    refuse: Callable[[Timeline], None] = lambda _: None
    warnings: Callable[[Timeline], Sequence[str]] = lambda _: ()
    proof: Callable[[Timeline], str] | None = None
    options: tuple[Option, ...] = ()
    streams: bool = False
    copies: bool = False
    features: frozenset[str] = frozenset()
    collectives: bool = False
    transfers: bool = False
    every_feature: bool = False

    def export(self, timeline: Timeline, options: Mapping[str, str] | None = None, stem: str = "schedule") -> Files:
        """Return the text of the files by suffix, the main file included; none is written.

        `BadInput` if the timeline is invalid or cannot be expressed, or an option is unknown or has a value that is not
        allowed. `options` are values of the format's options by name, others have their defaults; `stem` is the path
        that the caller will give the files, without suffix, for formats whose files name each other. Runtimes trust
        their input: a pass that is missing or appears twice results in a hang or in silently wrong gradients. Exceeding
        the memory is allowed, since the order itself is right.
        """
        settings = self._settings(options or {}) | {"stem": stem}
        self.check(timeline)
        return self.write(timeline, settings)

    def check(self, timeline: Timeline) -> None:
        """Raise `BadInput` if the timeline is invalid, or this format or the program that reads it cannot express it.

        `export` may still refuse a timeline that passes: for wrong options, for cycles of waits, which no valid
        schedule is known to have, and for what `write` alone finds, such as a placement or an order of micro-batches in
        some formats.
        """
        broken = [violation for violation in validate(timeline) if violation.rule != "memory"]
        if broken:
            more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
            raise BadInput(f"{self.name}: only a valid schedule can be exported; in this one {broken[0].text}{more}")
        reason = self.lacks(timeline)
        if reason is not None:
            able = ", ".join(other.name for other in EXPORTERS if other.lacks(timeline) is None)
            raise BadInput(f"{self.name}: {reason}; {able or 'no format'} can express it")
        self.refuse(timeline)

    def lacks(self, timeline: Timeline) -> str | None:
        """Return a clause that names a feature of the schedule which this format cannot express.

        None if it can express all.
        """
        problem, passes = timeline.problem, [*timeline.schedule.passes()]
        plain = problem.network.has_collectives and problem.network.of_microbatches.one_task_each
        whole = all(len([*problem.tasks(p)]) == 1 for p in asking(passes, SHORT))
        at_once = all(one.parts == 1 and not one.each_microbatch for stage in problem.stages for one in stage.once)
        sent = _transfers_alone(timeline)
        every_kind = self.streams or (whole and self.copies) or (plain and self.collectives and at_once)
        holds_streams = every_kind or (sent and self.transfers)
        if sent and not holds_streams:
            return "the schedule orders sends and receives, and this format does not keep their order"
        if not holds_streams and (timeline.schedule.task_orders or timeline.schedule.waits):
            several = len(problem.streams) > 1
            extra = "orders the tasks of several streams" if several else "orders tasks and has waits between them"
            return f"the schedule {extra}, and this format orders whole passes only"
        able = {F, B, W, BW, *(OF_PARAMETERS if sent and self.collectives and at_once else ())}
        saving = next((p for p in passes if p.kind not in able), None)
        if saving is not None and not every_kind and not (sent and self.copies):
            in_parts = saving.kind in OF_PARAMETERS and not at_once
            missing = "no buckets of gradients" if in_parts else "neither copies nor recomputation"
            return f"the schedule runs {saving}, and this format has {missing}"
        if self.every_feature:
            return None
        for feature in FEATURES:
            if feature.not_expressible and feature.name not in self.features and feature.present_in(problem):
                return feature.not_expressible
        return None

    def _settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the value of every option: the chosen one, else its default.

        `BadInput` for an unknown option or a value that is not allowed.
        """
        known = {option.name: option for option in self.options}
        for name, value in chosen.items():
            if name not in known:
                allowed = ", ".join(known) or "none"
                hint = did_you_mean(name, known)
                raise BadInput(f"{self.name}: found option {name!r}; options of this format: {allowed}{hint}")
            if known[name].allowed and value not in known[name].allowed:
                allowed = ", ".join(known[name].allowed)
                raise BadInput(f"{self.name}: found {name}={value}; allowed: {allowed}")
        return {option.name: chosen.get(option.name, option.default) for option in self.options}


def _transfers_alone(timeline: Timeline) -> bool:
    """Return True if transfers occupy sender and receiver, and the schedule orders only transfers and whole passes.

    So each pass has one task besides the receipt of its tensors, and no stream waits for another.
    """
    problem = timeline.problem
    if not problem.network.occupies_several or timeline.schedule.waits:
        return False
    return all(
        all(task.receives for task in tasks if task.also) and sum(not task.receives for task in tasks) == 1
        for tasks in (problem.tasks_of(*pass_type) for pass_type in problem.network.tasks)
    )


EXPORTERS: Registry[Exporter] = Registry("runtime.exporters", "export format", {"perfetto": "chrome-trace"})
