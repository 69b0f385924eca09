"""What a NIC does at the end of a flow, without clock, file or dice of its own."""
