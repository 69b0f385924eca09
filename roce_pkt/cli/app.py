"""The command `roce-pkt`: finds the verb, imports only its file, and turns errors into one line.

Exit codes: 0 fine; 1 the input was read and something in it is wrong; 2 wrong use or unreadable
input. Never a traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from roce_pkt.errors import RoceError

VERBS = {
    "dissect": "Read frames: a line each, a tree, JSON lines or fields.",
    "check": "Find what is wrong: ICRC, lengths, pads, order, PFC.",
    "export": "Write the columns of a capture to a Parquet file.",
    "simulate": "Run a scenario: hosts, switches, ECN, PFC, DCQCN in closed loop.",
    "sweep": "A grid of simulations on all cores: keys varied, seeds, a table, a picture.",
    "replay": "Run a capture through DCQCN: who was marked, told, slowed.",
    "craft": "Make one frame or exchange.",
    "generate": "Frames of a workload at line rate.",
    "impair": "Do faults to a capture, with the truth beside it.",
    "rewrite": "Map addresses, numbers, keys; scrub; anonymise.",
    "send": "Put a capture on a wire.",
    "icrc": "Explain a frame's ICRC, or repair a capture's.",
    "presets": "Scenarios that come with the package.",
    "profiles": "Congestion-control profiles: values, units, sources.",
}
"""Verb -> one line for the list; `roce_pkt.cli.<verb>` holds it."""


def _module(verb: str) -> Any:
    return importlib.import_module(f"roce_pkt.cli.{verb}")


def _add(app: typer.Typer, verb: str) -> None:
    """Register one verb with its real parameters."""
    module = _module(verb)
    group = getattr(module, "app", None)
    if group is not None:
        app.add_typer(group, name=verb)
    else:
        app.command(name=verb)(getattr(module, verb))


def _placeholder() -> Callable[[], None]:
    def verb() -> None:
        """Only listed."""

    return verb


def _show_version(value: bool) -> None:
    if value:
        from roce_pkt import __version__

        typer.echo(f"roce-pkt {__version__}")
        raise typer.Exit


def _callback(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """The packet workbench for RoCE: craft, dissect, check and replay RDMA over Ethernet."""
    del version


def build(verb: str | None) -> typer.Typer:
    """The command with one verb loaded, or with all verbs listed."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich help costs 0.15 s of imports; --help answers in 0.3 s
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_callback)
    if verb in VERBS:
        _add(app, str(verb))
    else:
        for name, line in VERBS.items():
            app.command(name=name, help=line)(_placeholder())
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code.

    Args:
        arguments: Words after the command's name; the process's own by default.
    """
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(words: list[str]) -> int:
    """Run the command and return its exit code."""
    if sys.stdout is None or sys.stderr is None:  # started with a closed stream
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the process's whole life
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]  # the base of all wrong-use errors
    verb = next((w for w in words if not w.startswith("-")), None)
    try:
        code = build(verb)(words or ["--help"], standalone_mode=False, prog_name="roce-pkt")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except RoceError as error:
        return _complain(str(error))
    except usage_error as error:
        message = getattr(error, "format_message", error.__str__)()
        return _complain(message)
    except (BrokenPipeError, SystemExit):
        # The reader went away (`| head`), of which the parser makes an exit of its own:
        # nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        # whatever else fails has been told by its reader or writer: this is standard output
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _complain(f"standard output: {error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", 130)
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        if os.environ.get("ROCE_PKT_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}"
        return _complain(f"a fault in roce-pkt itself: {what}; please report it with ROCE_PKT_TRACEBACK=1")


def _complain(message: str, code: int = 2) -> int:
    line = " ".join(message.split())
    printable = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
    sys.stderr.write(f"roce-pkt: {printable}\n")
    return code
