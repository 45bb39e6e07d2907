"""Tensors that a forward saves for its backward: copied to the host, and back before the backward runs.

Tensors that share memory are moved once. Parameters stay, and so does the stage's input, which receives the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch


class _View(NamedTuple):
    """A saved tensor as a view: address of its storage (`memory`), type of elements; offset and strides in elements."""

    memory: int
    dtype: torch.dtype
    offset: int | torch.SymInt
    size: torch.Size
    stride: tuple[int, ...]


class Saved:
    """The tensors that one forward saves for its backward, and their copies on the host.

    Tensors of `stay` (parameters, the stage's input), and views of them, are never moved. `share` is the part, 0 to 1,
    of the bytes of all others that `move_out` moves at most.
    """

    def __init__(self, stay: Iterable[torch.Tensor], share: float) -> None:
        self._stay = {one.untyped_storage().data_ptr() for one in stay}
        self._share, self._here, self._host = share, dict[int, Any](), dict[int, Any]()

    def collect(self) -> AbstractContextManager[Any]:
        """Return a context in which a forward must run so that its saved tensors are collected.

        The backward runs outside of it, and after `move_in` if `move_out` was called: else it raises `KeyError`.
        """
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
        """Copy saved tensors to the host, the largest first, free them on the device, and return the bytes moved.

        A tensor with which more than `share` of the bytes would be moved stays, and smaller ones are tried.
        """
        most, moved = self._share * sum(one.nbytes() for one in self._here.values()), 0
        for where, storage in sorted(self._here.items(), key=lambda item: -item[1].nbytes()):
            if moved + storage.nbytes() <= most:
                moved += storage.nbytes()
                self._host[where] = _copied(storage, "cpu"), storage.device
                del self._here[where]
        return moved

    def move_in(self) -> None:
        """Copy the tensors on the host back to the device they came from; nothing happens if there are none."""
        for where, (storage, device) in self._host.items():
            self._here[where] = _copied(storage, device)
        self._host.clear()


def _copied(storage: Any, device: Any) -> Any:
    """Return a copy of a storage in the memory of another device, made on the current stream."""
    source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    pinned = torch.device(device).type == "cpu" and source.is_cuda
    target = torch.empty(source.shape, dtype=torch.uint8, device=device, pin_memory=pinned)
    target.copy_(source, non_blocking=True)
    _used_here(source)
    return target.untyped_storage()


def _used_here(tensor: torch.Tensor) -> None:
    """Tell the GPU's allocator that the current stream uses a tensor, so that its memory is not reused too early."""
    if tensor.is_cuda:
        tensor.record_stream(torch.cuda.current_stream())
