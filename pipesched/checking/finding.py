"""The result of the check of a lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Verdict on a bound."""

    VERIFIED = "verified"  # the evidence proves it
    TRUSTED = "trusted"  # it rests on an exhaustive search, which is not repeated here
    NOT_VERIFIED = "not verified"  # no evidence, or none that is understood here
    REFUSED = "refused"  # there is evidence, and it does not prove the bound


@dataclass(frozen=True)
class Finding:
    """The verdict, and why in one sentence."""

    verdict: Verdict
    text: str


class RefusedEvidenceError(Exception):
    """Evidence that does not say what its argument needs; the text says why."""


class NotCoveredError(Exception):
    """A problem or an argument that the check does not understand; the text names it."""
