"""Records as a table of pandas, which need not be installed for anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from importlib import import_module
from typing import Any

from pipesched.errors import BadInput
from pipesched.extras import to_install


def frame_of(records: Iterable[Mapping[str, Any]]) -> Any:
    """A `pandas.DataFrame` with a row for each record; `BadInput` where pandas is not installed.

    Figures by name, such as idle time by objective, are a column each: `idle_span`.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise BadInput(f"to_frame: found no pandas; allowed: after {to_install('pandas')}") from None
    rows = [*records]
    nested = {key for record in rows for key, value in record.items() if isinstance(value, Mapping)}
    return pandas.DataFrame([dict(_flat(record, nested)) for record in rows])


def _flat(record: Mapping[str, Any], nested: Set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}_{name}", one) for name, one in value.items())
        elif key not in nested:  # else the row has none of these figures
            yield key, value
