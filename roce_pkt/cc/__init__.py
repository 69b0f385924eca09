"""Congestion-control laws: one file per algorithm, plain functions over parameters, state and time."""
