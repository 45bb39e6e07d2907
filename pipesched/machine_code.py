"""Compiles a function and its callees to machine code once, together, rather than each callee alone as well.

Numba optimizes each function with all that it calls, translates it, and does so again within every function that calls
it, which is a third of the time of compiling. Here a function is linked with its callees; where Python enters it, all
of that is optimized and translated at once. A function that Python never enters is cached on disk as it was linked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

_LINKED_FIRST = ContextVar("linked_first", default=False)


@contextmanager
def linked_first() -> Iterator[None]:
    """Within the context, functions are translated where Python enters them; other users of Numba are not affected."""
    codegen: Any = cpu_target.target_context.codegen()
    codegen.__class__ = _Codegen
    before = _LINKED_FIRST.set(True)
    try:
        yield
    finally:
        _LINKED_FIRST.reset(before)


class _Library(JITCodeLibrary):
    """A function linked with what it calls."""

    _translated = False

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Where its machine code begins, which is made now if this is one of its functions; else 0."""
        self._ensure_finalized()
        if not self._translated and any(name == one.name for one in self.get_defined_functions()):
            self._translated = True
            codegen: Any = self._codegen
            codegen._check_llvm_bugs()
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
            for variable in self._final_module.global_variables:
                if (environment := lookup_environment(variable.name)) is not None:
                    codegen.set_env(variable.name, environment)
        found: int = super().get_pointer_to_function(name)
        return found

    def serialize_using_object_code(self) -> Any:
        return super().serialize_using_object_code() if self._translated else self.serialize_using_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, code = state
        if kind != "bitcode":
            return super()._unserialize(codegen, state)
        found: Any = cls(codegen, name)
        found._final_module, found._finalized = llvm.parse_bitcode(code), True
        return found


class _Codegen(JITCPUCodegen):
    """Has such libraries while functions of ours are compiled or read from disk."""

    @property
    def _library_class(self) -> type[JITCodeLibrary]:  # type: ignore[override]
        return _Library if _LINKED_FIRST.get() else JITCodeLibrary

    def set_env(self, env_name: str, env: Any) -> None:
        """Constants of a function: those of one that is not yet translated follow with its machine code."""
        if self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)
