"""Requests and responses find each other: `hashret`, `answers`, and Scapy's `sr` machinery."""

import socket
import threading

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.sendrecv import sndrcv
from scapy.supersocket import StreamSocket

from roce_pkt.layers import AETH, BTH, DETH, FETH, GRH, RETH, XRCETH, AtomicAckETH, AtomicETH, cnp

WAYS = {
    "v4": (
        IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=0xC111),
        IP(src="10.0.0.2", dst="10.0.0.1") / UDP(),
    ),
    "v6": (
        IPv6(src="fd00::1", dst="fd00::2") / UDP(),
        IPv6(src="fd00::2", dst="fd00::1") / UDP(sport=0xC222),
    ),
    "v1": (GRH(sgid="fe80::1", dgid="fe80::2"), GRH(sgid="fe80::2", dgid="fe80::1")),
}
P = 0x000123
ACK, RNR, SEQUENCE, ACCESS = 0x1F, 0x2C, 0x60, 0x62

# request above the network, response above the network, whether one answers the other
PAIRS = [
    ("send, ack", BTH(psn=P, dqpn=1) / b"x", BTH(psn=P, dqpn=9) / AETH(syndrome=ACK), True),
    ("write, ack", BTH(psn=P) / RETH(dmalen=1) / b"x", BTH(psn=P) / AETH(syndrome=ACK), True),
    ("ack of a later one", BTH(psn=P) / b"x", BTH(psn=P + 1) / AETH(syndrome=ACK), False),
    ("ack of an earlier one", BTH(psn=P) / b"x", BTH(psn=P - 1) / AETH(syndrome=ACK), False),
    ("rnr nak", BTH(psn=P) / b"x", BTH(psn=P) / AETH(syndrome=RNR), True),
    ("nak of this one", BTH(psn=P) / b"x", BTH(psn=P) / AETH(syndrome=ACCESS), True),
    (
        "sequence error names an earlier psn",
        BTH(psn=P) / b"x",
        BTH(psn=P - 5) / AETH(syndrome=SEQUENCE),
        True,
    ),
    ("not a later psn", BTH(psn=P) / b"x", BTH(psn=P + 5) / AETH(syndrome=SEQUENCE), False),
    ("psn wraps", BTH(psn=2) / b"x", BTH(psn=0xFFFFFE) / AETH(syndrome=SEQUENCE), True),
    ("read, only", BTH(psn=P) / RETH(dmalen=9), BTH(psn=P) / AETH() / b"123456789", True),
    (
        "read, a later packet",
        BTH(psn=P) / RETH(dmalen=1000),
        BTH(opcode="RC_RDMA_READ_RESPONSE_LAST", psn=P + 3) / AETH() / b"x",
        True,
    ),
    (
        "read, beyond its length",
        BTH(psn=P) / RETH(dmalen=1000),
        BTH(opcode="RC_RDMA_READ_RESPONSE_LAST", psn=P + 4) / AETH() / b"x",
        False,
    ),
    ("read, middle", BTH(psn=P) / RETH(dmalen=1000), BTH(opcode=0x0E, psn=P + 1) / b"x", True),
    ("read, nak", BTH(psn=P) / RETH(dmalen=9), BTH(psn=P) / AETH(syndrome=ACCESS), True),
    ("a read is not acknowledged", BTH(psn=P) / RETH(dmalen=9), BTH(psn=P) / AETH(syndrome=ACK), False),
    ("read response to a send", BTH(psn=P) / b"x", BTH(psn=P) / AETH() / b"y", False),
    ("atomic", BTH(psn=P) / AtomicETH(compare=1), BTH(psn=P) / AETH() / AtomicAckETH(orig=1), True),
    ("atomic ack to a send", BTH(psn=P) / b"x", BTH(psn=P) / AETH() / AtomicAckETH(orig=1), False),
    (
        "flush by an empty read response",
        BTH(psn=P) / FETH() / RETH(),
        BTH(opcode=0x10, psn=P) / AETH(),
        True,
    ),
    (
        "xrc",
        BTH(psn=P) / XRCETH() / b"x",
        BTH(opcode="XRC_ACKNOWLEDGE", psn=P) / AETH(syndrome=ACK),
        True,
    ),
    ("another transport", BTH(psn=P) / XRCETH() / b"x", BTH(psn=P) / AETH(syndrome=ACK), False),
    ("uc has no answer", BTH(opcode=0x24, psn=P) / b"x", BTH(psn=P) / AETH(syndrome=ACK), False),
    ("ud has no answer", BTH(psn=P) / DETH() / b"x", BTH(psn=P) / AETH(syndrome=ACK), False),
    ("a cnp answers nothing", BTH(psn=0) / b"x", cnp(1), False),
    ("a request answers nothing", BTH(psn=P) / b"x", BTH(psn=P) / b"x", False),
    ("unknown opcode", BTH(opcode=0xE0, psn=P) / b"x", BTH(psn=P) / AETH(syndrome=ACK), False),
    ("nothing answers noise", Raw(b"noise"), BTH(psn=P) / AETH(syndrome=ACK), False),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("request_", "reply", "paired"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_who_answers_whom(way, request_, reply, paired):
    there, back = WAYS[way]
    sent = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / there / request_
    for received in (
        Ether(src="02:00:00:00:00:02") / back / reply,
        Ether(bytes(Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / back / reply)),
    ):
        assert bool(received.answers(sent)) is paired
        if paired:
            assert received.hashret() == sent.hashret()


@pytest.mark.parametrize("way", WAYS)
def test_other_addresses_do_not_answer(way):
    there, _ = WAYS[way]
    sent = there / BTH(psn=P) / b"x"
    assert not (there / BTH(psn=P) / AETH(syndrome=ACK)).answers(sent)


def test_plain_udp_keeps_its_own_rule():
    query, other = UDP(sport=5, dport=7) / b"x", UDP(sport=7, dport=6) / b"x"
    assert not other.answers(query)
    roce = UDP(sport=7, dport=6) / BTH()
    assert "answers" in vars(roce)
    roce.remove_payload()
    assert "answers" not in vars(roce)


def _responder(sock):
    """Answer three requests, in another order than they came, as another queue pair."""
    requests = [Ether(sock.recv(2000)) for _ in range(3)]
    for request in reversed(requests):
        bth = request[BTH]
        answer = {
            "RC_SEND_ONLY": AETH(syndrome=ACK, msn=1),
            "RC_RDMA_READ_REQUEST": AETH(syndrome=ACK) / b"read",
            "RC_FETCH_ADD": AETH(syndrome=ACK) / AtomicAckETH(orig=41),
        }[bth.sprintf("%BTH.opcode%")]
        reply = (
            Ether(src=request.dst, dst=request.src)
            / IP(src=request[IP].dst, dst=request[IP].src)
            / UDP(sport=0xC777)
            / BTH(psn=bth.psn, dqpn=0x99)
            / answer
        )
        sock.send(bytes(reply))


def test_sr_pairs_them():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    thread = threading.Thread(target=_responder, args=(theirs,))
    thread.start()
    base = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") / UDP()
    )
    requests = [
        base / BTH(dqpn=5, psn=1, ackreq=1) / b"hello",
        base / BTH(dqpn=5, psn=2) / RETH(dmalen=4),
        base / BTH(dqpn=5, psn=3) / AtomicETH(swap=1),
    ]
    wire = StreamSocket(ours, Ether)
    try:
        answered, unanswered = sndrcv(wire, requests, timeout=5, verbose=False)
    finally:
        thread.join()
        wire.close()
        theirs.close()
    assert len(unanswered) == 0
    pairs = {sent.psn: reply for sent, reply in answered}
    assert pairs[1][AETH].msn == 1
    assert pairs[2][Raw].load == b"read"
    assert pairs[3][AtomicAckETH].orig == 41
    assert all(sent.psn == reply.psn for sent, reply in answered)
