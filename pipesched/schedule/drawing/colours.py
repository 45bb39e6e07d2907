"""The colours of passes: a hue for each kind, as in the papers, and a shade for each chunk or direction."""

from __future__ import annotations

from pipesched.problem.passes import KINDS, PassKind
from pipesched.problem.placement import Placement, bidirectional
from pipesched.problem.problem import Problem

RGB = tuple[float, float, float]

EDGE = "#2b2b2b"
LINE = 0.6  # points: the outline of a box

NAMES: dict[PassKind, str] = {kind: row.name for kind, row in KINDS.items()}

# A transfer that occupies a stream.
TRANSFER: RGB = (0.66, 0.60, 0.78)
# What else runs beside computation, such as dispatch and combine.
COMMUNICATION: RGB = (0.90, 0.62, 0.75)


def shade(kind: PassKind, number: int, count: int) -> RGB:
    """Return the colour, in parts from 0 to 1, of a kind in shade `number`, from 0, of `count`; 0 is the strongest."""
    first, last = map(_parts, KINDS[kind].shades)
    share = number / (count - 1) if count > 1 else 0.0
    red, green, blue = (a + (b - a) * share for a, b in zip(first, last, strict=True))
    return red, green, blue


def _parts(colour: str) -> RGB:
    """Return red, green and blue, 0 to 1, of a colour such as #f59a23."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red / 255, green / 255, blue / 255


def hexadecimal(colour: RGB) -> str:
    """Return a colour, whose parts are 0 to 1, in the notation of web pages and terminals, such as #f59a23."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def shade_names(problem: Problem) -> list[str]:
    """Return the meaning of each shade: the chunk of a device or, with several chains, the direction.

    For micro-batches of several pieces, shades stand for pieces, or for pieces of each chunk; for a trunk with modules,
    for the trunk or its chunks, and then for each module by name.
    """
    where, pieces = problem.placement, problem.chain_arcs.pieces
    most = max(shade_numbers(problem)) + 1
    if problem.chain_arcs.modules:
        chunks = most - len(problem.chain_arcs.modules)
        trunk = ["Trunk"] if chunks == 1 else [f"Trunk, chunk {number}" for number in range(chunks)]
        return [*trunk, *(module.name for module in problem.chain_arcs.modules)]
    if most == pieces > 1:
        return [f"Piece {number}" for number in range(pieces)]
    if pieces > 1 and len(where.chains) == pieces:
        return [f"Chunk {number // pieces}, piece {number % pieces}" for number in range(most)]
    if _is_bidirectional(where):
        return ["Down the devices", "Up the devices"]
    if len(where.chains) == 1:
        return [f"Chunk {number}" for number in range(most)]
    return [f"Chain {number} of a device" for number in range(most)]


def shade_numbers(problem: Problem) -> list[int]:
    """Return the shade of each stage, as an index into `shade_names`."""
    where = problem.placement
    if _is_bidirectional(where) and not problem.chain_arcs.modules:
        return list(where.chain_index)
    found = [where.chunk(stage) for stage in range(where.stages)]
    if problem.chain_arcs.modules:
        chunks = 1 + max(found[stage] for stage in where.chains[0])
        for number, module in enumerate(problem.chain_arcs.modules):
            for stage in (stage for chain in module.chains for stage in chain):
                found[stage] = chunks + number
    return found


def _is_bidirectional(placement: Placement) -> bool:
    return placement == bidirectional(placement.devices)


def ink_on(colour: RGB) -> str:
    """Return black or white, whichever reads better on a colour with parts from 0 to 1 (relative luminance, WCAG 2)."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # Contrast with white is 1.05 / (L + 0.05), with black (L + 0.05) / 0.05; they are equal at L = 0.179.
    return "black" if luminance > 0.179 else "white"
