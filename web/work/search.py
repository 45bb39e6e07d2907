"""A solve for the page, which reports every improvement during the search, with its schedule."""

from __future__ import annotations

import time
from threading import Event, Thread

from pipesched.files.plan_file import plan_problem_from
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.results.gap import gap
from pipesched.results.solution import Progress, Solution
from pipesched.schedule.timeline import Timeline
from plots.html.document import document
from solver.limits import Limits
from solver.solve import solve as search
from targets.schedules import expressed, restricted
from web.problem_texts import SOURCE, document_of, is_plan, problem_of
from web.settings import Settings
from web.work import planning
from web.work.channel import Channel

_PAUSE = 0.2  # seconds between two moments that are sent
# A chart takes time of the search's own process: no more than this share of it.
_CHART_SHARE = 0.2


def solve(
    channel: Channel, text: str, seconds: float, workers: int, seed: int, target: str | None, settings: Settings
) -> None:
    """Search the best schedule and send messages: "moment" for progress, "chart" and "file" of better ones, "solution".

    The solution is the last one. If `text` is a plan file, the best plan is searched instead. With `target` the search
    is restricted to what that runtime can express. The time limit is `seconds`; `workers` and `seed` are those of the
    search. `BadInput` for a wrong file, one too large for the page, or a runtime that can express no schedule found.
    """
    limits, asked = Limits(seconds=seconds, workers=workers, seed=seed), document_of(text, settings)
    if is_plan(asked):
        plan = plan_problem_from(asked, SOURCE, "plan")
        planning.refuse_large(plan, settings)
        planning.search(channel, plan, limits, target)
        return
    whole = problem = problem_of(asked, settings)
    if target is not None:
        problem = restricted(whole, target)
    teller = _Teller(channel)
    try:
        solution = search(problem, limits, teller.heard, channel.stop)
    finally:
        teller.end()
    if target is not None:
        solution = expressed(solution, target, whole)
    if solution.timeline is not None:
        channel.send("chart", document(solution.timeline))
        channel.send("file", to_text(ScheduleFile.of(solution, solution.timeline)))
    channel.send("solution", _solution_document(solution) | {"scope": planning.scope(target)})


def _solution_document(solution: Solution) -> dict[str, object]:
    document = solution.document()
    document["interrupted"] = solution.interrupted
    document["fits"] = solution.timeline is not None
    return document


class _Teller:
    """A sender of the search's progress, on a thread of its own and at limited intervals."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._last: Progress | None = None
        self._charted: Timeline | None = None
        self._not_before = 0.0
        self._news, self._over = Event(), Event()
        self._thread = Thread(target=self._tell, daemon=True)
        self._thread.start()

    def heard(self, moment: Progress) -> None:
        """Note a moment of the search; it is the search's callback, and may be called from any thread."""
        self._last = moment
        self._news.set()

    def end(self) -> None:
        """Stop sending; nothing more is sent once this returns."""
        self._over.set()
        self._news.set()
        self._thread.join()

    def _tell(self) -> None:
        while self._news.wait() and not self._over.is_set():
            self._news.clear()
            moment = self._last
            if moment is None:
                continue
            self._channel.send("moment", self._moment(moment))
            if moment.timeline is not None and moment.timeline is not self._charted:
                self._show(moment.timeline)
            self._over.wait(_PAUSE)

    def _moment(self, moment: Progress) -> dict[str, object]:
        value, bound = moment.value, moment.lower_bound
        return {
            "seconds": round(moment.seconds, 2),
            "value": None if value is None else float(value),
            "bound": float(bound),
            "gap": None if value is None else gap(value, bound),
            "phase": moment.phase,
        }

    def _show(self, timeline: Timeline) -> None:
        """Send the chart and the schedule file, which is kept even if the process is killed.

        Later if the last was too recent.
        """
        started = time.monotonic()
        if started < self._not_before:
            self._news.set()
            return
        self._charted = timeline
        self._channel.send("chart", document(timeline))
        self._channel.send("file", to_text(ScheduleFile(timeline)))
        took = time.monotonic() - started
        self._not_before = started + took / _CHART_SHARE
