"""Many small cases as one test: pytest takes longer to start and report a test than such a case takes to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Signature, signature
from typing import Any

import pytest

_PARAMETERS = type(pytest.param())


def in_turn(names: str | Sequence[str], cases: Iterable[Any], ids: object = None) -> Callable[..., Any]:
    """In place of `pytest.mark.parametrize`: a decorator that makes one test of all cases, tried one after the other.

    The error of a case names it. Fixtures are shared by all cases; `ids` are not used.
    """
    del ids
    several = not isinstance(names, str) or "," in names
    own = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = list(cases)
    assert given, "found no case"
    assert not any(isinstance(one, _PARAMETERS) and one.marks for one in given), "cases of one test have no marks"
    rows = [one.values if isinstance(one, _PARAMETERS) else one if several else (one,) for one in given]

    def of(check: Callable[..., None]) -> Callable[..., None]:
        def test(**given: object) -> None:
            for row in rows:
                case = dict(zip(own, row, strict=True))
                try:
                    check(**given, **case)
                except pytest.skip.Exception:
                    raise AssertionError(f"skipped with {case}: the cases after it would not run") from None
                except BaseException as error:
                    error.add_note(f"with {case}")
                    raise

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        test.__dict__.update(check.__dict__)  # marks
        left = [parameter for name, parameter in signature(check).parameters.items() if name not in own]
        test.__signature__ = Signature(left)  # type: ignore[attr-defined]
        return test

    return of
