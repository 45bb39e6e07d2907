"""The key `times.overlapped` of a problem file: blocks of a forward and a full backward that run together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from pipesched.files.features.catalogue import FEATURES, Feature, ProblemForm
from pipesched.files.fields.blocks_field import Saves
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.stage_placement import per
from pipesched.files.fields.together import Part, Refused, at, given
from pipesched.files.schema_errors import shown

_KEY = "times.overlapped"


def _mistakes(form: ProblemForm, _stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes where an overlapped block of a stage's own passes would be shorter than one of them."""
    times = form.times
    if any(path.startswith("times") for path in wrong):
        return
    if times is None or not isinstance(times.overlapped, Saves) or times.forward is None or times.backward is None:
        return
    saves, weight = times.overlapped.ticks, Fraction(0) if times.weight is None else times.weight
    whole = [times.backward, weight] if times.fused is None else [times.fused]
    count = max((len(one) for one in (saves, times.forward, *whole) if isinstance(one, list)), default=1)
    if any(isinstance(one, list) and count % len(one) for one in (saves, times.forward, *whole)):
        return
    backward = [sum(column, Fraction(0)) for column in zip(*(per(one, count) for one in whole), strict=True)]
    for name, most in (("forward", per(times.forward, count)), ("full backward", backward)):
        for stage, (saved, own) in enumerate(zip(per(saves, count), most, strict=True)):
            if saved > own:
                place = f"[{stage}]" if isinstance(saves, list) else ""
                yield f"times.overlapped.saves{place}: found {shown(saved)}; allowed: at most the {name}, {shown(own)}"
                break


def _sends(document: Mapping[str, Any]) -> bool:
    """Return True if transfers occupy a stream and passes are single tasks; other rows are for several tasks."""
    return at(document, "times.transfer.on") is not None and document.get("tasks") is None


_OWN = given(_KEY)
_SENDING = Part("times.transfer.on", "times.transfer.on", _sends)

FEATURES.register(
    Feature(
        name=_KEY,
        mistakes=_mistakes,
        refused=(
            Refused(_OWN, given("chains"), "one of the two", "the partner of a pass may be on another path"),
            Refused(_SENDING, _OWN, "one of them", "a block has one end, whichever of its passes is sent"),
        ),
    )
)
