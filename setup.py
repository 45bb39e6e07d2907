"""Builds the wheel, in which every package of this repository lies inside the one package `pipesched`.

In the checkout and in an editable install `solver`, `runtime`, `plots`, ... are packages of their own, which editors
and type checkers follow without any setting. In site-packages they would shadow a user's `solver.py` or `runtime/`, or
be shadowed by it: there `solver.limits` becomes `pipesched.solver.limits`, and the sources are rewritten to say so.
Everything else about the project is in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info
from setuptools.errors import SetupError

HOME = "pipesched"
TAKE_A_PACKAGE = ("Registry", "import_module")  # calls whose first argument is the name of a package or module


def relocated(source: str, path: str, modules: Iterable[str]) -> str:
    """Return a source as the wheel has it; `modules` are the dotted names of all modules and packages that move.

    Rewritten are imports, wherever they stand, strings that contain the full name of a module (`"solver.limits"`), and
    the name of a package as the first argument of `TAKE_A_PACKAGE`. No line moves. Raises `SetupError` with a line for
    each other string that looks like the name of a module or package of ours, so that none is missed.
    """
    rewriting = _Rewriting(source.encode(), frozenset(modules))
    rewriting.visit(ast.parse(source, path))
    if rewriting.unsure:
        raise SetupError("\n".join(f"{path}:{line}: {why}" for line, why in rewriting.unsure))
    return rewriting.result().decode()


@cache
def _names_in(modules: frozenset[str]) -> tuple[frozenset[str], re.Pattern[str], re.Pattern[bytes]]:
    """Return the packages of the modules, with the patterns of what may name a module and of a package's name."""
    packages = frozenset(module.partition(".")[0] for module in modules)
    names = "|".join(sorted(packages))
    mention = re.compile(rf"(?<![\w./-])(?:{names})(?:(?:\.[A-Za-z_]\w*)+|/\w[\w/.]*)")
    return packages, mention, re.compile(rf"\b(?:{names})\b".encode())


