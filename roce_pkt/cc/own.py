"""A law of one's own: one Python file, read, tried out in plain Python, then as good as a built-in.

The file says what it has in plain words and functions:

    PARAMETERS = {"step": "1Gbps", "cut": 0.5}     # p.step_bps, p.cut; a scenario may change them
    STATE = {"reduced_until": 0}                   # s.reduced_until; 0 is a whole number, 0.0 is not
    def on_ack(p, s, ack, now): ...                # any of on_ack, on_cnp, on_timer, and start

Each function sets `s.rate_bps` (and, where it likes, `s.window_bytes` and `s.timer_ps`, when
`on_timer` is next). What `ack` holds is in `feedback.ACK`.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from roce_pkt import units
from roce_pkt.cc import feedback
from roce_pkt.cc.feedback import HEAD, NO_WINDOW, begin
from roce_pkt.cc.law import NEVER_PS, twin
from roce_pkt.cc.parameters import OFF_ON, Parameter, ParameterTable, Unit
from roce_pkt.cc.rate import BASE_RTT
from roce_pkt.errors import InputError, ScenarioError, nearest

SIGNATURES = {
    "start": ("p", "s", "now"),
    "on_ack": ("p", "s", "ack", "now"),
    "on_cnp": ("p", "s", "now"),
    "on_timer": ("p", "s", "now"),
}
"""Function -> its arguments, by place; the names may differ."""
FEEDBACKS = (feedback.ECHO, feedback.RTT, feedback.INT)
Fault = tuple[str, str]
"""Function and what is wrong with it."""


@dataclass(slots=True)
class OwnLaw:
    """A law from a file; has the attributes of a module such as `timely`.

    Args:
        file: Where it is from.
        module: The file, executed.
    """

    file: str
    module: ModuleType
    PARAMETERS: ParameterTable = field(init=False)
    STATE: np.dtype[Any] = field(init=False)
    State: type = field(init=False)
    FEEDBACK: str = field(init=False)
    functions: dict[str, FunctionType] = field(init=False)

    def __post_init__(self) -> None:
        self.PARAMETERS = ParameterTable(*_rows(self.file, self._table("PARAMETERS")), BASE_RTT)
        self.STATE = np.dtype([*HEAD, *_fields(self.file, self._table("STATE"))], align=True)
        self.State = twin(self.STATE)
        for kind, name in ((self.State, "s"), (self.PARAMETERS.twin, "p"), (feedback.Ack, "ack")):
            kind.__name__ = name  # as the exceptions of a misspelt field call it
        self.FEEDBACK = getattr(self.module, "FEEDBACK", feedback.RTT)
        if self.FEEDBACK not in FEEDBACKS:
            raise InputError(f"{self.file}: FEEDBACK is {self.FEEDBACK!r}, not one of {', '.join(FEEDBACKS)}")
        self.functions = {name: self._function(name) for name in SIGNATURES if hasattr(self.module, name)}
        if not self.functions.keys() - {"start"}:
            raise InputError(f"{self.file}: has none of on_ack, on_cnp, on_timer: it would never act")

    def _table(self, name: str) -> dict[str, Any]:
        table = getattr(self.module, name, {})
        if not isinstance(table, dict) or not all(isinstance(k, str) and k.isidentifier() for k in table):
            raise InputError(f'{self.file}: {name} is no table of names, such as {{"step": "1Gbps"}}')
        return table

    def _function(self, name: str) -> FunctionType:
        function, wanted = getattr(self.module, name), SIGNATURES[name]
        if not isinstance(function, FunctionType):
            raise InputError(f"{self.file}: {name} is no function")
        parameters = inspect.signature(function).parameters.values()
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if len(parameters) != len(wanted) or any(p.kind not in plain for p in parameters):
            line = function.__code__.co_firstlineno
            given = ", ".join(str(p) for p in parameters)
            raise InputError(
                f"{self.file}:{line}: {name}({given}) takes other arguments than {name}({', '.join(wanted)})"
            )
        return function

    def start(self, p: Any, s: Any, now: int) -> None:
        """A flow begins: at line rate without a window, unless the file says otherwise."""
        begin(s, p.line_rate_bps, NO_WINDOW)
        for name, value in self._table("STATE").items():
            setattr(s, name, value)
        if "start" in self.functions:
            self.call("start", p, s, now)

    def call(self, name: str, p: Any, s: Any, *rest: Any) -> None:
        """Run one function in plain Python.

        Raises:
            InputError: It raised, or left a state that cannot be: file, line and function are named.
        """
        try:
            self.functions[name](p, s, *rest)
        except Exception as error:  # noqa: BLE001 - whatever a user's own code raises
            given = dict(zip(SIGNATURES[name], (p, s, *rest), strict=True))
            raise InputError(f"{self._place(name, error)}: {_why(error, given)}") from None
        self.check(name, s)

    def check(self, name: str, s: Any) -> None:
        """Refuse a state that cannot be, naming the function that left it.

        Raises:
            InputError: NaN, no number, a rate that is not above 0, a negative window.
        """
        wrong = self._wrong(s)
        if wrong:
            line = self.functions[name].__code__.co_firstlineno
            raise InputError(f"{self.file}:{line}: {name} {wrong}")

    def _place(self, name: str, error: BaseException) -> str:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.file
        ]
        return f"{self.file}:{lines[-1] if lines else '?'}: {name}"

    def _wrong(self, s: Any) -> str:
        """What is wrong with a state, or nothing."""
        for name in self.STATE.names or ():
            value, kind = getattr(s, name), self.STATE[name]
            if kind.shape:
                continue
            if not isinstance(value, int | float):
                return f"leaves s.{name} = {value!r}, which is no number"
            if kind == np.int64 and int(value) != value:
                return f"stores {value!r} in s.{name}, a whole number by its start; write 0.0 in STATE"
            if kind == np.float64 and value != value:  # noqa: PLR0124 - NaN alone differs from itself
                return f"leaves s.{name} = NaN"
        if not 0.0 < s.rate_bps < float("inf"):
            return f"leaves s.rate_bps = {s.rate_bps:g}; a rate is above 0 bit/s and finite"
        if s.window_bytes < 0.0:
            return f"leaves s.window_bytes = {s.window_bytes:g}; a window is not negative"
        return ""

    def try_out(self, parameters: Any) -> None:
        """Run every function through some thousand events in plain Python, as an engine would.

        Args:
            parameters: A record of `PARAMETERS`.

        Raises:
            InputError: As `call`.
        """
        p, s, ack = self.PARAMETERS.twin(parameters), self.State(), feedback.Ack()
        p.base_rtt_ps = p.base_rtt_ps or TRIAL_RTT_PS
        self.start(p, s, 0)
        now = 0
        for step in range(TRIAL_STEPS):
            now += TRIAL_RTT_PS // 16
            if "on_timer" in self.functions and s.timer_ps <= now:
                s.timer_ps = NEVER_PS
                self.call("on_timer", p, s, now)
            congested = step // 200 % 2
            if "on_cnp" in self.functions and congested and step % 10 == 0:
                self.call("on_cnp", p, s, now)
            if "on_ack" in self.functions:
                _trial_ack(ack, step, congested)
                self.call("on_ack", p, s, ack, now)


TRIAL_STEPS = 2000
TRIAL_RTT_PS = 8_000_000


def _trial_ack(ack: Any, step: int, congested: int) -> None:
    """The acknowledgement of a path that is congested for 200 packets, then free for 200."""
    ack.end, ack.next, ack.mtu_bytes, ack.acked_bytes = step + 1, step + 17, 1024, 1024
    ack.marked = congested and step % 3 == 0
    ack.rtt_ps = TRIAL_RTT_PS * (1 + congested * (step % 200) // 20)
    ack.hops = 2
    for hop in range(ack.hops):
        ack.speed_bps[hop] = 100e9
        ack.time[hop] = (step + hop) * 500 & feedback.TIME_MASK
        ack.sent[hop] = (step + hop) * 8 & feedback.SENT_MASK
        ack.queue[hop] = congested * (step % 200) * 13 & feedback.QUEUE_MASK


_MISSPELT = re.compile(r"'(p|s|ack)' object has no attribute '(\w+)'")


def _why(error: BaseException, given: dict[str, Any]) -> str:
    """An exception as one line; a misspelt field with what there is."""
    misspelt = _MISSPELT.search(str(error))
    if isinstance(error, AttributeError) and misspelt is not None and misspelt[1] in given:
        owner, name = misspelt.groups()
        known = list(type(given[owner]).__slots__)
        return f"{owner} has no {name!r}{nearest(name, known) or '; it has ' + ', '.join(known)}"
    return f"{type(error).__name__}: {error}"


def _rows(file: str, table: dict[str, Any]) -> list[Parameter]:
    return [
        Parameter(name, *_unit_of(file, name, value), "of the law's own file", file, choices=_choices(value))
        for name, value in table.items()
    ]


def _choices(value: Any) -> tuple[str, ...]:
    return OFF_ON if isinstance(value, bool) else ()


def _unit_of(file: str, name: str, value: Any) -> tuple[Unit, str]:
    """Unit and text of a parameter's default, by how it is written."""
    if isinstance(value, bool):
        return "switch", OFF_ON[value]
    if isinstance(value, int | float):
        return ("count", str(value)) if isinstance(value, int) else ("ratio", repr(value))
    parsers: dict[Unit, Callable[[str, str], float]] = {
        "bps": units.parse_rate_bps,
        "ps": units.parse_time_ps,
        "bytes": units.parse_size_bytes,
    }
    for unit, parse in parsers.items():
        try:
            parse(str(value), file)
        except ScenarioError:
            continue
        return unit, str(value)
    raise InputError(
        f"{file}: PARAMETERS[{name!r}] is {value!r}; write a rate (1Gbps), a time (5us), a size (16KB), a"
        " number, True or False"
    )


