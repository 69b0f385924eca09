"""Scenario files: the schema, reading with errors that name the line, presets, and flows of a pattern."""
