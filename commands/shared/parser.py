"""The command-line parser: every command with its arguments."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter, _MutuallyExclusiveGroup
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NoReturn

from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.output import complain
from commands.shared.versions import ShowVersions
from pipesched.errors import did_you_mean

# Options by what they are for; all others say what is asked. Where nothing is searched for, a seed is no limit.
_LIMITS = frozenset(
    {"--time-limit", "--workers", "--seed", "--gap", "--explain-time", "--total-time", "--jobs", "--cluster"}
)
_OUTPUT = frozenset(
    {"--json", "--watch", "-o", "--text", "--bars", "--why-not", "--settings", "--store", "--parquet", "--write"}
)

# What other programs call the options that no likeness of letters leads to.
_USUAL = {
    "--time-limit": {"--timeout", "--seconds", "--max-time"},
    "--workers": {"--threads", "--num-workers", "--cores", "--num-threads"},
    "--output": {"--out-dir", "--output-dir", "--outdir", "--save"},
    "--gpus": {"--devices", "--world-size", "--num-devices"},
    "--tensor": {"--tp", "--tensor-model-parallel-size"},
    "--pipeline": {"--pp", "--pipeline-model-parallel-size"},
    "--for": {"--target", "--runtime"},
}

_SURE = 0.7  # options less alike than this, as --schedule and --seed, are not meant for each other


class _Parser(ArgumentParser):
    """A parser whose errors are one line and suggest the nearest name."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        # As in Python 3.14: a word such as -5% is a value, to be refused by its option, and no option itself.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        if choice := re.fullmatch(r"argument (.+): invalid choice: '?(.*?)'? \(choose from (.+)\)", message):
            of, word = choice[1], choice[2]
            names = COMMANDS.names() if of == "COMMAND" else choice[3].replace("'", "").split(", ")
            found = f"unknown command {word!r}; known" if of == "COMMAND" else f"{of}: found {word!r}; allowed"
            message = f"{found}: {', '.join(names)}{did_you_mean(word, names)}"
        complain(f"{message} (see `{self.prog} --help`)")
        raise SystemExit(Exit.BAD_INPUT)


class _CommandParser(_Parser):
    """The parser of one command, whose help groups arguments into input, limits of the search, and output."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, add_help=False, **keywords)
        self._asked = self.add_argument_group("what is asked")
        self._limits, self._output = self.add_argument_group("limits"), self.add_argument_group("output")
        self._searches = False
        self._output.add_argument("-h", "--help", action="help", help="show this help message and exit")

    def add_argument(self, *names: str, **keywords: Any) -> Action:
        """Add an option, as any parser does, to the group that it belongs to."""
        if not names or not names[-1].startswith("-"):
            return super().add_argument(*names, **keywords)
        self._searches = self._searches or "--time-limit" in names
        if self._searches and not _LIMITS.isdisjoint(names):
            return self._limits.add_argument(*names, **keywords)
        return (self._asked if _OUTPUT.isdisjoint(names) else self._output).add_argument(*names, **keywords)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse as any parser does, but print what is left over and exit with code 2.

        So the list returned is always empty. For an unknown option the message gives a hint: the nearest option, or
        that it is a key of the file. The exit is a `SystemExit`.
        """
        known, left = super().parse_known_args(args, namespace)
        unknown = [word.partition("=")[0] for word in left if word.startswith("-")]
        takes = " ".join([self.prog, *(str(each.metavar or each.dest) for each in self._positionals._group_actions)])
        wrong = [f"unknown option {word}{self._instead_of(word)}" for word in unknown]
        for text in wrong or [f"found {word} too; allowed: {takes}" for word in left]:
            complain(f"{text} (see `{self.prog} --help`)")
        if left:
            raise SystemExit(Exit.BAD_INPUT)
        return known, left

    def _instead_of(self, word: str) -> str:
        """Return a hint for an unknown option: that it is a key of the file, or the nearest option."""
        from pipesched.files.plans.schema import PlanFile
        from pipesched.files.problems.schema import ProblemFile

        keys = {"plan": PlanFile.model_fields, "problem": ProblemFile.model_fields}
        key = word.removeprefix("--")
        if any(key in keys.get(action.dest, ()) for action in self._positionals._group_actions):
            return f"; `{key}` is a key of the file"
        usual = next((ours for ours, others in _USUAL.items() if word in others), "")
        if usual in self._option_string_actions:
            return f"; did you mean '{usual}'?"
        return did_you_mean(word, self._option_string_actions, _SURE)

    def add_mutually_exclusive_group(self, **keywords: Any) -> _MutuallyExclusiveGroup:
        """Add a group of mutually exclusive options to the input arguments."""
        return self._asked.add_mutually_exclusive_group(**keywords)


class _Grouped(RawDescriptionHelpFormatter):
    """Help formatter that leaves out argparse's own list of commands, since the epilog shows them in groups.

    The commands stay registered, so that shell completion finds them.
    """

    def _iter_indented_subactions(self, action: Action) -> Generator[Action, None, None]:  # noqa: ARG002
        yield from ()


def parser(words: Sequence[str] = ()) -> ArgumentParser:
    """Return the parser for these words of a command line: of one command if they begin with its name, else of all."""
    needed = tuple(_needed(words))
    root = _Parser(
        prog="pipesched",
        description="The best schedule for your pipeline-parallel training, with proof.",
        formatter_class=_Grouped,
        epilog=_listed(needed),
    )
    root.add_argument("--version", action=ShowVersions, help="the versions of pipesched and of what it rests on")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True, parser_class=_CommandParser)
    for command in needed:
        example = f"example: {root.prog} {command.example}" if command.example else None
        sub = subparsers.add_parser(command.name, help=command.help, description=command.help, epilog=example)
        command.configure(sub)
        sub.set_defaults(run=command.run)
    return root


def _listed(commands: Sequence[Command]) -> str:
    """Return the commands by group, a line each."""
    wide = max((len(command.name) for command in commands), default=0)
    lines = list[str]()
    for group in Group:
        own = [f"  {command.name:{wide}}  {command.help}" for command in commands if command.group is group]
        lines += [f"{group.value}:", *own, ""] if own else []
    return "\n".join([*lines, "pipesched COMMAND --help has its options and an example"])


def _needed(words: Sequence[str]) -> Iterable[Command]:
    """Return the commands whose arguments the parser needs to read these words of a command line.

    To add all of them imports everything, which takes seconds. All commands are needed if the first word is no
    command's name, none for `--version`.
    """
    if words and words[0] == "--version":
        return ()
    asked = COMMANDS.alone(words[0]) if words else None
    return COMMANDS if asked is None else (asked,)
