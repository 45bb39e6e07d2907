"""Plans for runtimes (`plan --for`, `plan --settings`): the best that each can express and run, and the best of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from pipesched.errors import BadInput
from pipesched.layers.even import some_counts
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.solution import Status
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.plan_limits import restricted
from runtime.partitions.plan_settings import PlanSettings, settings_of
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.plan import plan
from solver.planning.progress import PlanProgress, Report
from solver.planning.time_shares import TimeShares
from targets.plan_runtimes import runtimes_of
from targets.schedules import refuse_tasks, written_for


@dataclass(frozen=True)
@tunable
class TargetParams:
    """Shares of the time limit of a plan search for runtimes; the remainder is for all plans."""

    own_share: float = tuned(0.7, "of the limit, for the plan of `--for` or `--partition`", 0, 1)
    settings_share: float = tuned(
        0.3, "of the limit, for those of `--settings`; half of it with `--for` or `--partition` given", 0, 1
    )


_PARAMS = TargetParams()


@dataclass(frozen=True)
class Narrowed:
    """The restriction of a plan by `--for` or `--partition`, and the best plan without it (`free`).

    `name` is the runtime of `--for` (None: none); `words` are texts on what was left out for it. `partition` is True if
    the partition was given.
    """

    free: Plan
    name: str | None = None
    words: tuple[str, ...] = ()
    partition: bool = False

    @property
    def scope(self) -> str:
        """The plans that the bound covers, as the end of a sentence, with a space at its beginning."""
        runtime = "" if self.name is None else f" that {self.name} can express and run"
        return runtime + (" with this partition" if self.partition else "")


@dataclass(frozen=True)
class Planned:
    """The plan asked for (`found`), its restriction, and the settings of runtimes, each with its own plan.

    `settings` are in the order in which the runtimes were given. `narrowed` is the restriction by `--for` or
    `--partition`; None if neither was given.
    """

    found: Plan
    narrowed: Narrowed | None
    settings: tuple[PlanSettings, ...]


def planned(
    whole: PlanProblem,
    problem: PlanProblem,
    target: str | None,
    forms: Sequence[PartitionFormat],
    limits: Limits,
    report: Report,
    aside: Report,
    stop: Event,
    start: PlanCandidate | None = None,
) -> Planned:
    """Return the best plan, its restriction, and the settings of the runtimes in `forms`, each with its own best plan.

    `whole` is the problem of the file; `problem` is the same, or with its partition given. The searches are, in turn:
    of the problem restricted to `target`, or, without a target, of the one with its partition given; of the problem
    restricted to each other runtime in `forms`; and of all plans of `whole`, from the best plan found before, so that
    it is never worse. The plan asked for is that of `target`, else the one with the partition given, else the best of
    all. `report` gets the progress of its search, `aside` that of the others. `start` is a known plan, for `target` if
    there is one.

    A runtime in `forms` that runs no plan of the file gets the reason in place of settings. Raises `BadInput` if that
    is `target`.
    """
    search = _Searches(problem, limits, stop)
    given = problem != whole
    for_target = (
        None if target is None else search.restricted(PARTITION_FORMATS[target], _PARAMS.own_share, report, start)
    )
    asked = for_target.plan if for_target is not None else search.given(_PARAMS.own_share, report) if given else None
    others = [form for form in forms if form.name != target]
    first, share = (0.0, _PARAMS.settings_share) if asked is None else (_PARAMS.own_share, _PARAMS.settings_share / 2)
    outcomes: dict[str, _Own | str] = search.refused(others)
    others = [form for form in others if form.name not in outcomes]  # the time is of those that run a plan
    for number, form in enumerate(others, 1):
        try:
            outcomes[form.name] = search.restricted(
                form, first + share * number / len(others), _named(aside, form.name)
            )
        except BadInput as error:
            outcomes[form.name] = error.mistakes[0].removeprefix("--for ")
    known = [asked, *(one.plan for one in outcomes.values() if isinstance(one, _Own))]
    starts = [one.best for one in known if one is not None and one.best is not None] + (
        [] if start is None else [start]
    )
    best = min(starts, key=lambda one: one.value, default=None)
    free = search.all_plans(whole, best, report if asked is None else _named(aside, "all plans"))
    narrowed = None
    if for_target is not None:
        outcomes[for_target.form.name] = for_target
        narrowed = Narrowed(free, for_target.form.name, for_target.words, given)
    elif given:
        narrowed = Narrowed(free, partition=True)
    settings = tuple(_settings(form, outcomes[form.name], free) for form in forms)
    return Planned(free if asked is None else asked, narrowed, settings)


@dataclass(frozen=True)
class _Own:
    """The result of the search for one runtime: its best plan, and texts (`words`) on what was left out for it."""

    form: PartitionFormat
    words: tuple[str, ...]
    plan: Plan


class _Searches:
    """The searches of one call, one after another, within one time limit."""

    def __init__(self, problem: PlanProblem, limits: Limits, stop: Event) -> None:
        self._problem, self._time, self._stop = problem, TimeShares(limits), stop
        self._known: dict[PlanProblem, Plan] = {}

    def restricted(
        self, form: PartitionFormat, until: float, report: Report, start: PlanCandidate | None = None
    ) -> _Own:
        """Search the best plan for a runtime until the share `until` of the time has passed.

        Runtimes with equal restrictions share one search.
        """
        left, words = _restricted(self._problem, form)
        if left not in self._known:
            self._known[left] = self._search(left, until, start, report)
        return _Own(form, words, _runnable(self._known[left], form.name))

    def refused(self, forms: Sequence[PartitionFormat]) -> dict[str, _Own | str]:
        """Return for each of these runtimes that runs no plan of the problem the reason, by its name."""
        found = dict[str, _Own | str]()
        for form in forms:
            try:
                _restricted(self._problem, form)
            except BadInput as error:
                found[form.name] = error.mistakes[0].removeprefix("--for ")
        return found

    def given(self, until: float, report: Report) -> Plan:
        """Search the best plan with the partition given, until the share `until` of the time has passed."""
        return self._search(self._problem, until, None, report)

    def all_plans(self, whole: PlanProblem, start: PlanCandidate | None, report: Report) -> Plan:
        """Search the best of all plans, in the time that is left, from the plan `start` if there is one."""
        return self._search(whole, 1, start, report)

    def _search(self, problem: PlanProblem, until: float, start: PlanCandidate | None, report: Report) -> Plan:
        before = self._time.seconds

        def tell(moment: PlanProgress) -> None:
            report(replace(moment, seconds=moment.seconds + before))

        return plan(problem, self._time.part(until, 1), tell, self._stop, start=start)


def _restricted(problem: PlanProblem, form: PartitionFormat) -> tuple[PlanProblem, tuple[str, ...]]:
    """Return the problem whose plans a runtime can run, and texts on what was left out; `BadInput` if it runs none."""
    left, words = restricted(problem, form.name, form.limits)
    if form.name in RESTRICTIONS:
        # All plans have passes of the same tasks.
        narrowest = next(iter(left.variants.values()), left)
        for choice in narrowest.choices:
            stages = len(choice.on(narrowest.cluster.devices).chains[0])
            if stages <= narrowest.model.most_stages:
                refuse_tasks(narrowest.problem(choice, Partition(some_counts(narrowest.model, stages))), form.name)
                break
    return left, words


def _named(report: Report, name: str) -> Callable[[PlanProgress], None]:
    return lambda moment: report(replace(moment, phase=f"{name}: {moment.phase}"))


def _settings(form: PartitionFormat, own: _Own | str, free: Plan) -> PlanSettings:
    if isinstance(own, str):
        return PlanSettings(form, free, refusal=own)
    return settings_of(form, own.plan, free, own.words)


def narrowed_sentences(found: Plan, narrowed: Narrowed) -> list[str]:
    """Return sentences on the restriction of the plan, and its cost."""
    sentences = []
    if narrowed.name is not None:
        words = f"only plans that {narrowed.name} can express and run: {'; '.join(narrowed.words)}"
        sentences.append(words if narrowed.words else f"{narrowed.name} can express and run all plans of this file")
    if narrowed.partition:
        sentences.append("only plans with the partition given")
    free = narrowed.free
    if free.best is None or free.value is None:
        return sentences
    best, bound = (_time(found, value) for value in (free.value, free.lower_bound))
    text = f"of all plans: {best} ({free.best.choice}, {free.best.schedule}), none is below {bound}"
    if found.value is not None and free.value:
        more = float(found.value / free.value - 1)
        runs = f"{narrowed.name} runs it" if narrowed.name is not None else "this partition allows as little"
        own = f"that of {narrowed.name}" if narrowed.name is not None else "that with this partition"
        text += f"; {own} takes {100 * more:.2f} % more" if more > 0 else f"; {runs}"
        runs_all = runtimes_of(free.problem, free.best) if narrowed.name is not None and more > 0 else []
        others = ", ".join(name for name in runs_all if name != narrowed.name)
        text += f"; run by {others}" if others else ""
    return [*sentences, text]


def _time(found: Plan, value: Fraction) -> str:
    return f"{plain(float(value))} {found.problem.time_unit}".rstrip()


def narrowed_document(narrowed: Narrowed) -> dict[str, object]:
    """Return the keys of `plan --json` on a restriction: `restricted_to`, texts on it, `free`, any runtime as `for`.

    `free` is the best plan without the restriction, by nine keys of `Plan.document`: `status`, `value`, `lower_bound`,
    `gap`, `placement`, `chunks`, `partition`, `recompute` and `schedule`.
    """
    whole = narrowed.free.document()
    keys = ("status", "value", "lower_bound", "gap", "placement", "chunks", "partition", "recompute", "schedule")
    target = {} if narrowed.name is None else {"for": narrowed.name}
    words = [*narrowed.words, *(["the partition given"] if narrowed.partition else [])]
    return target | {"restricted_to": words, "free": {key: whole[key] for key in keys}}


def _runnable(found: Plan, target: str) -> Plan:
    """Return the plan search's result with only the orders that the exporter `target` accepts, in the runtime's terms.

    The best is then the best of these, None if there are none. Runtimes without restrictions keep the result.
    """
    if target not in RESTRICTIONS or found.best is None:
        return found
    choices = []
    for one in found.choices:
        timeline = None if one.best is None else written_for(one.best.timeline, target)
        kept = None if one.best is None or timeline is None else replace(one.best, timeline=timeline)
        choices.append(replace(one, best=kept))
    known: list[PlanCandidate] = [one.best for one in choices if one.best is not None]
    best = min(known, key=lambda candidate: candidate.value, default=None)
    status = Status.UNKNOWN
    if best is not None:
        status = Status.OPTIMAL if best.value == found.lower_bound else Status.FEASIBLE
    return replace(found, choices=tuple(choices), best=best, status=status)
