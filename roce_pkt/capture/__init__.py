"""Captures in and out, and frames as columns."""
