"""Measured and unit times that the benchmarks run on, copied with their source, and the problems made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem


@dataclass(frozen=True)
class Profile:
    """A linear pipeline of equal stages: times in ms, and hidden size and heads of its layers for the memory.

    `published` holds the bubble rates of the span that the paper gives for room for 1 x p and 2 x p activations.
    """

    model: str
    p: int
    m: int
    times: str  # forward, backward, weight, transfer
    hidden: int
    heads: int
    published: tuple[str, str]

    @property
    def activation(self) -> int:
        """Activation of F a layer: 34h + 5as, with a sequence of 1024 and a counted in its 1024s (arXiv 2401.10241)."""
        return 34 * self.hidden + 5 * self.heads * 1024

    @property
    def freed(self) -> int:
        """The part of it that B gives back: 2h + 5as. W gives back the remainder."""
        return 2 * self.hidden + 5 * self.heads * 1024

    def problem(
        self,
        capacity: Fraction | int,
        objective: str = "span",
        name: str = "",
        devices: int | None = None,
        microbatches: int | None = None,
    ) -> Problem:
        """With room for `capacity` activations a device; devices and micro-batches are the profile's unless given."""
        kinds = ("forward", "backward", "weight", "transfer")
        memory = {
            "unit": "34h+5as",
            "capacity": int(capacity * self.activation),
            "activation": self.activation,
            "freed_by_backward": self.freed,
        }
        return _problem(
            name or f"{self.model}-p{self.p}-m{self.m}",
            devices=devices or self.p,
            microbatches=microbatches or self.m,
            time_unit="ms",
            times=dict(zip(kinds, map(Decimal, self.times.split()), strict=True)),
            memory=memory,
            objective=objective,
        )


# arXiv 2401.10241, appendix (profiled times) and table 5 (bubble rates of ZB-1p and ZB-2p).
PROFILES = (
    Profile("1.5b", 8, 24, "18.522 18.086 9.337 0.601", 2304, 24, (".1585", ".0433")),
    Profile("1.5b", 8, 32, "18.513 18.086 9.331 0.626", 2304, 24, (".1242", ".0039")),
    Profile("1.5b", 8, 64, "18.546 18.097 9.321 0.762", 2304, 24, (".0674", ".0026")),
    Profile("6.2b", 8, 24, "29.718 29.444 19.927 0.527", 4096, 32, (".1323", ".0029")),
    Profile("6.2b", 8, 32, "29.802 29.428 19.530 0.577", 4096, 32, (".1045", ".0022")),
    Profile("6.2b", 8, 64, "29.935 29.621 19.388 0.535", 4096, 32, (".0554", ".0010")),
    Profile("14.6b", 16, 48, "11.347 11.248 8.132 0.377", 5120, 40, (".1397", ".0066")),
    Profile("14.6b", 16, 64, "11.307 11.254 8.101 0.379", 5120, 40, (".1088", ".0054")),
    Profile("14.6b", 16, 128, "11.325 11.308 8.109 0.378", 5120, 40, (".0576", ".0028")),
    Profile("28.3b", 32, 96, "10.419 10.207 7.715 0.408", 6144, 48, (".1421", ".0038")),
    Profile("28.3b", 32, 128, "10.408 10.204 7.703 0.408", 6144, 48, (".1106", ".0029")),
    Profile("28.3b", 32, 256, "10.402 10.248 7.698 0.460", 6144, 48, (".0594", ".0018")),
)

# Times of a chunk in microseconds, two chunks a device on 16 devices: the 6.2B settings of the zero-bubble
# repository's bubble-rate scripts (sail-sg), by number of micro-batches.
V_TIMES = {48: (14407, 14380, 9676, 1610), 64: (14412, 14393, 9688, 1621), 128: (14316, 14306, 9639, 1619)}
V_DEVICES = 16
# Peaks of ZBV, V-Half and V-Min there, in activations of a chunk (arXiv 2405.15362).
V_CAPACITY = {"full": 32, "half": 18, "third": 12}


def v_shape(m: int, memory: str, name: str = "") -> Problem:
    """The V placement with the room that ZBV ("full"), V-Half ("half") or V-Min ("third") takes."""
    return _problem(
        name or f"v-6.2b-m{m}-{memory}",
        devices=V_DEVICES,
        microbatches=m,
        placement="v-shape",
        time_unit="us",
        times=dict(zip(("forward", "backward", "weight", "transfer"), V_TIMES[m], strict=True)),
        memory={"unit": "chunk activations", "capacity": V_CAPACITY[memory], "activation": 1},
        objective="span",
    )


def uneven_8() -> Problem:
    """A measured GPT with the embedding on the first and the loss on the last stage.

    Source: the zero-bubble repository's auto_schedule.py (sail-sg), its example of 8 stages and 32 micro-batches.
    """
    times = {
        "forward": [30715, 29233, 29106, 29078, 28850, 28919, 28924, 41678],
        "backward": [31308, 29344, 29357, 29455, 29217, 29384, 29354, 38731],
        "weight": [18746, 18789, 19062, 19367, 19455, 19967, 20096, 32833],
        "transfer": 473,
    }
    memory = {
        "unit": "MB",
        "capacity": 16 * 1240,
        "activation": [943, 1240, 1240, 1240, 1240, 1240, 1240, 1071],
        "freed_by_backward": [533, 688, 688, 688, 688, 688, 688, 588],
    }
    return _problem(
        "uneven-8", devices=8, microbatches=32, time_unit="us", times=times, memory=memory, objective="span"
    )


def unit(p: int, m: int, objective: str, capacity: int | None = None, name: str = "") -> Problem:
    """Every pass takes one unit, no transfer; room for `capacity` activations, p of them unless given."""
    return _problem(
        name or f"unit-p{p}-m{m}",
        devices=p,
        microbatches=m,
        times={"forward": 1, "backward": 1, "weight": 1, "transfer": 0},
        memory={"capacity": capacity or p, "activation": 1},
        objective=objective,
    )


def _problem(name: str, **document: object) -> Problem:
    keys: Mapping[str, object] = {"name": name} | document
    return problem_from(keys, f"benchmark {name}")
