"""`--where` expressions over columns: parsed here, never evaluated as code.

    expression = and-term { "or" and-term }
    and-term   = not-term { "and" not-term }
    not-term   = "not" not-term | "(" expression ")" | comparison
    comparison = column [ operator value | ["not"] "in" "(" value { "," value } ")" ]
    operator   = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&"

A column goes by its own name (`psn`) or by that of the JSON that `dissect` prints (`bth.psn`). A value is
a number (10, 0x1f, 1_000), a name (an opcode, a kind, a status, `CE`), an address with or without
`/prefix`, or a MAC address. A comparison is true only for frames that have the header the
column comes from, also with `!=`; a bare column is true where the frame has it and it is not 0.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import BY_NAME, NAMES_OF, Column
from roce_pkt.capture.frames import ADDRESSES, Frames, dtype_of
from roce_pkt.capture.names import Named, known_names
from roce_pkt.errors import FilterError, InputError, nearest
from roce_pkt.wire.opcode import parse_opcode

Mask = NDArray[np.bool_]
Test = Callable[[Frames], Mask]
_MAX_DEPTH = 64
_LOW64 = (1 << 64) - 1

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<op>==|!=|<=|>=|&&|\|\||[<>&!(),=])|(?P<word>[A-Za-z0-9_.:\-/]+)|(?P<text>\"[^\"]*\"|'[^']*'))"
)
_KEYWORDS = {"and": "and", "or": "or", "not": "not", "in": "in", "&&": "and", "||": "or", "!": "not"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class Where:
    """A parsed expression.

    Args:
        text: The expression.

    Raises:
        FilterError: It does not parse, with the place and the nearest right name.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parser = _Parser(text)
        self._test = parser.expression(0)
        parser.finish()
        self.columns: frozenset[str] = frozenset(parser.columns)

    def __repr__(self) -> str:
        return f"Where({self.text!r})"

    def mask(self, frames: Frames) -> Mask:
        """True for the frames that fit."""
        return self._test(frames)

    def __call__(self, frames: Frames) -> Frames:
        """The frames that fit."""
        picked: Frames = frames[self._test(frames)]
        return picked


