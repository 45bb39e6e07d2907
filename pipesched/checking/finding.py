"""The result of checking a lower bound: a verdict with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on a lower bound: does its evidence prove it?

    `VERIFIED`: it does. `TRUSTED`: the bound rests on an exhaustive search, which is not repeated. `NOT_VERIFIED`:
    there is no evidence, or none that is understood. `REFUSED`: there is evidence, and it does not prove the bound.
    """

    VERIFIED = "verified"  # the evidence proves it
    TRUSTED = "trusted"  # it rests on an exhaustive search, which is not repeated here
    NOT_VERIFIED = "not verified"  # no evidence, or none that is understood here
    REFUSED = "refused"  # there is evidence, and it does not prove the bound


@dataclass(frozen=True)
class Finding:
    """A verdict, and the reason in one sentence."""

    verdict: Verdict
    text: str


class RefusedEvidenceError(Exception):
    """Evidence that contradicts the problem or lacks what its argument needs; the text gives the reason."""


class NotCoveredError(Exception):
    """A problem or argument that the check does not know; the text names it."""
