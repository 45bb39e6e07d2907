"""A picture that a notebook shows and a file keeps, drawn when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from pipesched.errors import BadInput

Format = Literal["png", "svg", "pdf"]
_FORMATS: dict[str, Format] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}


@dataclass(frozen=True)
class Picture:
    """A drawing and its options: `render` gives the bytes of a format."""

    title: str
    render: Callable[[Format], bytes]

    def __repr__(self) -> str:
        return f"<Picture {self.title!r}; save(PATH) writes .png, .svg or .pdf>"

    def _repr_png_(self) -> bytes:
        return self.render("png")

    def save(self, path: str | Path) -> Path:
        """Write it in the format of the path's ending; returns the path."""
        file = Path(path)
        format = _FORMATS.get(file.suffix.lower())
        if format is None:
            raise BadInput(f"{path}: found the ending {file.suffix!r}; allowed: {', '.join(_FORMATS)}")
        file.write_bytes(self.render(format))
        return file


def picture_of(thing: object) -> Picture:
    """The picture of a result; plots stand above results, so that it is found by the name that the package offers."""
    found: Picture = import_module("pipesched").picture_of(thing)
    return found
