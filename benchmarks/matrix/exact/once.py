"""The section `parameters`, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from benchmarks.matrix.exact.cells import Once, Spec
from benchmarks.matrix.exact.values import of_stage


def once_of(
    section: Mapping[str, Any],
    first: str,
    device: int,
    s: int,
    slow: Fraction,
    passes: int,
    mark: str = "",
) -> Once:
    """The section `parameters` of one stage on one device."""

    def spec(key: str, stream: str) -> Spec | None:
        own = section.get(key)
        return None if own is None else Spec(stream, of_stage(own.get("time", 0), s) * slow)

    reduce, gather = section.get("reduce"), section.get("gather")
    if gather and gather.get("keep") == "never":
        gather, section = None, {key: own for key, own in section.items() if key != "gather"}  # a task of every pass
    most = 1 if gather and gather.get("keep") == "always" else 3 * passes
    return Once(
        device, (mark, device, s) if mark else (device, s),
        spec("reduce", (reduce or {}).get("on", "dp")), (reduce or {}).get("buckets", 1),
        spec("step", first), spec("gather", (gather or {}).get("on", "dp")),
        of_stage((gather or {}).get("memory", 0), s), most, (reduce or {}).get("every") == "microbatch",
    )  # fmt: skip
