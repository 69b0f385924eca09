"""The packet workbench for RoCE: craft, dissect, generate, replay and analyse RDMA over Ethernet."""

__version__ = "0.1.0"
