"""A picture, drawn when a notebook shows it or a file is written."""

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
    """A drawing with its title: `render` draws it and returns the bytes of a file of this format."""

    title: str
    render: Callable[[Format], bytes]

    def __repr__(self) -> str:
        return f"<Picture {self.title!r}; save(PATH) writes .png, .svg or .pdf>"

    def _repr_png_(self) -> bytes:
        return self.render("png")

    def save(self, path: str | Path) -> Path:
        """Write the picture in the format of the path's ending, over a file that is there; returns the path.

        `BadInput` for an ending that no format has, `OSError` where the file cannot be written.
        """
        file = Path(path)
        format = _FORMATS.get(file.suffix.lower())
        if format is None:
            raise BadInput(f"{path}: found the ending {file.suffix!r}; allowed: {', '.join(_FORMATS)}")
        file.write_bytes(self.render(format))
        return file


def picture_of(thing: object) -> Picture:
    """Return the picture of a result: a timeline, or what `solve`, `plan`, `sweep` or `frontier` return.

    `BadInput` for anything else, and for a result without a schedule. The function is looked up by name in the package,
    since results may not import plots.
    """
    found: Picture = import_module("pipesched").picture_of(thing)
    return found
