"""The option `--for`: restricts the result to what a runtime can express."""

from __future__ import annotations

from argparse import ArgumentParser

from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS


def add_schedules_for(parser: ArgumentParser) -> None:
    """Add `--for` to `solve`: a key of `RESTRICTIONS`, as `target`; None where not given."""
    parser.add_argument(
        "--for",
        dest="target",
        choices=sorted(RESTRICTIONS),
        help="only schedules that this runtime can express; value and bound are those of the problem so restricted",
    )


def add_plans_for(parser: ArgumentParser) -> None:
    """Add `--for` to `plan` and `layouts`: the name of a format of settings, as `target`; None where not given."""
    parser.add_argument(
        "--for",
        dest="target",
        choices=sorted(form.name for form in PARTITION_FORMATS),
        help="only plans that this runtime can express, in orders that it runs; what that costs is shown too",
    )
