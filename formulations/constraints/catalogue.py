"""The catalogue of rules: each module of this room registers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.model import Model
from pipesched.registry import Registry
from pipesched.timeline import Timeline


@dataclass(frozen=True)
class Constraint:
    """One rule; a test enumerates small timelines and holds `check` and `post` equal."""

    name: str
    check: Callable[[Timeline], bool]
    post: Callable[[Model], None]


CONSTRAINTS: Registry[Constraint] = Registry("formulations.constraints", "constraint")
