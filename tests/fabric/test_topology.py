import pytest

from roce_pkt.fabric.topology import build
from roce_pkt.scenario.reader import read_text


def topology(**fabric):
    text = "".join(f"{k} = {v}\n" for k, v in fabric.items())
    traffic = '[[traffic]]\npattern = "flows"\npairs = [[0, 1]]\n'
    return build(read_text(f"[fabric]\n{text}{traffic}").fabric)


def test_star():
    net = topology(hosts=5)
    assert [net.port_name(i) for i in range(10)] == [
        *(f"host{h}" for h in range(5)),
        *(f"switch0:{h}" for h in range(5)),
    ]
    assert all(net.ports[net.ports[i].peer].peer == i for i in range(10))
    assert net.next_ports()[5, 3] == [8]


def test_dumbbell_crosses_its_trunk():
    net = topology(kind='"dumbbell"', hosts=5, left=2, trunk_rate='"400Gbps"')
    ways = net.next_ports()
    assert [net.port_name(p) for p in ways[5, 4]] == ["switch0:2"]
    assert [net.port_name(p) for p in ways[6, 4]] == ["switch1:2"]
    trunk = net.ports[ways[5, 4][0]]
    assert trunk.rate_bps == 400e9
    assert net.ports[0].rate_bps == 100e9


def test_leaf_spine_has_a_path_for_every_spine():
    net = topology(kind='"leaf-spine"', hosts=8, leaves=2, spines=3)
    ways = net.next_ports()
    assert len(ways[8, 7]) == 3
    assert len(ways[8, 0]) == 1
    assert all(len(ways[spine, host]) == 1 for spine in (10, 11, 12) for host in range(8))


@pytest.mark.parametrize("kind", ["star", "dumbbell", "leaf-spine"])
def test_every_host_is_reached_from_every_switch(kind):
    net = topology(kind=f'"{kind}"', hosts=8)
    ways = net.next_ports()
    for host in range(8):
        for start in range(net.hosts, net.hosts + net.switches):
            node, hops = start, 0
            while node != host:
                node = net.ports[net.ports[ways[node, host][0]].peer].node
                hops += 1
                assert hops < 5
