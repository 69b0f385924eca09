"""The packet workbench for RoCE: craft, dissect, generate, replay and analyse RDMA over Ethernet."""

from typing import Any

__version__ = "0.1.0"


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
