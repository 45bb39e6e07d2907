"""Measurement of memory that passes take and free.

On CPU it is the exact bytes of live storages, on GPU the allocator's count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Meter(Protocol):
    """A counter of the bytes in use, as a context around the work to be measured.

    Levels of different meters may include other memory: only differences between two readings of one meter are of the
    work.
    """

    def in_use(self) -> int:
        """Return the bytes now in use."""
        ...

    def reset_peak(self) -> None:
        """Reset the peak to the bytes now in use."""
        ...

    def peak(self) -> int:
        """Return the peak of bytes in use since `reset_peak`."""
        ...

    def __enter__(self) -> Meter: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A meter of exact bytes of CPU storages made inside the context and still referenced, in forward and backward.

    Every operator's results pass through here; their storages are followed by weak references, so that nothing is kept
    alive by being counted. Memory that an operator uses only inside itself is not seen.
    """

    def __init__(self, others: Iterable[Tensor] = ()) -> None:
        """Make a meter that does not count the tensors in `others`, which exist already."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._sizes: dict[StorageWeakRef, int] = {}
        self._others = {_reference(tensor.untyped_storage()) for tensor in others}
        self._peak = 0

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = operator(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                reference = _reference(storage)
                if reference not in self._others:
                    self._sizes[reference] = storage.nbytes()
        self._peak = max(self._peak, self.in_use())
        return result

    def in_use(self) -> int:
        for dead in [one for one in self._sizes if one.expired()]:  # type: ignore[no-untyped-call]
            del self._sizes[dead]
        return sum(self._sizes.values())

    def reset_peak(self) -> None:
        self._peak = self.in_use()

    def peak(self) -> int:
        return self._peak


def _reference(storage: torch.UntypedStorage) -> StorageWeakRef:
    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]


class Allocator:
    """A meter of the bytes allocated by PyTorch's CUDA allocator on one GPU.

    The allocator rounds each tensor up to 512 bytes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def in_use(self) -> int:
        torch.cuda.synchronize(self._device)
        return int(torch.cuda.memory_allocated(self._device))

    def reset_peak(self) -> None:
        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak(self) -> int:
        torch.cuda.synchronize(self._device)
        return int(torch.cuda.max_memory_allocated(self._device))

    def __enter__(self) -> Allocator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def meter(device: torch.device, others: Iterable[Tensor]) -> Meter:
    """Return the meter for a device.

    On CPU it counts tensors made from now on, in its context, without those in `others`, which exist already. On GPU it
    counts all that PyTorch has allocated there.
    """
    return Allocator(device) if device.type == "cuda" else LiveStorages(others)
