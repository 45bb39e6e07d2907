"""Draws docstrings for a reader who explains them without the code, and for the judge who compares.

python -m docs.draw_docstrings 20261207 -o questions.md

Writes a sheet with what a caller sees: signature, docstring, the docstrings of class and module, the type aliases that
the signature names, and at the end the classes in signatures; and FILE.key, which says where each one stands. The scale
is at the end of "Standard terms" in docs/concepts.md.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("commands", "formulations", "heuristics", "pipesched", "plots", "runtime", "solver", "targets", "web")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Documented(NamedTuple):
    """A function, method or class with a docstring: where it stands, and what it is defined in, outermost first."""

    path: Path
    node: ast.ClassDef | _Function
    within: tuple[ast.ClassDef | _Function, ...]

    @property
    def name(self) -> str:
        return ".".join(one.name for one in (*self.within, self.node))

    @property
    def file(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    def text(self) -> str:
        """Return what its caller sees: signature, docstrings, and the type aliases that the signature names."""
        text = [
            f"`{self.name}` of module `{self.module}`",
            _code(_signature(self.node)),
            ast.get_docstring(self.node) or "",
        ]
        for one in self.within:
            text.append(f"Its {'class' if isinstance(one, ast.ClassDef) else 'function'}:")
            text += [_code(_signature(one)), ast.get_docstring(one) or ""]
        text.append(f"Its module: {ast.get_docstring(_trees()[self.path])}")
        used = [_aliases()[one] for one in self.types if one in _aliases()]
        text += ["Aliases:", _code("\n".join(used))] if used else []
        return "\n\n".join(text)

    @property
    def types(self) -> list[str]:
        """The words of the signature that may name types, in their order, each once."""
        return [*dict.fromkeys(re.findall(r"[A-Z]\w*", _signature(self.node)))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the sheet and its key; always 0."""
    parser = ArgumentParser("python -m docs.draw_docstrings", description=__doc__)
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    args = parser.parse_args(arguments)
    drawn = random.Random(args.seed).sample(documented(), args.count)
    sheet = [f"## {number}. {one.text()}" for number, one in enumerate(drawn, 1)]
    sheet += ["# Classes in these signatures", *_classes(drawn)]
    args.output.write_text("\n\n".join(sheet) + "\n", encoding="utf-8")
    keys = [f"{number} {one.file}:{one.node.lineno} {one.name}" for number, one in enumerate(drawn, 1)]
    args.output.with_name(f"{args.output.name}.key").write_text("\n".join(keys) + "\n", encoding="utf-8")
    return 0


def _classes(drawn: Sequence[Documented]) -> list[str]:
    """Return what a caller sees of each class that the signatures name, once, without those drawn."""
    every = {(one.module, one.name): one for one in documented() if isinstance(one.node, ast.ClassDef)}
    named = dict.fromkeys((_imported(one.path).get(name, one.module), name) for one in drawn for name in one.types)
    found = [every[key] for key in named if key in every and every[key] not in drawn]
    return [
        f"## `{one.name}` of module `{one.module}`\n\n{_code(_signature(one.node))}\n\n{ast.get_docstring(one.node)}"
        for one in found
    ]


def _imported(path: Path) -> dict[str, str]:
    """Return by name the module that a file imports it from."""
    return {
        name.asname or name.name: one.module or ""
        for one in ast.walk(_trees()[path])
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }


def documented() -> list[Documented]:
    """Return everything with a docstring in the packages of production, in the order of paths and lines."""
    return [
        Documented(path, node, within)
        for path, tree in _trees().items()
        for node, within in _defined(tree, ())
        if ast.get_docstring(node)
    ]


@cache
def _trees() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def _defined(
    tree: ast.AST, within: tuple[ast.ClassDef | _Function, ...]
) -> Iterator[tuple[ast.ClassDef | _Function, tuple[ast.ClassDef | _Function, ...]]]:
    """Yield each function and class below a node, with the functions and classes around it, outermost first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | _Function):
            yield node, within
            yield from _defined(node, (*within, node))
        elif not isinstance(node, ast.expr):
            yield from _defined(node, within)


def _signature(node: ast.ClassDef | _Function) -> str:
    """Return the first lines of a definition: decorators, name, parameters and result, or bases and fields."""
    lines = [f"@{ast.unparse(one)}" for one in node.decorator_list]
    if isinstance(node, ast.ClassDef):
        fields = [f"    {ast.unparse(one)}" for one in node.body if isinstance(one, ast.AnnAssign)]
        return "\n".join([*lines, f"class {node.name}({', '.join(map(ast.unparse, node.bases))})", *fields])
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return "\n".join([*lines, f"def {node.name}({ast.unparse(node.args)}){result}"])


@cache
def _aliases() -> dict[str, str]:
    """Return by the name of each type alias of any module its definition with the comment above it."""
    found = {}
    for path, tree in _trees().items():
        aliases = [one for one in tree.body if isinstance(one, ast.AnnAssign) and _is_alias(one)]
        lines = path.read_text(encoding="utf-8").splitlines() if aliases else []
        for node in aliases:
            first = node.lineno - 1
            while lines[first - 1].startswith("#"):
                first -= 1
            found[ast.unparse(node.target)] = "\n".join(lines[first : node.end_lineno])
    return found


def _is_alias(node: ast.AnnAssign) -> bool:
    return ast.unparse(node.annotation) == "TypeAlias"


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


if __name__ == "__main__":
    sys.exit(main())
