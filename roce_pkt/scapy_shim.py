"""What Scapy's extension loader executes under its own name: it only re-exports `roce_pkt.layers`.

Registered by `roce_pkt.scapy_ext`; defining a class here would make it exist twice.
"""

from roce_pkt.layers import *  # noqa: F403
from roce_pkt.layers import __all__  # noqa: F401