class _Rewriting(ast.NodeVisitor):
    """One pass over a source, which collects the replacements to make in its bytes.

    `unsure` has line and reason for each string that may name a module and cannot be rewritten.
    """

    def __init__(self, source: bytes, modules: frozenset[str]) -> None:
        self._source, self._modules = source, modules
        self._packages, self._mention, self._name = _names_in(modules)
        self._lines = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", source))]
        self._edits: list[tuple[int, int, str]] = []
        self.unsure: list[tuple[int, str]] = []

    def result(self) -> bytes:
        """Return the source with all replacements made, the last first, so that offsets stay right."""
        made = self._source
        for start, end, text in sorted(self._edits, reverse=True):
            made = made[:start] + text.encode() + made[end:]
        return made

    def visit(self, node: ast.AST) -> None:
        """Visit a node, but for a statement in whose lines no package is named: most of them, with all in them."""
        if isinstance(node, ast.stmt):
            first = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
            last = node.end_lineno or node.lineno
            end = self._lines[last] if last < len(self._lines) else len(self._source)
            if self._name.search(self._source, self._lines[first - 1], end) is None:
                return
        super().visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and self._moves(node.module or ""):
            self._replace(node, re.sub(r"\Afrom[\s\\]+", rf"\g<0>{HOME}.", self._text(node)))

    def visit_Import(self, node: ast.Import) -> None:
        """Rewrite `import solver.limits`, which must still bind the name `solver`: `from pipesched import solver` is
        added."""
        parts, names = [], set()
        for alias in node.names:
            moves = self._moves(alias.name)
            parts.append((f"{HOME}." if moves else "") + alias.name + (f" as {alias.asname}" if alias.asname else ""))
            if moves and not alias.asname:
                names.add(alias.name.partition(".")[0])
        if any(self._moves(alias.name) for alias in node.names):
            made = "".join(f"; from {HOME} import {name}" for name in sorted(names))
            self._replace(node, f"import {', '.join(parts)}{made}")

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        first = node.args[0] if node.args else None
        if called in TAKE_A_PACKAGE and isinstance(first, ast.Constant) and first.value in self._packages:
            self._replace(first, self._text(first).replace(first.value, f"{HOME}.{first.value}"))
            node.args.pop(0)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Visit keys and values, but for a key that is one word, such as "runtime": it is data and no package's
        name."""
        for part in [*node.keys, *node.values]:
            if part is not None and not (part in node.keys and getattr(part, "value", None) in self._packages):
                self.visit(part)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Rewrite the modules that a docstring names; all else in it is prose, and never counts as unsure."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)
        elif isinstance(node.value.value, str):
            self._mentions(node.value, node.value.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if not isinstance(part, ast.Constant):
                self.visit(part)
            elif self._mention.search(str(part.value)):
                self.unsure.append((node.lineno, f"{part.value!r} may name a module; write it outside of the f-string"))

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if not isinstance(value, str):
            return
        if value in self._packages:
            self.unsure.append((node.lineno, f"{value!r} may name a package; take the name from `__package__`"))
        elif not self._mentions(node, value):
            self.unsure.append((node.lineno, f"{value!r} may name a module; of ours there is none of that name"))

    def _mentions(self, node: ast.Constant, value: str) -> bool:
        """Rewrite the modules that a string names; return False if it seems to name one that does not exist."""
        names = [match[0] for match in self._mention.finditer(value)]
        known = [name for name in names if self._is_module(name)]
        if known:
            text = self._moved_in(self._text(node))
            if ast.literal_eval(f"({text})") != self._moved_in(value):
                return False
            self._replace(node, text)
        return known == names

    def _moved_in(self, text: str) -> str:
        return self._mention.sub(lambda match: f"{HOME}." * self._is_module(match[0]) + match[0], text)

    def _is_module(self, name: str) -> bool:
        """Return True if this is the dotted name of a module that moves, or of something in one."""
        parts = name.split(".")
        return any(".".join(parts[:n]) in self._modules for n in range(2, len(parts) + 1))

    def _moves(self, module: str) -> bool:
        return module.partition(".")[0] in self._packages

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[last - 1] + column

    def _text(self, node: ast.stmt | ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _replace(self, node: ast.stmt | ast.expr, text: str) -> None:
        self._edits.append((*self._span(node), text))


class RelocatedSources(build_py):
    """Copies the packages into `pipesched`, their sources rewritten; an editable install has them as they are."""

    def finalize_options(self) -> None:
        """Set the name of each package in the wheel, and its folder in the checkout."""
        super().finalize_options()
        if not self.editable_mode:
            self.package_dir = {_home(name): name.replace(".", "/") for name in self.packages or []}
            self.package_data = {_home(name): files for name, files in self.package_data.items()}
            self.packages = list(self.package_dir)

    def run(self) -> None:
        """Build from an empty folder, since files of an earlier build would go into the wheel; add the examples for the
        page."""
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for file in (file for file in Path("examples").rglob("*") if file.is_file()):
            target = Path(self.build_lib, HOME, file)
            self.mkpath(str(target.parent))
            self.copy_file(str(file), str(target))

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        """Copy one module and rewrite its source; return its path in the build and True if it was copied."""
        target, copied = super().build_module(module, module_file, package)
        source = Path(module_file).read_bytes().decode()
        Path(target).write_bytes(relocated(source, module_file, self._moved()).encode())
        return target, copied

    @cache  # noqa: B019 - there is one such command, and it lives as long as the build
    def _moved(self) -> frozenset[str]:
        """Return the dotted names, in the checkout, of the packages that move and of their modules."""
        modules = [(self.package_dir[package].replace("/", "."), name) for package, name, _ in self.find_all_modules()]
        found = {f"{package}.{name}" for package, name in modules}
        found |= {name.removesuffix(".__init__") for name in found}
        return frozenset(name for name in found if name.partition(".")[0] != HOME)


class OneName(egg_info):
    """Metadata that names the one package that an installation adds to site-packages."""

    def run(self) -> None:
        """Write the metadata with `pipesched` alone; setuptools would list the packages of the checkout."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text(f"{HOME}\n")


def _home(package: str) -> str:
    """Return the dotted name that a package of the checkout has in the wheel."""
    return package if package.partition(".")[0] in (HOME, "*") else f"{HOME}.{package}"


if __name__ == "__main__":
    setup(cmdclass={"build_py": RelocatedSources, "egg_info": OneName})
