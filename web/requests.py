"""Requests of the page: JSON objects whose fields are checked before anything is done."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from pipesched.errors import BadInput

_Short = Annotated[str, Field(max_length=200)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Edit(_Asked):
    """A text typed into the field `path` of the form; an empty text removes its key from the file."""

    path: _Short
    typed: Annotated[str, Field(max_length=20_000)]


class Compare(_Asked):
    """A request for all published schedules on the problem file in `text`, after the form's `edits` in their order."""

    text: str
    edits: Annotated[list[Edit], Field(max_length=50)] = []


class Chart(_Asked):
    """A request for the chart of the published schedule named `schedule`, on the problem file in `text`."""

    text: str
    schedule: _Short


class Begin(_Asked):
    """A request for a solve; `tab` identifies the browser tab, `target` is the solve's runtime (None: any).

    `text` is the problem or plan file, `seconds` the time limit, `workers` the number of threads.
    """

    text: str
    seconds: float | int
    workers: int
    seed: int = 0
    target: _Short | None = None
    tab: Annotated[str, Field(min_length=8, max_length=64)]


class File(_Asked):
    """A request for a file of a published schedule of a problem, or of a solve's result.

    `text` and `schedule` are None in a request for a solve's file, `solve` is None in the other.
    """

    format: _Short
    text: str | None = None
    schedule: _Short | None = None
    solve: _Short | None = None


Asked = TypeVar("Asked", bound=_Asked)


async def read(request: Request, kind: type[Asked], most: int) -> Asked:
    """Return the body of a request, of at most `most` bytes, as this kind of request.

    `BadInput` for a longer one, and with a line for each of the first ten mistakes.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise BadInput(f"found a request of more than {most} bytes; allowed: up to so many")
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc'])) or 'request'}: {one['msg']}" for one in error.errors()[:10]]
        raise BadInput(*lines) from None
