"""Thin joins of a capture or a scenario with the machines: observe, and what follows from it."""
