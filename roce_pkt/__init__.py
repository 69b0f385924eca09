"""The packet workbench for RoCE: craft, dissect, generate, replay and analyse RDMA over Ethernet."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roce_pkt.capture import Capture as Capture
    from roce_pkt.capture import open as open  # noqa: A004 - the promised name
    from roce_pkt.capture.frames import Frames as Frames
    from roce_pkt.run.drive import drive as drive
    from roce_pkt.run.generate import generate as generate
    from roce_pkt.run.observe import observe as observe
    from roce_pkt.run.simulate import simulate as simulate

__version__ = "0.1.0"

_LAZY = {
    "Capture": "roce_pkt.capture",
    "Frames": "roce_pkt.capture.frames",
    "drive": "roce_pkt.run.drive",
    "generate": "roce_pkt.run.generate",
    "observe": "roce_pkt.run.observe",
    "open": "roce_pkt.capture",
    "simulate": "roce_pkt.run.simulate",
}
"""Public names and where they live; each room is imported when its first name is used."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]


def scapy_ext(ext: Any) -> None:
    """Register the Scapy layers with Scapy's extension loader: `conf.exts.load("roce-pkt")`.

    Loading makes Scapy read RoCE frames; `load_layer("roce_pkt")`, `load_contrib("roce_pkt")` or
    `from scapy.layers.roce_pkt import BTH` then give the names, which are those of `roce_pkt.layers`.

    Args:
        ext: Scapy's `ScapyExt`, which calls this.
    """
    import importlib
    from pathlib import Path

    ext.config("roce-pkt", __version__)
    shim = Path(__file__).with_name("scapy_shim.py")
    for mode in (ext.MODE.LAYERS, ext.MODE.CONTRIB):
        ext.register(name="roce_pkt", mode=mode, path=shim, default=False)
    importlib.import_module("roce_pkt.layers")
