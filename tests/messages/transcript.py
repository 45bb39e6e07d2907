"""What the commands of a topic print, as one text: each command, what it said and its exit code."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from commands.main import main
from tests.messages.cases import FILES, TOPICS

FOLDER = Path(__file__).parent


def transcript(topic: str) -> str:
    """The text of a topic; it is the same on every machine."""
    with TemporaryDirectory() as folder, chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        return "\n".join(part for command in TOPICS[topic] for part in _said(command))


def held(topic: str) -> Path:
    """The file that holds the text."""
    return FOLDER / f"{topic}.txt"


def _said(command: Sequence[str]) -> Iterator[str]:
    if command[0] == "EDIT":
        yield f"# in {command[1]}: {command[2]} = {command[3]}\n"
        _edit(Path(command[1]), command[2], json.loads(command[3]))
        return
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = _code(command)
    yield f"$ pipesched {' '.join(command)}"
    for name, stream in (("", out), ("standard error:\n", err)):
        stream.seek(0)
        text = _without_what_varies(stream.read())
        if text:
            yield name + text.rstrip("\n")
    yield f"exit code {code}\n"


def _code(command: Sequence[str]) -> object:
    try:
        return main(list(command))
    except SystemExit as ended:  # by argparse, over an option
        return ended.code


# Progress and seconds depend on the clock; which of several best schedules a search returns is no message either.
_VARYING = (
    (r"^ *\d+\.\d s  .*\n", ""),
    (r"\b\d+(\.\d+)? s\b", "… s"),
    (r"^(│ pipesched +│).*$", r"\1 …"),
    (r"^(peak memory of each device .*?: )[^;\n]*", r"\1…"),
    (r"^(under .* mean \w+ ).*$", r"\1…"),
    # Names of registries, which grow by a file.
    (r"^\d+ (other schedules do not apply)", r"… \1"),
    (r"(; known: )[^;\n]*", r"\1…"),
)


def _without_what_varies(text: str) -> str:
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def _edit(path: Path, key: str, value: object) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    outer, _, inner = key.partition(".")
    if inner:
        document[outer][inner] = value
    else:
        document[outer] = value
    path.write_text(json.dumps(document), encoding="utf-8")
