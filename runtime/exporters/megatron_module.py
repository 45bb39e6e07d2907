"""Assembly of the one file that `export --format megatron` writes: the sources of the executor, then the schedule."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from pprint import pformat
from typing import Any

from pipesched.version import VERSION

_SOURCES = Path(__file__).parent.parent
# Modules of our executor, each after those that it imports.
_ORDER = (
    "execution/program",
    "megatron/batches",
    "execution/transfers",
    "megatron/transformer_engine",
    "megatron/weight_gradients",
    "megatron/reductions",
    "megatron/call",
    "megatron/forwards",
    "megatron/random_state",
    "execution/saved",
    "megatron/activations",
    "execution/streams",
    "megatron/iteration",
    "megatron/evaluation",
    "megatron/placement",
    "megatron/install",
)

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}
"""A pipeline schedule for Megatron-Core, 0.16 or later: import this module before the model is built.

{proof}
"""

{sources}


# ---- the schedule ----

DOCUMENT = {document}

install(DOCUMENT)
'''


def module_text(document: Mapping[str, Any], proof: str) -> str:
    """Return the text of a module that, when imported, has Megatron run a document of `runtime.exporters.megatron`.

    `proof` says that the programs end, and why, for the module's docstring: a sentence without capital and full stop.
    """
    return _MODULE.format(
        schedule=document["schedule"],
        problem=document["problem"],
        version=VERSION,
        proof=proof[0].upper() + proof[1:] + ".",
        sources=_sources(),
        document=pformat(document, width=118, sort_dicts=False),
    )


def _sources() -> str:
    """Return the source of all modules as one.

    Imports come first, without those of each other, and docstrings are comments.
    """
    imports, bodies = list[ast.Import | ast.ImportFrom](), list[str]()
    for name in _ORDER:
        text = (_SOURCES / f"{name}.py").read_text(encoding="utf-8")
        tree = ast.parse(text)
        found = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        imports += [node for node in found if not _is_own(node)]
        words = "\n".join(f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines())
        body = "\n".join(text.splitlines()[found[-1].end_lineno :]).strip()
        bodies.append(f"# ---- {name} ----\n{words}\n\n{body}")
    return "\n\n\n".join([_merged(imports), *bodies])


def _merged(imports: Sequence[ast.Import | ast.ImportFrom]) -> str:
    """Return the imports of all modules as text, each once: `from __future__` first, then `import` before `from`."""
    whole = sorted({ast.unparse(node) for node in imports if isinstance(node, ast.Import)})
    names: dict[str, set[str]] = {}
    for node in imports:
        if isinstance(node, ast.ImportFrom):
            names.setdefault(str(node.module), set()).update(map(ast.unparse, node.names))
    future = names.pop("__future__")
    parts = [f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)]
    return "\n".join((f"from __future__ import {', '.join(future)}", "", *whole, *parts))


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    """Return True for imports from a sibling folder of this package, wherever it is installed."""
    siblings = f"{str(__package__).rpartition('.')[0]}."
    return isinstance(node, ast.ImportFrom) and str(node.module).startswith(siblings)
