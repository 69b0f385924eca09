"""`python -m roce_pkt`."""

from roce_pkt.cli.app import main

main()
