"""Workloads: patterns -> messages -> packets at the rate of a line, and the frames they make."""
