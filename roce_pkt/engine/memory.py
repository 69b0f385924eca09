"""How compiled code reaches the engine's arrays: by address, kept in one record `w`.

An address has no owner, so nothing is reference-counted, and `w` is one pointer, so a function may
take the whole world and still be a plain call. The arrays live as long as `world.Built` does.
`port_at(w, 3)` is the record itself, to read and to write. They are code generators and not
functions, because every function costs a fifth of a second of compilation.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202, ARG001

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin

from roce_pkt.cc import dcqcn, feedback
from roce_pkt.endpoint import notification, rc_selective
from roce_pkt.engine import fault_records, list_records, records
from roce_pkt.jit import callable_when_compiled

WORD = ir.IntType(64)
I64, U32 = types.int64, types.uint32
WORLD, PORT, HALF, PACKET = (
    from_dtype(layout) for layout in (records.WORLD, records.PORT, records.HALF, records.PACKET)
)
"""Types of what functions called by address take."""


def law(function: Any) -> Any:
    """Inlined where it is called: on the path of every packet."""
    return callable_when_compiled(function, forceinline=True)


def part(function: Any) -> Any:
    """Part of its only caller from the start, where `law` would optimise it first by itself, then again."""
    return njit(inline="always", error_model="numpy")(function)


def cold(function: Any) -> Any:
    """Called, not inlined: pauses, losses, timers, rows. Keeps the compiled loop small."""
    return callable_when_compiled(function)


@dataclass(frozen=True, slots=True)
class Far:
    """A function that is compiled for itself.

    Args:
        function: The function.
        arguments: Types of its arguments, the world first.
    """

    function: Any
    arguments: tuple[Any, ...]


FAR: dict[str, Far] = {}
"""All of them, by module and name."""


def far(*arguments: Any, returns: Any = types.void) -> Any:
    """A function of the world and other arguments that is called by its address in a word of `w`.

    It is compiled as a part of its unit (`units`), and only for runs that need it.
    """

    def decorate(function: Any) -> Any:
        name = f"{function.__module__.rpartition('.')[2]}_{function.__name__}"
        kinds = (WORLD, *arguments)
        FAR[name] = Far(function, kinds)

        class Called(AbstractTemplate):  # type: ignore[misc]
            key = function

            def generic(self, args, kws):  # noqa: ARG002
                return signature(returns, *kinds)

        @lower_builtin(function, types.VarArg(types.Any))
        def call(context, builder, sig, args):
            address = _word(builder, args[0], name)
            status, value = call_address(context, builder, sig, address, args)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        infer_global(function, types.Function(Called))
        return function

    return decorate


def call_address(context: Any, builder: Any, sig: Any, address: Any, values: Any) -> tuple[Any, Any]:
    """Call machine code as the compiler's functions call each other: status and value."""
    kind = context.call_conv.get_function_type(sig.return_type, sig.args)
    function = builder.inttoptr(address, kind.as_pointer())
    called: tuple[Any, Any] = context.call_conv.call_function(
        builder, function, sig.return_type, sig.args, values
    )
    return called


def _word(builder: Any, w: Any, name: str) -> Any:
    """One of `w`'s 64-bit words."""
    offset = records.WORLD.fields[name][1]  # type: ignore[index]
    octets = builder.bitcast(w, ir.IntType(8).as_pointer())
    word = builder.load(builder.bitcast(builder.gep(octets, [ir.Constant(WORD, offset)]), WORD.as_pointer()))
    # addresses stay what they are during a run: without this every store would make them be read again
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _address(builder: Any, w: Any, array: str, index: Any, size: int | str) -> Any:
    """Address of an element: `w`'s word for the array, plus index times size (a number, or a word of `w`)."""
    wide = builder.zext(index, WORD) if index.type.width < WORD.width else index
    step = _word(builder, w, size) if isinstance(size, str) else ir.Constant(WORD, size)
    return builder.add(_word(builder, w, f"{array}_array"), builder.mul(wide, step))