def _fields(file: str, table: dict[str, Any]) -> list[tuple[str, str]]:
    taken = {name for name, _ in HEAD}
    for name, value in table.items():
        if name in taken:
            raise InputError(f"{file}: STATE[{name!r}]: every state has this field already")
        if not isinstance(value, int | float):
            raise InputError(f"{file}: STATE[{name!r}] is {value!r}; a state holds numbers (0 or 0.0)")
    return [(name, "f8" if isinstance(value, float) else "i8") for name, value in table.items()]


def file_of(entry: str) -> str:
    """The file of a law that another package announces.

    Args:
        entry: Module as an entry point names it.

    Raises:
        InputError: There is no such module.
    """
    name = entry.partition(":")[0]
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise InputError(f"{name}: an entry point names this module for a law, and it cannot be found")
    return spec.origin


def load(path: str | Path) -> OwnLaw:
    """Read a law's file.

    Args:
        path: A Python file; it is executed.

    Raises:
        InputError: It cannot be read or executed, or its tables or functions are not those of a law.
    """
    file = str(path)
    if not Path(path).is_file():
        raise InputError(f"{file}: no such file")
    name = f"roce_pkt_own_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{file}:{error.lineno}: {error.msg}") from None
    except Exception as error:  # noqa: BLE001 - whatever a user's own code raises
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        raise InputError(f"{file}:{lines[-1] if lines else '?'}: {type(error).__name__}: {error}") from None
    return OwnLaw(file, module)
