"""Importing this loads the engine, or compiles it: for the process that a sweep's workers are forked from."""

from roce_pkt.engine.session import Session
from roce_pkt.scenario import presets

Session(presets.load("two-to-one")).prepare()
