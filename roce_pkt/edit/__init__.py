"""Captures in, captures out: rewriting and repair that leave alone what they are not asked to change."""
