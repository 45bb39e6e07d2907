"""Groups of micro-batches that Megatron's interleaved order runs through a chunk together.

It refuses groups of fewer micro-batches than there are devices or of more than there are, and a last group of fewer
than there are devices (forward_backward_pipelining_with_interleaving in megatron/core/pipeline_parallel/schedules.py).
"""

from __future__ import annotations

ORDER = "interleaved-1f1b"


def is_taken(microbatches: int, devices: int, group: int) -> bool:
    """True if Megatron runs groups of this size."""
    return devices <= group <= microbatches and not 0 < microbatches % group < devices


def group_sizes(microbatches: int, devices: int) -> list[int]:
    """For each number of groups that there can be the least size, which holds least and begins backwards first."""
    found = []
    for number in range(microbatches // devices, 0, -1):
        sizes = range(-(-microbatches // number), microbatches + 1)
        of_number = (size for size in sizes if -(-microbatches // size) == number)
        found += [next((size for size in of_number if is_taken(microbatches, devices, size)), 0)]
    return [size for size in found if size]


def order_of(microbatches: int, devices: int, group: int) -> str:
    """The name of the order with these groups; without a number where they are those that it has by itself."""
    return ORDER if _own_group(microbatches, devices) == group else f"{ORDER}:{group}"


def group_of(order: str | None, microbatches: int, devices: int) -> int | None:
    """The group of an order by its name, the least one for any other order; None where Megatron takes none such."""
    base, _, number = (order or "").partition(":")
    if base == ORDER and not number:
        return _own_group(microbatches, devices)
    if base == ORDER:
        return int(number) if is_taken(microbatches, devices, int(number)) else None
    return next(iter(group_sizes(microbatches, devices)), None)


def _own_group(microbatches: int, devices: int) -> int | None:
    """The group size of the order itself, whose groups are as equal as can be, larger first; None if not accepted."""
    number = microbatches // devices
    if not number:
        return None
    size, equal = -(-microbatches // number), microbatches % number in (0, number - 1)
    return size if equal and is_taken(microbatches, devices, size) else None
