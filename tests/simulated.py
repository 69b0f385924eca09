"""Scenarios and numbers that the engine's tests share."""

import json
from pathlib import Path

import numpy as np

from roce_pkt.engine.session import Session, Sinks
from roce_pkt.scenario.reader import read_file, read_text

ROOT = Path(__file__).parents[1]
PEER = json.loads((ROOT / "tests/data/peer_star.json").read_text())


def peer_scenario(name, **changes):
    return read_file(ROOT / f"tools/peer/{name}.toml", {k.replace("__", "."): v for k, v in changes.items()})


def text_scenario(traffic, *, top="", fabric="hosts = 3", switch="", host=""):
    return read_text(
        f'name = "t"\n{top}\n[fabric]\n{fabric}\n[switch]\n{switch}\n[host]\n{host}\n[[traffic]]\n{traffic}\n'
    )


def two_to_one(**parts):
    return text_scenario('receiver = 2\nmessage = "100KB"\ncount = 20', **parts)


class Run:
    """A session run to its end, with what its sinks got."""

    def __init__(self, scenario, every_ps=0, events=True):
        self.rows, self.frames, blocks = [], [], []
        sinks = Sinks(
            self.rows.append,
            self.frames.append,
            lambda t, q, r: blocks.append((t.copy(), q.copy(), r.copy())),
        )
        self.session = Session(scenario, sinks, every_ps, trace=events)
        if scenario.measure_from_ps:
            self.session.advance(scenario.measure_from_ps)
            self.session.restart_statistics()
        self.session.advance(scenario.duration_ps)
        self.session.settle()
        self.built = self.session.built
        self.arrays, self.pairs = self.built.arrays, self.built.pairs
        self.rows = np.concatenate(self.rows) if self.rows else np.zeros(0)
        self.frames = np.concatenate(self.frames) if self.frames else np.zeros(0)
        if blocks:
            self.times, self.queues, self.rates = (np.concatenate(b) for b in zip(*blocks, strict=True))

    def events(self, kind):
        return self.rows[self.rows["kind"] == kind]

    @property
    def requester(self):
        return self.arrays.half[self.pairs.requester]

    @property
    def responder(self):
        return self.arrays.half[self.pairs.responder]

    def port(self, name):
        names = [self.built.topology.port_name(i) for i in range(len(self.built.topology.ports))]
        return self.arrays.port[names.index(name)]
