"""Sets up everything from a bare clone: a virtual environment, the installation, and then pipesched or its tests.

python3 go.py solve examples/gpt-1.5b-pp8.yaml -o results     any command of pipesched; each takes --help:
                                                              layouts, solve, plan, compare, pair, sweep, frontier,
                                                              simulate, serve, new, layers, profile,
                                                              fit-memory, calibrate, schedules, export, run, plot,
                                                              validate, check, completion
python3 go.py --extra torch run results/schedule.json         with what an extra needs (torch, web, parquet, cluster):
                                                              later calls have it too
python3 go.py test                                            the test suite; more arguments go to pytest
python3 go.py test tests/web                                  the tests of that path only
python3 go.py test --extra torch                              also what needs PyTorch
python3 go.py check                                           lint, types and layers
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
HOME = ROOT / ".venv"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(*extras: str) -> None:
    """Install the project with the extras, unless this very pyproject.toml has been installed with them before."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the reader's Python may be older than the project allows
        sys.exit(f"pipesched needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    if not PYTHON.exists():
        print(f"making a virtual environment in {HOME}", file=sys.stderr)
        try:
            venv.create(HOME, with_pip=True)
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv")
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    marks = {extra: HOME / f".installed-{extra or 'base'}" for extra in ("", *extras)}
    lacking = [extra for extra, mark in marks.items() if not (mark.exists() and mark.read_text() == wanted)]
    if not lacking:
        return
    name = f"[{','.join(filter(None, lacking))}]" if any(lacking) else ""
    print(f"installing pipesched{name}, which takes half a minute or more", file=sys.stderr)
    flags = ["--quiet", "--disable-pip-version-check"]
    if not sys.dont_write_bytecode:
        # Python compiles what a command imports; pip would compile all that is installed, half of its time.
        flags += ["--no-compile"]
    command = [PYTHON, "-m", "pip", "install", *flags, "--editable", f"{ROOT}{name}"]
    if subprocess.run(command, check=False).returncode:
        sys.exit("the installation failed; what pip said is above")
    for extra in lacking:
        marks[extra].write_text(wanted)


def run(*command: str, **variables: str) -> int:
    """Run a module of the environment in the caller's folder, with more environment variables; return its exit code.

    Ctrl-C is left to the module.
    """
    process = subprocess.Popen([PYTHON, *command], env=os.environ | variables)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            continue


def become(*command: str, **variables: str) -> int:
    """Replace this process by a module of the environment, so that every signal sent to it is the module's.

    On Windows, which cannot, run it and return its exit code.
    """
    if os.name != "nt":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(PYTHON, [str(PYTHON), *command], os.environ | variables)
    return run(*command, **variables)


def test(arguments: list[str]) -> int:
    """Run the test suite with pytest on all cores; a process that is done takes tests of another one.

    One process more than there are cores, since tests wait for processes and clocks a fifth of their time.
    `--extra NAME` among the arguments installs an extra first; all others go to pytest.
    """
    extras = ["test"]
    while "--extra" in arguments:
        at = arguments.index("--extra")
        extras += arguments[at + 1 : at + 2]
        del arguments[at : at + 2]
    install(*extras)
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    config, cores = str(ROOT / "pyproject.toml"), ["-n", str(count + 1), "--dist", "worksteal"]
    paths = [] if any(map(_is_path, ["", *arguments], arguments)) else [str(ROOT / "tests")]
    # What tests import is compiled once, not by every process that they start, whatever the caller's environment says.
    return become("-m", "pytest", *paths, "-c", config, *cores, *arguments, PYTHONDONTWRITEBYTECODE="")


def _is_path(before: str, word: str) -> bool:
    """Return True if a word is a path of tests, and not the value of the option `before` it."""
    return before not in ("-k", "-m", "-n", "-o", "-p") and Path(word.partition("::")[0]).exists()


def check() -> int:
    """Run lint, format, types and layers, all of them even if one fails; return 1 if any failed, else 0."""
    install("dev")
    os.chdir(ROOT)
    tools = (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"])
    failed = [tool for tool in tools if run("-m", *tool)]
    layers = run("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
    return 1 if failed or layers else 0


def main() -> int:
    """Run what the first word of the command line asks for: help, tests, checks, or a command of pipesched.

    Returns the exit code.
    """
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, flush=True)
        return 0
    if sys.argv[1] == "test":
        return test(sys.argv[2:])
    if sys.argv[1] == "check":
        return check()
    words, extras = sys.argv[1:], []
    while words[:1] == ["--extra"] and len(words) > 1:
        extras.append(words[1])
        words = words[2:]
    install(*extras)
    program = shlex.join([Path(sys.executable).name, sys.argv[0]])  # for what it says to type
    return become("-P", "-m", "pipesched", *words, PIPESCHED_PROGRAM=program)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # who reads the help, as `| head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
