"""Transfer times: by stage, by pair of devices, or within and between nodes; and the stream that transfers occupy."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

Matrix = list[list[Fraction]]


class NodeLinks(NamedTuple):
    """Transfer times within a node (`intra_node`) and between two (`inter_node`), in the file's unit.

    `nodes[d]` is the number of device d's node.
    """

    intra_node: Fraction
    inter_node: Fraction
    nodes: tuple[int, ...]


# As the file gives the time: one number, one a stage, a row for each sending device, or by node.
Latency = Fraction | list[Fraction] | Matrix | NodeLinks


class Occupying(NamedTuple):
    """Transfers that occupy the stream `on` of the sending device while they last.

    With `both`, they occupy that of the receiving one, too. `time` is the transfer time, as the file gives it.
    """

    time: Latency
    on: str
    both: bool = False


Transfer = Latency | Occupying


def latency_of(transfer: Transfer | None) -> Latency | None:
    """Return the transfer time alone, in the form that the file gives it; None where it gives none."""
    return transfer.time if isinstance(transfer, Occupying) else transfer


def stream_of(transfer: Transfer | None) -> str | None:
    """Return the name of the stream that transfers occupy; None where they occupy nothing."""
    return transfer.on if isinstance(transfer, Occupying) else None


def is_rendezvous(transfer: Transfer | None) -> bool:
    """Return True for blocking transfers, which occupy a stream of sender and receiver at once."""
    return isinstance(transfer, Occupying) and transfer.both


def is_matrix(transfer: object) -> bool:
    """Return True if transfer times are given as a matrix, one row for each sending device."""
    return isinstance(transfer, list) and bool(transfer) and isinstance(transfer[0], list)


def links_of(transfer: Latency | None) -> Matrix:
    """Return the matrix of transfer times in the file's unit, one row for each sending device.

    Empty where the file gives none, one number, or times by stage.
    """
    if isinstance(transfer, NodeLinks):
        within, between, nodes = transfer
        return [[within if a == b else between for b in nodes] for a in nodes]
    return [list(row) for row in transfer] if is_matrix(transfer) else []  # type: ignore[union-attr, arg-type]


def unused_diagonal(transfer: Latency | None) -> list[str]:
    """Return a note if the matrix has a time above 0 from a device to itself, which is never used.

    Else an empty list.
    """
    if isinstance(transfer, NodeLinks) or not any(row[device] for device, row in enumerate(links_of(transfer))):
        return []
    return ["times.transfer: the diagonal is not used, since nothing is sent from a device to itself"]


def wrong_size(transfer: object, devices: int) -> str | None:
    """Return the mistake if a matrix or list of nodes does not have one row or entry for each device.

    None if it does, and for other forms. `transfer` is the value of the key, in any form.
    """
    if isinstance(transfer, NodeLinks) and len(transfer.nodes) != devices:
        return f"times.transfer.nodes: found {len(transfer.nodes)} nodes; allowed: a list of {devices}, one per device"
    if is_matrix(transfer):
        assert isinstance(transfer, list)
        widths = {len(row) for row in transfer}
        if len(transfer) != devices or widths != {devices}:
            found = f"{len(transfer)} rows of {' or '.join(map(str, sorted(widths)))} values"
            return f"times.transfer: found {found}; allowed: {devices} rows of {devices}, a row for each sending device"
    return None
