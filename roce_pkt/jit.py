"""Compiled code: the decorators, a cache that never serves stale kernels, and loads of raw octets.

Three rules make compiled code here fast and safe to cache:
- an entry is a `kernel`, everything it calls is a `law` (inlined, also callable as plain Python);
- octets are reached through a `memory` pair (address, size) and the loads below, so nothing is
  reference-counted; arrays that an entry takes are passed through `borrow` once;
- the cache is keyed on all sources that can end up in a kernel, not on the entry's file alone.

With ROCE_PKT_CHECKED=1 every load and store is tested against the size of its memory and every
array index against its array; such kernels are cached apart from the others.

The numba interfaces used here that are not public are held by tests/test_jit.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import caching, cgutils
from numba.core.typing.templates import infer_global
from numba.extending import intrinsic as numba_intrinsic
from numba.np.arrayobj import make_array

from roce_pkt.kernel_cache import CHECKED, PACKAGE, cache_folder, cacheable, source_stamp
from roce_pkt.machine_code import Native

Function = TypeVar("Function", bound=Callable[..., Any])


class PackageLocator(caching._CacheLocator):  # type: ignore[misc]  # noqa: SLF001 - held by a test
    """Tells numba where a kernel of this package is cached and when that copy is fresh."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._room = Path(file).resolve().relative_to(PACKAGE).parts[0]
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """The directory of the kernel's files."""
        return str(cache_folder(self._room))

    def get_source_stamp(self) -> str:
        """Changes when any source changes that the kernel may be made from."""
        return source_stamp(self._room)

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> PackageLocator | None:
        """A locator for functions of this package that may be cached, else None."""
        if not Path(file).resolve().is_relative_to(PACKAGE):
            return None
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


if PackageLocator not in caching.CacheImpl._locator_classes:  # noqa: SLF001
    caching.CacheImpl._locator_classes.insert(0, PackageLocator)  # noqa: SLF001


def kernel(function: Function) -> Function:
    """Compile an entry: cached, without the interpreter lock, array indices checked, x/0 is infinite."""
    decorate = njit(cache=cacheable(), nogil=True, error_model="numpy", boundscheck=True)
    return decorate(function)


def fast_kernel(function: Function) -> Function:
    """A kernel whose array indices are checked only in the checked build; for proven inner loops."""
    decorate = njit(cache=cacheable(), nogil=True, error_model="numpy", boundscheck=CHECKED)
    return decorate(function)


_callable: list[Any] = []
"""Keeps alive what numba's table of globals only refers to."""


def callable_when_compiled(function: Function, **options: Any) -> Function:
    """Let compiled code call a function that stays plain Python.

    It is compiled once for each signature. (What numba offers for this compiles it once more for
    every set of options its callers have, which for the engine is half of the compiler's time.)

    Args:
        function: What is called.
        options: Of numba's `njit`.
    """
    compiled = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", **options)(function)
    infer_global(function, types.Dispatcher(compiled))
    _callable.append(compiled)
    return function


def law(function: Function) -> Function:
    """A function that stays plain Python and is inlined wherever a kernel calls it."""
    return callable_when_compiled(function, forceinline=True, boundscheck=True)


def fast_law(function: Function) -> Function:
    """A law whose array indices are checked only in the checked build."""
    return callable_when_compiled(function, forceinline=True, boundscheck=CHECKED)


def is_compiled(dispatcher: Any) -> bool:
    """True when calling `dispatcher` will not compile: loaded already, or fresh on disk."""
    if dispatcher.signatures:
        return True
    stored = getattr(dispatcher._cache, "_cache_file", None)  # noqa: SLF001
    return bool(stored and stored._load_index())  # noqa: SLF001


def native(function: Callable[..., Any], *arguments: Any) -> Native:
    """Compile a function of given argument types to machine code that needs no compiler to be run."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    compiled = njit(arguments, boundscheck=True, **options)(function)
    (found,) = compiled.overloads.values()
    return Native(found.fndesc.llvm_func_name, bytes(found.library._get_compiled_object()))  # noqa: SLF001


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function that writes LLVM code where it is called; its callers give no typing context."""
    return numba_intrinsic(function)


# -- arrays without owners


