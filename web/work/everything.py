"""All tasks of the page by name; worker processes are forked from a process that has imported this module."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.catalogue import HEURISTICS
from plots.catalogue import PLOTS
from runtime.exporters.catalogue import EXPORTERS
from web.work import files, schedules, search, start
from web.work.channel import Work

# Registries import their plug-ins when they are first asked.
LOADED = (HEURISTICS.names(), PLOTS.names(), EXPORTERS.names())

WORK: Mapping[str, Work] = {
    "start": start.describe,
    "compare": schedules.compare,
    "chart": schedules.chart,
    "solve": search.solve,
    "file of published": files.of_published,
    "file of solve": files.of_file,
}
