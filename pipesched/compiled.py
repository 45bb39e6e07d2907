"""Compilation of inner loops with Numba, cached on disk until anything that they depend on changes.

Numba looks up machine code by a function's file alone, and returns stale code if a function, a constant or a named
tuple of another file that went into it has changed. Here the name of the cache file is a hash of all of them.

`inner` functions do not count references to the arrays that they work on. With counts, a call that passes a few dozen
arrays takes as long as the work of a small move. Even without them passing arrays takes time, so that parts of one
loop, `inlined`, become part of their callers. Code compiled so may use arrays, also in named tuples, but make none.

Only what Python calls becomes machine code, with all that it calls in it. Numba would make machine code of each callee
by itself too, which nobody runs and which takes a third of the time to compile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar

import llvmlite.binding
import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher, cpu_target

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
# Nothing calls compiled functions by their address.
_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}
_numba: Any = numba  # half of it has types


def compiled(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Return a function that is compiled at its first call with each set of types, or read from the cache on disk."""
    return _compiled(function)


def inner(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Return a compiled function to be called by other compiled code; it must not create arrays."""
    return _compiled(function, _nrt=False)


def inlined(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Return a compiled function that becomes part of its callers' code; it must not create arrays."""
    return _compiled(function, _nrt=False, forceinline=True)


def substituted(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Return a function that is compiled again inside each caller, for the types and constants there."""
    return _compiled(function, inline="always")


def _compiled(function: Callable[_Given, _Result], **options: Any) -> Callable[_Given, _Result]:
    """Return a compiled function for Python callers.

    Compiled code that names it calls a variant without Python's interface. Unpacking the arguments from Python is a
    third of the code of a function with several dozen arrays. Most functions are called by compiled code only; on disk
    their code is part of the functions that call them.
    """
    made: Any = _numba.njit(**_OPTIONS, **options)(function)
    if made is not function:  # which Numba gives back where it is told to compile nothing
        callee: Any = _numba.njit(**_OPTIONS, **options, no_cpython_wrapper=True)(function)
        made.__class__, callee.__class__, made.callee = _Caller, _Callee, callee
        made._cache = _Cache(made)
    found: Callable[_Given, _Result] = made
    return found


def fingerprint(functions: Iterable[Any]) -> str:
    """Return a hash of all that machine code of `functions` depends on: sources, constants, machine, versions.

    It is hexadecimal text. The functions are compiled or plain, and their order counts.
    """
    found = sha256(repr((sys.version, numba.__version__, llvmlite.binding.get_host_cpu_name())).encode())
    seen: set[int] = set()
    for function in functions:
        for part in _parts(function, seen):
            found.update(part.encode())
    return found.hexdigest()


def cache_folder(function: Any) -> Path:
    """Return the folder in which the code of a compiled function is cached."""
    return Path(function.stats.cache_path)


class _Caller(CPUDispatcher):
    """The dispatcher that Python calls. Compiled code that names it calls the `_Callee`."""

    callee: Any

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self.callee)


class _Callee(CPUDispatcher):
    """The dispatcher that compiled code calls; numbers known at compile time are passed to it as variables.

    Else Numba would compile the function once more for each such number.
    """

    def compile(self, sig: Any) -> Any:
        """Compile the function, and what it calls, as code to be linked into its callers."""
        before = _is_callee.set(True)
        try:
            return super().compile(sig)
        finally:
            _is_callee.reset(before)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        named = {name: _numba.types.unliteral(one) for name, one in dict(kws).items()}
        return super().get_call_template([_numba.types.unliteral(one) for one in args], named)


# True while a callee is compiled, and with it what it calls.
_is_callee: ContextVar[bool] = ContextVar("_is_callee", default=False)


class _Library(JITCodeLibrary):
    """Code of a function with all that it calls: machine code, or that of a callee, to be linked into its callers."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)  # type: ignore[no-untyped-call]
        self._of_callee = _is_callee.get()

    @property
    def codegen(self) -> Any:
        """The compiler's back end, which for a callee does not look for machine code."""
        return _WithoutEnvironments() if self._of_callee else self._codegen

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function's machine code, 0 if there is none."""
        return 0 if self._of_callee else int(super().get_pointer_to_function(name))  # type: ignore[no-untyped-call]

    def _optimize_final_module(self) -> None:
        """Optimize the code, unless this is a callee's, which is optimized with each caller."""
        if not self._of_callee:
            super()._optimize_final_module()  # type: ignore[no-untyped-call]

    def _finalize_final_module(self) -> None:
        if self._of_callee:
            self._finalized = True
        else:
            super()._finalize_final_module()  # type: ignore[no-untyped-call]


class _WithoutEnvironments:
    """Stands for the back end where Numba enters objects of Python into machine code, of which a callee has none."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


cpu_target.target_context.codegen()._library_class = _Library


class _Cache(FunctionCache):
    """The cache files of one function, looked up when it is called, since later definitions of its module count too."""

    def __init__(self, function: Any) -> None:
        self._function = function
        super().__init__(function.py_func)  # type: ignore[no-untyped-call]

    @property
    def _cache_file(self) -> Any:
        return self._file

    @_cache_file.setter
    def _cache_file(self, _: Any) -> None:
        """Ignore the cache file that Numba sets, which depends on the source of one file only."""

    @cached_property
    def _file(self) -> Any:
        made_of = fingerprint([self._function])
        name = f"{self._py_func.__module__.rpartition('.')[2]}.{self._py_func.__qualname__}"
        return _File(self._cache_path, f"{name}-{made_of[:16]}", made_of)  # type: ignore[no-untyped-call]

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the index key with the names of fields.

        To Numba a named tuple with other fields is still the same type.
        """
        return (*super()._index_key(sig, codegen), tuple(_fields_of(sig)))  # type: ignore[no-untyped-call]


class _File(IndexDataCacheFile):
    """A cache file whose code is ignored if its types have been moved or renamed since."""

    def _load_index(self) -> dict[Any, Any]:
        try:
            found: dict[Any, Any] = super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            return {}
        return found


def _fields_of(kinds: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the fields of named tuples among the Numba types `kinds`, including those inside tuples."""
    for kind in kinds:
        if isinstance(kind, _numba.types.BaseNamedTuple):
            yield from kind.fields
        if isinstance(kind, _numba.types.BaseTuple):
            yield from _fields_of(kind.types)


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield the sources and constants on which the machine code of a function, or of a value that it names, depends.

    `seen` has the ids of the functions that were visited, which are left out; others are added to it.
    """
    if isinstance(value, Dispatcher):
        yield repr(sorted(value.targetoptions.items()))
        value = value.py_func
    if isinstance(value, FunctionType):
        if id(value) not in seen:
            seen.add(id(value))
            yield from _parts_of_code(value.__code__, value.__doc__, value.__globals__, seen)
            yield repr([value.__defaults__, *(one.cell_contents for one in value.__closure__ or ())])
    elif isinstance(value, type):
        yield f"{value.__qualname__} {getattr(value, '_fields', '')}"
    elif isinstance(value, bool | int | float | str | tuple | None):
        yield repr(value)


def _parts_of_code(code: CodeType, text: str | None, names: dict[str, Any], seen: set[int]) -> Iterator[str]:
    yield repr((code.co_code, code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts_of_code(constant, None, names, seen)
        elif constant != text:
            yield repr(constant)
    for name in code.co_names:
        if name in names:
            yield from _parts(names[name], seen)
