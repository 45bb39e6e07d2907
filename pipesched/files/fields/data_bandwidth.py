"""The key `data_bandwidth` of plan and hardware files: one number, or a table by the number of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

from pipesched.files.fields.field import PLAIN_NUMBER, WrongEntries, WrongEntry, field, finite_number
from pipesched.layers.derived.data_links import ByNodes

_A_RATE = "a number above 0"
_NODES, _A_NUMBER_OF_NODES = "[1-9][0-9]{0,8}", "a whole number of nodes from 1 to 999999999"
_ALLOWED = f"{_A_RATE}, or a table of them by nodes such as {{1: 436, 4: 160}}"


def _accept(value: object) -> Fraction | ByNodes | None:
    if not isinstance(value, Mapping):
        return _rate(value)
    wrong, found = [], dict[int, float]()
    for nodes, rate in value.items():
        number = _rate(rate)
        if isinstance(nodes, bool) or not re.fullmatch(_NODES, str(nodes)):
            wrong.append(WrongEntry("", nodes, _A_NUMBER_OF_NODES))
        elif number is None:
            wrong.append(WrongEntry(f".{nodes}", rate, _A_RATE))
        else:
            found[int(nodes)] = float(number)
    if wrong:
        raise WrongEntries(wrong)
    return ByNodes(tuple(sorted(found.items()))) if found else None


def _rate(value: object) -> Fraction | None:
    number = finite_number(value)
    return number if number is not None and number > 0 else None


_RATE_SCHEMA = {key: value for key, value in PLAIN_NUMBER.items() if key != "minimum"} | {"exclusiveMinimum": 0}
DataBandwidth = Annotated[
    Fraction | ByNodes,
    field(
        _ALLOWED,
        _accept,
        {
            "anyOf": [
                _RATE_SCHEMA,
                {
                    "type": "object",
                    "patternProperties": {f"^{_NODES}$": _RATE_SCHEMA},
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        },
    ),
]
