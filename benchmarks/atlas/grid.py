"""The points of the atlas and the problems of each: one model on each placement, as cells of sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal
from pipesched.sweeps.cells import Cell, Sweep, sweep_of

DEVICES = (4, 8, 16, 32)
LENGTHS = (1, 2, 4, 8)  # micro-batches a device
MEMORIES = tuple(map(Fraction, ("1/4", "1/2", "3/4", "1", "2")))  # of the peak of 1F1B, p activations of a device
# F, B and W of all layers of a device, in ticks of a twentieth of F; W is 0 for a backward that does not split.
RATIOS = {
    "1:1:1": (20, 20, 20),  # the figures of arXiv 2401.10241 and 2405.15362
    "2:2:1": (20, 20, 10),  # GPT 1.5B of arXiv 2401.10241: 18.522, 18.086 and 9.337 ms
    "1:2": (20, 40, 0),  # forward and backward of arXiv 2104.04473, not split
}
TRANSFERS = tuple(map(Fraction, ("0", "1/20", "1/5")))  # of F; GPT 6.2B of arXiv 2405.15362 has .056
# Every layer is stored once on each; placements with two copies of the parameters are no choice at equal memory.
PLACEMENTS = ("linear", "v-shape", "interleaved x2")
# Units of memory, so that the half that one of two chunks has is whole too: of all layers of a device, a micro-batch.
ACTIVATION = 2
FORWARD = 20  # ticks


@dataclass(frozen=True, order=True)
class Family:
    """Points that differ in memory alone: devices, micro-batches a device, times, and transfer as a share of F."""

    devices: int
    length: int
    ratio: str
    transfer: Fraction

    @property
    def passes(self) -> int:
        """Forwards of all devices, for the order of the run."""
        return self.devices**2 * self.length

    @property
    def sweep(self) -> Sweep:
        """A cell for each memory and placement: stages of two chunks have half the time and half the activation."""
        forward, backward, weight = RATIOS[self.ratio]
        times = {"forward": forward, "backward": backward, "transfer": int(self.transfer * FORWARD)}
        document = {
            "name": f"p={self.devices} m={self.length}p {self.ratio} transfer {as_decimal(self.transfer)}",
            "devices": self.devices,
            "microbatches": self.devices * self.length,
            "placement": "linear",
            "times": times | ({"weight": weight} if weight else {}),
            "memory": {"activation": ACTIVATION, "capacity": ACTIVATION * self.devices},
            "sweep": {
                "memory": [int(share * ACTIVATION * self.devices) for share in MEMORIES],
                "placement": [*PLACEMENTS],
                "same_model": True,
            },
        }
        return sweep_of(document)


@dataclass(frozen=True, order=True)
class Point:
    """A family with the memory of a device as a share of the peak of 1F1B."""

    family: Family
    memory: Fraction

    @property
    def key(self) -> str:
        """Its name in the file of rows."""
        family = self.family
        parts = family.devices, family.length, as_decimal(self.memory), family.ratio, as_decimal(family.transfer)
        return " ".join(map(str, parts))


def families(devices: Sequence[int]) -> list[Family]:
    """All families of these numbers of devices, the fewest passes first; `BadInput` for a number not in the atlas."""
    for p in devices:
        if p not in DEVICES:
            raise BadInput(f"--devices: found {p}; allowed: {', '.join(map(str, DEVICES))}")
    found = (Family(*one) for one in product(devices, LENGTHS, RATIOS, TRANSFERS))
    return sorted(found, key=lambda family: (family.passes, family))


def points(family: Family, sweep: Sweep) -> Iterator[tuple[Point, dict[str, Cell]]]:
    """Each point with its cells by placement; the most memory first, whose bounds hold for all, then from the least."""
    for memory in (MEMORIES[-1], *MEMORIES[:-1]):
        capacity = int(memory * ACTIVATION * family.devices)
        cells = {str(cell.place["placement"]): cell for cell in sweep.cells if cell.place["memory"] == capacity}
        yield Point(family, memory), cells