class _Parser:
    """Recursive descent over the tokens; makes the tests while it goes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.place = 0
        self.columns: set[str] = set()

    def _split(self) -> Iterable[_Token]:
        at = 0
        while at < len(self.text.rstrip()):
            match = _TOKEN.match(self.text, at)
            if match is None:
                start = at + len(self.text[at:]) - len(self.text[at:].lstrip())
                raise self.wrong(start, f"{self.text[start]!r} does not belong in an expression")
            kind = match.lastgroup or "word"
            word = match[kind]
            start = match.start(kind)
            if word.lower() in _KEYWORDS and kind != "text":
                yield _Token("key", _KEYWORDS[word.lower()], start)
            else:
                yield _Token(kind, word.strip("\"'") if kind == "text" else word, start)
            at = match.end()
        yield _Token("end", "the end", len(self.text))

    def wrong(self, at: int, what: str) -> FilterError:
        """The error, in one line, with the place."""
        rest = self.text[at : at + 24].strip()
        where = f"at character {at + 1}, {rest!r}" if rest else "at the end"
        return FilterError(f"{what}; {where} of {self.text!r}")

    @property
    def now(self) -> _Token:
        return self.tokens[self.place]

    def take(self, kind: str, text: str | None = None) -> _Token | None:
        """The token, if it is this one."""
        token = self.now
        if token.kind != kind or (text is not None and token.text != text):
            return None
        self.place += 1
        return token

    def finish(self) -> None:
        if self.now.kind != "end":
            raise self.wrong(self.now.at, f"expected `and`, `or` or the end, not {self.now.text!r}")

    def expression(self, depth: int) -> Test:
        if depth > _MAX_DEPTH:
            raise self.wrong(self.now.at, f"more than {_MAX_DEPTH} levels of brackets")
        tests = [self.all_of(depth)]
        while self.take("key", "or"):
            tests.append(self.all_of(depth))
        return tests[0] if len(tests) == 1 else lambda f: np.logical_or.reduce([t(f) for t in tests])

    def all_of(self, depth: int) -> Test:
        tests = [self.single(depth)]
        while self.take("key", "and"):
            tests.append(self.single(depth))
        return tests[0] if len(tests) == 1 else lambda f: np.logical_and.reduce([t(f) for t in tests])

    def single(self, depth: int) -> Test:
        if depth > _MAX_DEPTH:
            raise self.wrong(self.now.at, f"more than {_MAX_DEPTH} levels")
        if self.take("key", "not"):
            inner = self.single(depth + 1)
            return lambda f: ~inner(f)
        if self.take("op", "("):
            inner = self.expression(depth + 1)
            if not self.take("op", ")"):
                raise self.wrong(self.now.at, f"expected `)`, not {self.now.text!r}")
            return inner
        return self.comparison()

    def comparison(self) -> Test:
        token = self.take("word")
        if token is None:
            raise self.wrong(self.now.at, f"expected a column, not {self.now.text!r}")
        known = known_names()
        name = known.get(token.text)
        if name is None:
            alike = [n for n in known if ("." in n) == ("." in token.text)]
            raise self.wrong(token.at, f"no column {token.text!r}{nearest(token.text, alike)}")
        self.columns.add(name.column)
        negated = self.now.text == "not" and self.tokens[self.place + 1].text == "in"
        if negated:
            self.place += 1
        if self.take("key", "in"):
            values = self.several()
            tests = [self.test(name, "==", value) for value in values]
            if negated:
                has = _presence(name)
                return lambda f: has(f) & ~np.logical_or.reduce([t(f) for t in tests])
            return lambda f: np.logical_or.reduce([t(f) for t in tests])
        if self.now.kind != "op" or self.now.text in "(),":
            return self.bare(name)
        sign = self.now
        self.place += 1
        if sign.text not in _OPERATORS and sign.text != "&":
            hint = " (did you mean '=='?)" if sign.text == "=" else ""
            raise self.wrong(sign.at, f"{sign.text!r} compares nothing{hint}")
        return self.test(name, sign.text, self.value())

    def several(self) -> list[_Token]:
        if not self.take("op", "("):
            raise self.wrong(self.now.at, f"expected `(` after `in`, not {self.now.text!r}")
        values = [self.value()]
        while self.take("op", ","):
            values.append(self.value())
        if not self.take("op", ")"):
            raise self.wrong(self.now.at, f"expected `,` or `)`, not {self.now.text!r}")
        return values

    def value(self) -> _Token:
        token = self.take("word") or self.take("text")
        if token is None:
            raise self.wrong(self.now.at, f"expected a value, not {self.now.text!r}")
        return token

    def bare(self, name: Named) -> Test:
        has, column = _presence(name), name.column
        if column in ADDRESSES:
            return lambda f: has(f) & ((f.column(f"{column}_hi") | f.column(f"{column}_lo")) != 0)
        return lambda f: has(f) & _rows(_values(f, name) != 0)

    def test(self, name: Named, sign: str, token: _Token) -> Test:
        """A comparison of a column with one value."""
        has = _presence(name)
        if name.column in ADDRESSES:
            match = self.address(name.column, sign, token)
            return lambda f: has(f) & match(f)
        column = BY_NAME[name.column]
        number = self.number(name, column, token)
        if sign == "&":
            return lambda f: has(f) & _rows((_values(f, name).astype(np.int64) & number) != 0)
        compare, low, high = _OPERATORS[sign], *_range(column)
        if not low <= number <= high:
            always = bool(compare(0, 1) if number > high else compare(0, -1))
            return lambda f: has(f) & np.full(len(f), always)
        typed = dtype_of(column).type(number)
        return lambda f: has(f) & _rows(compare(_values(f, name), typed))

    def address(self, name: str, sign: str, token: _Token) -> Test:
        if sign not in ("==", "!="):
            raise self.wrong(token.at, f"addresses compare by == and != only, not {sign!r}")
        try:
            network = ipaddress.ip_network(token.text, strict=False)
        except ValueError:
            example = "10.0.0.1, 10.0.0.0/24 or fd00::1"
            raise self.wrong(token.at, f"{token.text!r} is no address; write {example}") from None
        bits, mapped = int(network.network_address), 0
        mask = int(network.netmask)
        if network.version == 4:
            mapped, mask = 0xFFFF << 32, mask | ((1 << 128) - (1 << 32))
        want = bits | mapped
        hi, lo = np.uint64(want >> 64), np.uint64(want & _LOW64)
        mask_hi, mask_lo = np.uint64(mask >> 64), np.uint64(mask & _LOW64)

        def equal(f: Frames) -> Mask:
            found: Mask = (f.column(f"{name}_hi") & mask_hi) == hi
            found &= (f.column(f"{name}_lo") & mask_lo) == lo
            return found

        return equal if sign == "==" else lambda f: ~equal(f)

    def number(self, name: Named, column: Column, token: _Token) -> int:
        """A value as the number that the column holds."""
        text = token.text
        if name.text == "icrc.value" and re.fullmatch(r"[0-9a-fA-F]{8}", text):
            return int(text, 16)  # as the JSON writes it
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|[0-9][0-9_]*)", text) and not text.endswith("_"):
            try:
                return int(text.replace("_", ""), 0)
            except ValueError:
                return int(text.replace("_", ""))
        if text.lower() in ("true", "false"):
            return int(text.lower() == "true")
        found = name.word(text)
        if found is not None:
            return found
        if column.name in NAMES_OF:
            raise self.wrong(token.at, f"{name.text} is never {text!r}{nearest(text, NAMES_OF[column.name])}")
        if column.name == "opcode":
            try:
                return parse_opcode(text)
            except InputError as error:
                raise self.wrong(token.at, str(error)) from None
        if column.show == "mac" and re.fullmatch(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", text):
            return int(re.sub("[:-]", "", text), 16)
        wanted = "a MAC address or a number" if column.show == "mac" else "a number"
        if name.words:
            near = nearest(text, [word for word, _ in name.words])
            wanted = f"{wanted} or {', '.join(word for word, _ in name.words)}{near}"
        raise self.wrong(token.at, f"{name.text} is compared with {wanted}, not {text!r}")


def _values(frames: Frames, name: Named) -> Any:
    """The values that a name means, one or several for each frame."""
    array = frames.column(name.column)
    if name.element is not None:
        array = array[:, name.element]
    if name.mask:
        array = array >> name.shift & name.mask
    return array


def _presence(name: Named) -> Test:
    """True for frames in which a column means something."""
    if name.column.startswith(("tunnel_kind", "tunnel_id", "outer_")):
        return lambda f: f.tunnel_count != 0
    if not name.headers:
        return lambda f: np.ones(len(f), bool)
    bits = np.uint32(name.headers)
    return lambda f: np.not_equal(f.headers & bits, 0)


def _rows(found: Any) -> Any:
    """One truth for each row, also of columns that hold several values in a row."""
    return found.any(axis=1) if found.ndim > 1 else found


def _range(column: Column) -> tuple[int, int]:
    bounds = np.iinfo(dtype_of(column))
    return int(bounds.min), int(bounds.max)


def parse_where(text: str) -> Where:
    """Parse a `--where` expression.

    Raises:
        FilterError: It does not parse, with the place and the nearest right name.
    """
    return Where(text)
