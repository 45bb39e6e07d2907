"""Results that are a table: in a notebook, as a data frame, and with a picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pipesched.data_frame import frame_of
from pipesched.notebook.table_html import table_html
from pipesched.picture import Picture, picture_of


class Tabular(ABC):
    """`records` are its rows, in the file's units; `said` is all of it in a line."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """A row each, as figures by name."""

    @abstractmethod
    def said(self) -> str:
        """In a line of text."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.said()}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return table_html(self.said(), self.records())

    def to_frame(self) -> Any:
        """The records as a `pandas.DataFrame`; `BadInput` where pandas is not installed."""
        return frame_of(self.records())

    def plot(self) -> Picture:
        """The picture that a notebook shows, and that `save(PATH)` writes; `BadInput` where nothing was found."""
        return picture_of(self)
