"""HTML of an object for notebooks; modules that know a type register a function for it."""

from functools import singledispatch


@singledispatch
def html_of(_: object) -> str | None:
    """Return the HTML of an object; None if no function is registered, and the notebook then shows the `repr`."""
    return None
