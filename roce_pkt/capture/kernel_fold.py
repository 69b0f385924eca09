"""CRC-32 by carry-less multiplication, 128 octets at a step, with the mask of an ICRC's first octets.

One function of LLVM code for processors that multiply two pairs of 64-bit polynomials at once
(VPCLMULQDQ): twice as fast there as a CRC by single multiplications, and a short frame costs one call
where a CRC of masked headers and then of the rest costs two.

Source: V. Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, 2009.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import config

from roce_pkt import jit

STEP_BYTES = 128
_POLYNOMIAL = 0x1_04C1_1DB7
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_NARROW, _WIDE = ir.VectorType(_I64, 2), ir.VectorType(_I64, 4)
_OCTETS = ir.VectorType(_I8, 16)


def available() -> bool:
    """True when the processor that kernels are compiled for has what this needs."""
    if config.CPU_NAME or config.CPU_FEATURES:  # compiled for some other processor
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in ("vpclmulqdq", "pclmul", "avx2", "ssse3"))


def _reflected(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _power(exponent: int) -> int:
    """X to a power modulo the polynomial, bit-reflected, as a multiplier of reflected octets."""
    value = 1
    for _ in range(exponent):
        value <<= 1
        value ^= _POLYNOMIAL if value >> 32 else 0
    return _reflected(value, 32) << 1


def _fold_by(bits: int) -> tuple[int, int]:
    """Multipliers that move 128 bits past `bits` bits."""
    return _power(bits + 32), _power(bits - 32)


def _quotient() -> int:
    """X^64 divided by the polynomial, reflected; for the reduction by multiplication (Barrett)."""
    quotient, rest = 0, 1 << 64
    for shift in range(32, -1, -1):
        if rest >> (shift + 32) & 1:
            quotient |= 1 << shift
            rest ^= _POLYNOMIAL << shift
    return _reflected(quotient, 33)


def least_bytes(mask: bytes) -> int:
    """Octets that a message must have to be folded with this mask."""
    return max(16, -(-len(mask.rstrip(b"\0")) // 16) * 16)


class _Emitter:
    """Writes the function (address, octets, state) -> state; `mask` is ORed to the first octets."""

    def __init__(self, module: Any, name: str, mask: bytes) -> None:
        kind = ir.FunctionType(_I32, [_I64, _I64, _I32])
        self.module = module
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "linkonce_odr"
        self.function.attributes.add("noinline")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.mask = mask.rstrip(b"\0")

    def constant(self, *words: int) -> Any:
        return ir.Constant(ir.VectorType(_I64, len(words)), list(words))

    def load(self, at: Any, kind: Any, first: int | None = None) -> Any:
        """Octets at an address; with `first`, those of the message from `first` on, with the mask."""
        value = self.builder.load(self.builder.inttoptr(at, kind.as_pointer()))
        value.align = 1
        size = 8 * kind.count
        part = b"" if first is None else self.mask[first : first + size]
        if any(part):
            padded = part.ljust(size, b"\0")
            words = [int.from_bytes(padded[k : k + 8], "little") for k in range(0, size, 8)]
            value = self.builder.or_(value, self.constant(*words))
        return value

    def multiply(self, a: Any, b: Any, which: int) -> Any:
        wide = a.type == _WIDE
        name = "llvm.x86.pclmulqdq.256" if wide else "llvm.x86.pclmulqdq"
        kind = ir.FunctionType(a.type, [a.type, a.type, _I8])
        function = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        return self.builder.call(function, [a, b, _I8(which)])

    def fold(self, value: Any, bits: int, data: Any) -> Any:
        low, high = _fold_by(bits)
        by = self.constant(*[low, high] * (value.type.count // 2))
        moved = self.builder.xor(self.multiply(value, by, 0x00), self.multiply(value, by, 0x11))
        return self.builder.xor(moved, data)

    def seeded(self, value: Any, seed: Any) -> Any:
        """The state goes into the first four octets."""
        builder, zero = self.builder, self.constant(*[0] * value.type.count)
        return builder.xor(value, builder.insert_element(zero, builder.zext(seed, _I64), _I32(0)))

    def half(self, value: Any, which: int) -> Any:
        lanes = ir.Constant(ir.VectorType(_I32, 2), [2 * which, 2 * which + 1])
        return self.builder.shuffle_vector(value, value, lanes)

    def write(self) -> Any:
        """The whole function."""
        builder = self.builder
        at, size, seed = self.function.args
        head = self.function.append_basic_block("wide")
        short = self.function.append_basic_block("short")
        tail = self.function.append_basic_block("tail")
        builder.cbranch(builder.icmp_unsigned(">=", size, _I64(STEP_BYTES)), head, short)

        builder.position_at_end(head)
        value_wide, at_wide, left_wide = self._wide(at, size, seed)
        from_wide = builder.block
        builder.branch(tail)

        builder.position_at_end(short)
        value_short, at_short, left_short = self._short(at, size, seed)
        from_short = builder.block
        builder.branch(tail)

        builder.position_at_end(tail)
        value, place, left = builder.phi(_NARROW), builder.phi(_I64), builder.phi(_I64)
        for phi, one, other in (
            (value, value_wide, value_short),
            (place, at_wide, at_short),
            (left, left_wide, left_short),
        ):
            phi.add_incoming(one, from_wide)
            phi.add_incoming(other, from_short)
        value, place, left = self._by_sixteen(value, place, left)
        value = self._rest(value, place, left)
        builder.ret(self._reduced(value))
        return self.function

    def _wide(self, at: Any, size: Any, seed: Any) -> tuple[Any, Any, Any]:
        """Steps of 128 octets, and the four sums into one of 16 octets."""
        builder = self.builder
        lanes = [self.load(builder.add(at, _I64(first)), _WIDE, first) for first in range(0, STEP_BYTES, 32)]
        lanes[0] = self.seeded(lanes[0], seed)
        step = _I64(STEP_BYTES)
        entry = builder.block
        loop, body, done = (self.function.append_basic_block(n) for n in ("loop", "body", "folded"))
        first_at, first_left = builder.add(at, step), builder.sub(size, step)
        builder.branch(loop)
        builder.position_at_end(loop)
        place, left = builder.phi(_I64), builder.phi(_I64)
        sums = [builder.phi(_WIDE) for _ in lanes]
        for phi, value in zip([place, left, *sums], [first_at, first_left, *lanes], strict=True):
            phi.add_incoming(value, entry)
        builder.cbranch(builder.icmp_unsigned(">=", left, step), body, done)
        builder.position_at_end(body)
        folded = [
            self.fold(value, 8 * STEP_BYTES, self.load(builder.add(place, _I64(32 * n)), _WIDE))
            for n, value in enumerate(sums)
        ]
        following = [builder.add(place, step), builder.sub(left, step), *folded]
        for phi, value in zip([place, left, *sums], following, strict=True):
            phi.add_incoming(value, builder.block)
        builder.branch(loop)
        builder.position_at_end(done)
        one = self.fold(sums[0], 512, sums[2])
        other = self.fold(sums[1], 512, sums[3])
        both = self.fold(one, 256, other)
        return self.fold(self.half(both, 0), 128, self.half(both, 1)), place, left

    def _short(self, at: Any, size: Any, seed: Any) -> tuple[Any, Any, Any]:
        """The first octets of a message of less than 128, as far as the mask reaches."""
        builder = self.builder
        value = self.seeded(self.load(at, _NARROW, 0), seed)
        place, left = builder.add(at, _I64(16)), builder.sub(size, _I64(16))
        for first in range(16, len(self.mask), 16):
            value = self.fold(value, 128, self.load(place, _NARROW, first))
            place, left = builder.add(place, _I64(16)), builder.sub(left, _I64(16))
        return value, place, left

    def _by_sixteen(self, value: Any, at: Any, size: Any) -> tuple[Any, Any, Any]:
        builder = self.builder
        entry = builder.block
        loop, body, done = (self.function.append_basic_block(n) for n in ("loop16", "body16", "done16"))
        builder.branch(loop)
        builder.position_at_end(loop)
        total, place, left = builder.phi(_NARROW), builder.phi(_I64), builder.phi(_I64)
        for phi, start in ((total, value), (place, at), (left, size)):
            phi.add_incoming(start, entry)
        builder.cbranch(builder.icmp_unsigned(">=", left, _I64(16)), body, done)
        builder.position_at_end(body)
        after = (
            self.fold(total, 128, self.load(place, _NARROW)),
            builder.add(place, _I64(16)),
            builder.sub(left, _I64(16)),
        )
        for phi, value_after in zip((total, place, left), after, strict=True):
            phi.add_incoming(value_after, builder.block)
        builder.branch(loop)
        builder.position_at_end(done)
        return total, place, left

    def _rest(self, value: Any, at: Any, left: Any) -> Any:
        """The last 1 to 15 octets: the sum moves up by as many, and they follow it."""
        builder = self.builder
        entry, some, done = builder.block, *(self.function.append_basic_block(n) for n in ("rest", "whole"))
        builder.cbranch(builder.icmp_unsigned("!=", left, _I64(0)), some, done)
        builder.position_at_end(some)
        # 16 octets that end where the message ends; the first of them are in the sum already
        last = self.load(builder.sub(builder.add(at, left), _I64(16)), _NARROW)
        moves = self._shuffles(left)
        up, down = moves
        ahead, behind = self.shuffle(value, up), self.shuffle(value, down)
        new = builder.bitcast(
            builder.ashr(builder.bitcast(down, _OCTETS), ir.Constant(_OCTETS, [7] * 16)), _NARROW
        )
        data = builder.or_(behind, builder.and_(last, new))
        moved = self.fold(ahead, 128, data)
        leave = builder.block
        builder.branch(done)
        builder.position_at_end(done)
        total = builder.phi(_NARROW)
        total.add_incoming(value, entry)
        total.add_incoming(moved, leave)
        return total

    def _shuffles(self, left: Any) -> tuple[Any, Any]:
        """Octet shuffles that move a sum's first `left` octets to its end, and the others to its start."""
        name = f"{self.function.name}_moves"
        table = [0x80] * 16 + list(range(16)) + [0x80] * 16
        kind = ir.ArrayType(_I8, len(table))
        held = self.module.globals.get(name)
        if held is None:
            held = ir.GlobalVariable(self.module, kind, name)
            held.initializer, held.global_constant, held.linkage = ir.Constant(kind, table), True, "internal"
        start = self.builder.ptrtoint(held, _I64)
        return (
            self.load(self.builder.add(start, left), _NARROW),
            self.load(self.builder.add(self.builder.add(start, _I64(16)), left), _NARROW),
        )

    def shuffle(self, value: Any, places: Any) -> Any:
        name = "llvm.x86.ssse3.pshuf.b.128"
        kind = ir.FunctionType(_OCTETS, [_OCTETS, _OCTETS])
        function = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        bits = (self.builder.bitcast(v, _OCTETS) for v in (value, places))
        return self.builder.bitcast(self.builder.call(function, list(bits)), _NARROW)

    def _reduced(self, value: Any) -> Any:
        """128 bits modulo the polynomial: to 64, to 32 by a multiplication each, then Barrett."""
        builder, low32 = self.builder, self.constant(0xFFFF_FFFF, 0xFFFF_FFFF)
        by = self.constant(0, _fold_by(128)[1])
        value = builder.xor(self.multiply(value, by, 0x10), self.down(value, 8))
        by = self.constant(_power(64), 0)
        value = builder.xor(self.multiply(builder.and_(value, low32), by, 0x00), self.down(value, 4))
        by = self.constant(_reflected(_POLYNOMIAL, 33), _quotient())
        quotient = self.multiply(builder.and_(value, low32), by, 0x10)
        product = self.multiply(builder.and_(quotient, low32), by, 0x00)
        words = builder.bitcast(builder.xor(value, product), ir.VectorType(_I32, 4))
        return builder.extract_element(words, _I32(1))

    def down(self, value: Any, octets: int) -> Any:
        """Octets moved to the front, zeros behind."""
        bits = self.builder.bitcast(value, _OCTETS)
        lanes = ir.Constant(ir.VectorType(_I32, 16), list(range(octets, octets + 16)))
        return self.builder.bitcast(
            self.builder.shuffle_vector(bits, ir.Constant(_OCTETS, [0] * 16), lanes), _NARROW
        )


def folder(mask: bytes = b"") -> Any:
    """A law (address, octets, state) that returns the CRC register after the octets, not inverted.

    Args:
        mask: ORed to the first octets, at most 128 of them; `least_bytes` says how many there must be.
    """
    name = f"roce_pkt_fold_{mask.hex()}"

    @jit.intrinsic
    def fold(typingctx: Any, address: Any, size: Any, state: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            module = builder.module
            function = module.globals.get(name) or _Emitter(module, name, mask).write()
            return builder.call(function, list(args))

        return types.uint32(types.uint64, types.uint64, types.uint32), codegen

    return fold
