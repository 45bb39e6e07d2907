"""Schedule files made wrong, which the validator or the check must refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any


def mutated(text: str, random: Random) -> Iterator[tuple[str, str, str]]:
    """A changed file: the change, the command that must refuse it, and the text."""
    document: dict[str, Any] = json.loads(text)
    starts = document["starts"]
    names = sorted(starts)
    one = random.choice(names)
    wrong = deepcopy(document)
    del wrong["starts"][one]
    yield f"without the start of {one}", "validate", json.dumps(wrong)
    wrong = deepcopy(document)
    wrong["starts"][one] = -1
    yield f"{one} starts at -1", "validate", json.dumps(wrong)
    stays = [name for name in names if name[0] == "F"]
    wrong = deepcopy(document)
    first = random.choice(stays)
    wrong["starts"][first] = max(starts.values()) + 10**6
    yield f"{first} starts behind all others", "validate", json.dumps(wrong)
    if document.get("value") and document.get("lower_bound") is not None:
        for above in (1, document["value"]):
            wrong = deepcopy(document)
            wrong["value"] = wrong["lower_bound"] = document["value"] + above
            if wrong.get("certificate"):
                wrong["certificate"]["value"] = wrong["value"]
            yield f"value and bound {above} more", "check", json.dumps(wrong)
    if document.get("certificate"):
        wrong = deepcopy(document)
        more = document["value"] + 1
        wrong["lower_bound"] = wrong["certificate"]["value"] = more
        yield f"a bound of {more}, above the value", "check", json.dumps(wrong)
