"""The compiled event loop: the only owner of time (integer picoseconds) and of the seed."""
