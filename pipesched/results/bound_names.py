"""Names of bounds on screen and in reports; in files and JSON, `kind` keeps the names of earlier versions."""

from __future__ import annotations

_NAMES = {
    "round trip": "pipeline latency under the memory limit",
    "crossings": "decision diagram of the first stages",
    "crossings of steps": "decision diagram of some devices",
    "crossings of steps below a value": "decision diagram below a target value",
    "crossings of steps of some stages": "decision diagram of some stages",
    "crossings of steps of more stages": "decision diagram of some stages, guided by fewer",
    "crossings of steps with whole weight passes": "decision diagram without preemption of weight passes",
    "crossings of steps with some whole weight passes": "decision diagram without preemption of some weight passes",
    "crossings with blocks": "decision diagram with overlapped blocks",
    "crossings of all chains": "decision diagram of all chains",
}


def bound_name(kind: str) -> str:
    """Return the name for people of a kind of bound (`Certificate.kind`); the kind itself if it has no other."""
    return _NAMES.get(kind, kind)