@intrinsic
def borrow(typingctx: Any, array: Any) -> Any:  # noqa: ARG001
    """The same array without an owner, so that no code counts references; the caller keeps it alive."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = make_array(signature.args[0])(context, builder, args[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()  # noqa: SLF001

    return array(array), codegen


# -- raw memory: a (address, size) pair and an offset


def _word(bits: int) -> Any:
    return {8: types.uint8, 16: types.uint16, 32: types.uint32, 64: types.uint64}[bits]


def place_of(builder: Any, mem: Any, offset: Any, kind: Any) -> Any:
    """LLVM pointer to `kind` at an offset of a memory pair."""
    return builder.inttoptr(builder.add(builder.extract_value(mem, 0), offset), kind.as_pointer())


def load_word(builder: Any, place: Any, *, swap: bool) -> Any:
    """Unaligned LLVM load, byte-swapped if asked."""
    value = builder.load(place)
    value.align = 1
    if swap and value.type.width > 8:
        value = builder.call(builder.module.declare_intrinsic("llvm.bswap", [value.type]), [value])
    return value


def _reader(bits: int, doc: str, *, swap: bool = False) -> Any:
    size = bits // 8

    @intrinsic
    def load(typingctx: Any, mem: Any, offset: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            return load_word(builder, place_of(builder, args[0], args[1], ir.IntType(bits)), swap=swap)

        return _word(bits)(mem, types.uint64), codegen

    def read(mem: Any, offset: Any) -> Any:
        guard(mem, offset, size)
        return load(mem, offset)

    load.__doc__ = read.__doc__ = doc
    return fast_law(read) if CHECKED else load


def _writer(bits: int, doc: str) -> Any:
    size = bits // 8

    @intrinsic
    def store(typingctx: Any, mem: Any, offset: Any, value: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            place = place_of(builder, args[0], args[1], ir.IntType(bits))
            builder.store(args[2], place).align = 1
            return context.get_dummy_value()

        return types.void(mem, types.uint64, _word(bits)), codegen

    def write(mem: Any, offset: Any, value: Any) -> Any:
        guard(mem, offset, size)
        store(mem, offset, value)

    store.__doc__ = write.__doc__ = doc
    return fast_law(write) if CHECKED else store


@fast_law
def guard(mem: Any, offset: Any, size: Any) -> Any:
    """In the checked build, raise unless `size` octets at `offset` lie inside the memory."""
    if CHECKED and (offset > mem[1] or np.uint64(size) > mem[1] - offset):
        raise IndexError("octets outside their memory")


octet = _reader(8, "The octet at an offset of a memory pair.")
le16 = _reader(16, "16 bits, little-endian.")
le32 = _reader(32, "32 bits, little-endian.")
le64 = _reader(64, "64 bits, little-endian.")
be16 = _reader(16, "16 bits, big-endian.", swap=True)
be32 = _reader(32, "32 bits, big-endian.", swap=True)
be64 = _reader(64, "64 bits, big-endian.", swap=True)
put8 = _writer(8, "Store 8 bits at an offset of a memory pair.")
put16 = _writer(16, "Store 16 bits in the machine's order.")
put32 = _writer(32, "Store 32 bits in the machine's order.")
put64 = _writer(64, "Store 64 bits in the machine's order.")


def _prefetcher(doc: str, *, write: bool) -> Any:
    @intrinsic
    def ask(typingctx: Any, mem: Any, offset: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            int32, octet_type = ir.IntType(32), ir.IntType(8)
            kind = ir.FunctionType(ir.VoidType(), [octet_type.as_pointer(), int32, int32, int32])
            module, name = builder.module, "llvm.prefetch.p0"
            call = module.globals.get(name) or ir.Function(module, kind, name)
            options = (ir.Constant(int32, value) for value in (int(write), 3, 1))
            builder.call(call, [place_of(builder, args[0], args[1], octet_type), *options])
            return context.get_dummy_value()

        return types.void(mem, types.uint64), codegen

    ask.__doc__ = doc
    return ask


prefetch = _prefetcher("Ask for the cache line at an offset; beyond the end it does nothing.", write=False)
prefetch_to_write = _prefetcher("As `prefetch`, for a line that will be written.", write=True)


@intrinsic
def call_crc32(typingctx: Any, function: Any, seed: Any, address: Any, size: Any) -> Any:  # noqa: ARG001
    """Call `uint32 function(uint32 seed, const uint8 *octets, uint64 size)` at a run-time address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        int32, int64 = ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(int32, [int32, int64, int64])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.uint32(types.uint64, types.uint32, types.uint64, types.uint64), codegen


def memory(array: np.ndarray[Any, Any]) -> tuple[np.uint64, np.uint64]:
    """The (address, size in octets) pair by which kernels reach an array; keep the array alive."""
    if not array.flags.c_contiguous:
        raise ValueError("kernels reach contiguous memory only")
    return np.uint64(array.ctypes.data), np.uint64(array.nbytes)
