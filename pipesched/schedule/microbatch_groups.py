"""Group sizes of micro-batches in Megatron's interleaved order.

The order runs a group through a chunk before the next chunk. Megatron refuses groups of fewer micro-batches than
devices or of more than there are, and a last group of fewer than there are devices
(forward_backward_pipelining_with_interleaving in megatron/core/pipeline_parallel/schedules.py).
"""

from __future__ import annotations

ORDER = "interleaved-1f1b"


def is_taken(microbatches: int, devices: int, group: int) -> bool:
    """Return True if Megatron accepts groups of `group` micro-batches.

    `microbatches` is their number in all, and `devices` that of devices in a pipeline.
    """
    return devices <= group <= microbatches and not 0 < microbatches % group < devices


def group_sizes(microbatches: int, devices: int) -> list[int]:
    """Return, for each possible number of groups, the smallest size that Megatron accepts.

    They are in ascending order: the first needs the least memory and starts backwards first. A number of groups that
    Megatron never accepts has no entry, so that the list is empty with fewer micro-batches than devices. `devices` is
    the number of pipeline devices.
    """
    found = []
    for number in range(microbatches // devices, 0, -1):
        sizes = range(-(-microbatches // number), microbatches + 1)
        of_number = (size for size in sizes if -(-microbatches // size) == number)
        found += [next((size for size in of_number if is_taken(microbatches, devices, size)), 0)]
    return [size for size in found if size]


def order_of(microbatches: int, devices: int, group: int) -> str:
    """Return the name of the interleaved order with groups of `group` micro-batches; the size is not checked.

    The name ends in the size, such as `interleaved-1f1b:8`, unless the size is the default for these numbers. The
    default is `devices` if that divides `microbatches`. Otherwise it is the size at which there are `microbatches //
    devices` groups of which at most the last is smaller, by one, if Megatron accepts that.
    """
    return ORDER if _own_group(microbatches, devices) == group else f"{ORDER}:{group}"


def group_of(order: str | None, microbatches: int, devices: int) -> int | None:
    """Return the group size in the name of an order, or the default of one without a size (`order_of`).

    For any other name, or None, the smallest size that Megatron accepts. None if Megatron does not accept the size, or
    accepts none. `microbatches` is their number in all, `devices` that of the pipeline. `ValueError` if what the name
    has as its size is no number.
    """
    base, _, number = (order or "").partition(":")
    if base == ORDER and not number:
        return _own_group(microbatches, devices)
    if base == ORDER:
        return int(number) if is_taken(microbatches, devices, int(number)) else None
    return next(iter(group_sizes(microbatches, devices)), None)


def _own_group(microbatches: int, devices: int) -> int | None:
    """Return the default size of groups of micro-batches.

    Groups are as equal as possible, larger ones first. None if Megatron does not accept that size, and for
    fewer micro-batches than devices. A group is so many micro-batches that a device runs on one chunk before the next.
    """
    number = microbatches // devices
    if not number:
        return None
    size, equal = -(-microbatches // number), microbatches % number in (0, number - 1)
    return size if equal and is_taken(microbatches, devices, size) else None