def _needs_integer(index: Any) -> None:
    if not isinstance(index, types.Integer):
        raise TypingError(f"an array is reached by a whole number, not {index}")


def _records(array: str, dtype: np.dtype[Any], step: str = "") -> Any:
    """`at(w, index)`: the record at an index of an array of records (of `w`'s word `step` octets each)."""
    record = from_dtype(dtype)

    @intrinsic
    def at(typingctx, w, index):
        _needs_integer(index)

        def codegen(context, builder, signature, args):
            place = _address(builder, args[0], array, args[1], step or dtype.itemsize)
            return builder.inttoptr(place, context.get_value_type(record))

        return record(w, index), codegen

    return at


def _integers(array: str, kind: Any, bits: int) -> tuple[Any, Any]:
    """`get(w, index)` and `put(w, index, value)` of an array of integers."""
    word = ir.IntType(bits)

    @intrinsic
    def get(typingctx, w, index):
        _needs_integer(index)

        def codegen(context, builder, signature, args):
            place = _address(builder, args[0], array, args[1], bits // 8)
            return builder.load(builder.inttoptr(place, word.as_pointer()))

        return kind(w, index), codegen

    @intrinsic
    def put(typingctx, w, index, value):
        _needs_integer(index)

        def codegen(context, builder, signature, args):
            place = _address(builder, args[0], array, args[1], bits // 8)
            builder.store(args[2], builder.inttoptr(place, word.as_pointer()))
            return context.get_dummy_value()

        return types.void(w, index, kind), codegen

    return get, put


node_at = _records("node", records.NODE)
port_at = _records("port", records.PORT)
line_at = _records("line", records.LINE)
group_at = _records("group", records.GROUP)
half_at = _records("half", records.HALF)
rp_at = _records("rp", dcqcn.STATE, "rp_bytes")
head_at = _records("rp", np.dtype(feedback.HEAD, align=True), "rp_bytes")
flowlet_at = _records("flowlet", records.FLOWLET)
_ack_at = _records("ack", feedback.ACK)
watch_at = _records("watch", notification.STATE)
selective_at = _records("selective", rc_selective.STATE)
packet_at = _records("packet", records.PACKET)
route_at = _records("route", records.ROUTE)
row_at = _records("row", records.EVENT_ROW)
frame_at = _records("frame", records.FRAME_ROW)
rates_at = _records("rates", records.RATE_SAMPLE)
work_at = _records("work", list_records.WORK)
message_at = _records("message", list_records.MESSAGE)
wait_at = _records("wait", list_records.WAIT)
manner_at = _records("manner", list_records.MANNER)
rule_at = _records("rule", fault_records.RULE)
hit_at = _records("hit", fault_records.HIT)
seen_at = _records("seen", fault_records.SEEN)
_cc_at = _records("cc", dcqcn.PARAMETERS.dtype)
_np_at = _records("np", notification.PARAMETERS.dtype)
tree_at, set_tree = _integers("tree", types.int64, 64)
turns_at, set_turns = _integers("turns", types.int64, 64)
top_at, set_top = _integers("top", types.int64, 64)
queues_at, set_queues = _integers("queues", types.int64, 64)
path_at, _ = _integers("path", types.uint32, 32)
next_at, _ = _integers("next", types.uint32, 32)
opcode_at, _ = _integers("opcode", types.uint32, 32)
headers_at, _ = _integers("headers", types.uint32, 32)
unchecked_at, _ = _integers("unchecked", types.uint32, 32)
telemetry_at, set_telemetry = _integers("telemetry", types.uint64, 64)
histogram_at, set_histogram = _integers("histogram", types.uint32, 32)


@law
def cc_of(w):
    """Parameters of the reaction point."""
    return _cc_at(w, np.uint32(0))


@law
def np_of(w):
    """Parameters of the notification point."""
    return _np_at(w, np.uint32(0))


@law
def ack_of(w):
    """Where an acknowledgement is laid out for a law."""
    return _ack_at(w, np.uint32(0))
