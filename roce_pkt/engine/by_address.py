"""Laws that the loop calls by address, compiled: every law over acknowledgements, and a user's own.

An address is data, so the compiled loop stays the one that is kept whatever law it runs, and does
not grow with their number. A call costs some 2 ns. DCQCN alone is compiled into the loop.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202, ARG001

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.core.typing import signature
from numba.extending import intrinsic, register_jitable

from roce_pkt.cc import registry
from roce_pkt.cc.feedback import ACK
from roce_pkt.cc.law import CUT, INCREASE, compile_laws
from roce_pkt.cc.own import OwnLaw
from roce_pkt.engine.memory import call_address
from roce_pkt.engine.units import CALLS, LAW
from roce_pkt.errors import InputError
from roce_pkt.jit import native
from roce_pkt.machine_code import Native

DONE = 8
"""Set in the answer of an own law's function that came to its end and left a possible state."""


@intrinsic
def call_law(typingctx, address, p, s, now):
    """`int64 law(parameters *, state *, int64 now)` at an address; 0 when it raised an exception."""
    return types.int64(types.uint64, types.uint64, types.uint64, types.int64), _call


@intrinsic
def call_ack_law(typingctx, address, p, s, ack, now):
    """`int64 law(parameters *, state *, ack *, int64 now)` at an address; 0 when it raised an exception."""
    return types.int64(types.uint64, types.uint64, types.uint64, types.uint64, types.int64), _call


def _call(context, builder, sig, args):
    kinds = signature(sig.return_type, *sig.args[1:])
    status, value = call_address(context, builder, kinds, args[0], args[1:])
    return builder.select(status.is_ok, value, ir.Constant(value.type, 0))


@intrinsic
def copy_octets(typingctx, to, source, size):
    """Copy memory between two addresses."""

    def codegen(context, builder, signature, args):
        octets = ir.IntType(8).as_pointer()
        places = [builder.inttoptr(address, octets) for address in args[:2]]
        cgutils.raw_memcpy(builder, *places, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), codegen


def natives(unit: str) -> dict[str, Native]:
    """The functions of one of `cc`'s laws as machine code, by name."""
    return _natives(registry.built_in(unit.removeprefix(LAW)))


def own_natives(law: OwnLaw) -> dict[str, Native]:
    """The same for a user's own law.

    Raises:
        InputError: It cannot be compiled.
    """
    return _natives(law)


def _natives(law: Any) -> dict[str, Native]:
    compile_laws()
    p, s, ack = from_dtype(law.PARAMETERS.dtype), from_dtype(law.STATE), from_dtype(ACK)
    found = {}
    for name in CALLS:
        function = _entry(law, name)
        if function is None:
            continue
        between = (ack,) if name == "on_ack" else ()
        try:
            found[name] = native(function, p, s, *between, types.int64)
        except NumbaError as error:
            raise InputError(f"{_where(law, name, str(error))}: {_reason(str(error))}") from None
    return found


def _entry(law: Any, name: str) -> Callable[..., int] | None:
    """What is compiled for a function of a law: itself, or a watched call of a user's."""
    if not isinstance(law, OwnLaw):
        found: Callable[..., int] | None = getattr(law, name, None)
        return found
    if name not in law.functions:
        return None
    for helper in vars(law.module).values():
        if callable(helper) and getattr(helper, "__module__", None) == law.module.__name__:
            register_jitable(helper)
    function = law.functions[name]

    def watched(p, s, now):
        before = s.rate_bps
        function(p, s, now)
        return _verdict(before, s)

    def watched_ack(p, s, ack, now):
        before = s.rate_bps
        function(p, s, ack, now)
        return _verdict(before, s)

    return watched_ack if name == "on_ack" else watched


@register_jitable
def _verdict(before, s):
    """What an own law's function did, from the state it left; without DONE it left an impossible one."""
    if not 0.0 < s.rate_bps < 1e18 or not s.window_bytes >= 0.0:
        return 0
    if s.rate_bps < before:
        return DONE | CUT
    if s.rate_bps > before:
        return DONE | INCREASE
    return DONE


def _where(law: OwnLaw, name: str, text: str) -> str:
    """File, line and function of a compiler's complaint."""
    import re

    lines = re.findall(rf'File "[^"]*{re.escape(Path(law.file).name)}", line (\d+)', text)
    line = lines[-1] if lines else law.functions[name].__code__.co_firstlineno
    return f"{law.file}:{line}: {name}"


def _reason(text: str) -> str:
    """The line of a compiler's complaint that says what it is about."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    clues = ("Untyped", "Unknown", "Use of", "Cannot unify", "Invalid use")
    told = [line for line in lines if line.startswith(clues)]
    return f"runs as Python but cannot be compiled: {(told or lines)[0][:200]}"
