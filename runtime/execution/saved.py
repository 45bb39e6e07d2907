"""Tensors saved by a forward for its backward: moved to the host, and back before the backward runs.

Tensors that share memory are moved once. Parameters stay, and so does the stage's input, which receives the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch


class _View(NamedTuple):
    """A saved tensor as a place in the memory that it was saved in."""

    memory: int
    dtype: torch.dtype
    offset: int | torch.SymInt
    size: torch.Size
    stride: tuple[int, ...]


class Saved:
    """Saved tensors of one forward. `share` of their bytes is moved by `move_out`, largest tensors first."""

    def __init__(self, stay: Iterable[torch.Tensor], share: float) -> None:
        self._stay = {one.untyped_storage().data_ptr() for one in stay}
        self._share, self._here, self._host = share, dict[int, Any](), dict[int, Any]()

    def collect(self) -> AbstractContextManager[Any]:
        """Context that collects the tensors that a forward inside saves."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> Any:
        storage = tensor.untyped_storage()
        where = storage.data_ptr()
        if where in self._stay or not storage.nbytes():
            return tensor
        self._here[where] = storage
        return _View(where, tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride())

    def _unpack(self, found: Any) -> torch.Tensor:
        if not isinstance(found, _View):
            return found  # type: ignore[no-any-return]
        storage = self._here[found.memory]
        empty = torch.empty(0, dtype=found.dtype, device=storage.device)
        tensor = empty.set_(storage, found.offset, found.size, found.stride)
        _used_here(tensor)
        return tensor

    def move_out(self) -> int:
        """To the host; how many bytes moved."""
        most, moved = self._share * sum(one.nbytes() for one in self._here.values()), 0
        for where, storage in sorted(self._here.items(), key=lambda item: -item[1].nbytes()):
            if moved + storage.nbytes() <= most:
                moved += storage.nbytes()
                self._host[where] = _copied(storage, "cpu"), storage.device
                del self._here[where]
        return moved

    def move_in(self) -> None:
        """Back to where it was."""
        for where, (storage, device) in self._host.items():
            self._here[where] = _copied(storage, device)
        self._host.clear()


def _copied(storage: Any, device: Any) -> Any:
    """The same bytes in memory of another device, copied on the current stream."""
    source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    pinned = torch.device(device).type == "cpu" and source.is_cuda
    target = torch.empty(source.shape, dtype=torch.uint8, device=device, pin_memory=pinned)
    target.copy_(source, non_blocking=True)
    _used_here(source)
    return target.untyped_storage()


def _used_here(tensor: torch.Tensor) -> None:
    """Its memory is not given to others before the current stream has come this far, wherever it was made."""
    if tensor.is_cuda:
        tensor.record_stream(torch.cuda.current_stream())
