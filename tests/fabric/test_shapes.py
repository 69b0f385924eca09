"""Fabrics: counts and paths of fat-trees, rings, leaf-spines, and links a scenario lists."""

from collections import Counter
from itertools import pairwise

import pytest

from roce_pkt.errors import ScenarioError
from roce_pkt.fabric import topology
from roce_pkt.scenario.reader import read_text


def fabric(text):
    scenario = read_text(f'name = "t"\n[fabric]\n{text}\n[[traffic]]\nreceiver = 0\n')
    return topology.build(scenario.fabric)


def walk(net, src, dst):
    return [net.node_name(src)] + [net.node_name(net.ports[end.peer].node) for end in net.path(src, dst)]


@pytest.mark.parametrize("k", [2, 4, 8, 16])
def test_a_fat_tree_has_the_published_numbers(k):
    net = fabric(f'kind = "fat-tree"\nk = {k}\nhosts = {k**3 // 4}')
    assert net.switches == 5 * k * k // 4
    degree = Counter(port.node for port in net.ports)
    assert all(degree[net.hosts + s] == k for s in range(net.switches))
    assert (
        sum(p.node >= net.hosts and net.ports[p.peer].node >= net.hosts for p in net.ports) == 4 * k**3 // 4
    )


def test_paths_in_a_fat_tree_of_four():
    net = fabric('kind = "fat-tree"\nk = 4\nhosts = 16')
    routes = net.next_ports()
    lengths = {len(net.path(0, dst)) for dst in range(1, 16)}
    assert lengths == {2, 4, 6}
    edge, aggregation = 16, 16 + 8
    assert [len(routes[edge, dst]) for dst in (0, 2, 4)] == [1, 2, 2]
    assert [len(routes[aggregation, dst]) for dst in (0, 4)] == [1, 2]


LISTED = """kind = "custom"
hosts = 3
links = ["host0-switch0", "host1-switch1", "host2-switch3", "switch0-switch1 400Gbps",
         "switch1-switch3 2us", "switch0-switch2", "switch2-switch3"]"""


def test_links_that_a_scenario_lists():
    net = fabric(LISTED)
    routes = net.next_ports()
    assert walk(net, 0, 1) == ["host0", "switch0", "switch1", "host1"]
    assert len(routes[3 + 0, 2]) == 2
    fast = [p for p in net.ports if p.rate_bps == 400e9]
    slow = [p for p in net.ports if p.delay_ps == 2_000_000]
    assert (len(fast), len(slow)) == (2, 2)


def test_a_ring_goes_the_short_way_round():
    net = fabric('kind = "ring"\nring = 5\nhosts = 5')
    assert walk(net, 0, 2) == ["host0", "switch0", "switch1", "switch2", "host2"]
    assert walk(net, 3, 0) == ["host3", "switch3", "switch4", "switch0", "host0"]
    assert all(len(ports) == 1 for ports in net.next_ports().values())


def test_a_large_leaf_spine_spreads_over_every_spine():
    net = fabric('kind = "leaf-spine"\nhosts = 512\nleaves = 32\nspines = 16\nrate = "400Gbps"')
    routes = net.next_ports()
    assert len(routes) == 48 * 512
    assert len(routes[512, 511]) == 16
    assert len(routes[512, 0]) == 1
    assert all(a != b for a, b in pairwise(routes[512, 511]))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('kind = "ring"\nring = 4\nhosts = 6', "6 hosts do not spread evenly over 4"),
        ('kind = "fat-tree"\nk = 5\nhosts = 16', "k is even"),
        ('kind = "fat-tree"\nk = 4\nhosts = 17', "at most 16 hosts"),
        ('kind = "star"\nlinks = ["host0-switch0"]', "links are for kind custom"),
        ('kind = "custom"\nhosts = 2\nlinks = ["host0-switch0"]', "host1 has no link"),
        ('kind = "custom"\nhosts = 2\nlinks = ["host0-host1"]', "two hosts cannot be joined"),
        ('kind = "custom"\nhosts = 2\nlinks = ["host0 switch0"]', "is no link; write"),
        (
            'kind = "custom"\nhosts = 2\nlinks = ["host0-switch0", "host0-switch1"]',
            "host0 has a link already",
        ),
        (
            'kind = "custom"\nhosts = 2\nlinks = ["host0-switch0", "host1-switch1"]',
            "switch1 cannot be reached",
        ),
        (
            'kind = "custom"\nhosts = 2\nlinks = ["host0-switch0", "host1-switch0", "switch0-switch1 4Gbpx"]',
            "4Gbpx",
        ),
    ],
)
def test_a_fabric_that_cannot_be_is_refused(text, told):
    with pytest.raises(ScenarioError, match=told):
        fabric(text)
