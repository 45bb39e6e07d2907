"""The HTML that a notebook shows of an object; modules that know a type register how it is written."""

from functools import singledispatch


@singledispatch
def html_of(_: object) -> str | None:
    """None where nothing is registered: the notebook then shows the `repr`."""
    return None
