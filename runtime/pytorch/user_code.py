"""Location of an exception in the user's own code: its traceback without the frames of libraries."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

_OURS_AND_TORCH = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_PYTHON = sysconfig.get_path("stdlib")
_INSTALLED = str(Path(_PYTHON) / "site-packages")


def described(error: BaseException) -> list[str]:
    """Return the error as a line, then the lines of its traceback that are the user's own code.

    Frames of this project, of PyTorch and of Python are left out. An error that was raised from another one is
    described as that other one, since PyTorch wraps what a stage raises.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    message = (str(error).strip().splitlines() or [""])[0]
    return [f"{type(error).__name__}: {message}", *_frames(error)]


def _frames(error: BaseException) -> Iterator[str]:
    if isinstance(error, SyntaxError) and error.filename:
        yield f"  {error.filename}, line {error.lineno}: {(error.text or '').strip()}"
        return
    for frame in traceback.extract_tb(error.__traceback__):
        if not _of_a_library(frame.filename):
            yield f"  {frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line}"


def _of_a_library(filename: str) -> bool:
    in_python = filename.startswith(_PYTHON) and not filename.startswith(_INSTALLED)
    return in_python or filename.startswith((*_OURS_AND_TORCH, "<frozen"))
