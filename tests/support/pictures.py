"""Commands write empty pictures, for tests that assert nothing of them: drawing takes a quarter of a second each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from matplotlib.figure import Figure

from plots import render


@contextmanager
def empty_pictures() -> Iterator[None]:
    """Context in which pictures become empty files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "_lay_out", lambda _: None)
        patch.setattr(Figure, "draw_without_rendering", lambda _: None)
        patch.setattr(Figure, "savefig", lambda *_, **__: None)
        yield
