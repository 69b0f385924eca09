"""Records of hops behind a datagram: layout, units, and frames that carry something else there."""

from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.cc import feedback
from roce_pkt.wire import build, frame, present, telemetry
from roce_pkt.wire.opcode import BY_NAME

PATH = build.Path(
    src="10.0.0.1",
    dst="10.0.0.2",
    src_mac=0x020000000001,
    dst_mac=0x020000000002,
    sport=50000,
    dscp=26,
    ecn=2,
)
WORD = 7 << 60 | 5603 << 36 | 432 << 16 | 169


def test_a_hop_in_plain_units():
    trailer = telemetry.octets_of(4, 1, [WORD])
    assert len(trailer) == telemetry.TRAILER_BYTES == 44
    assert trailer[:4] == b"HT\x04\x01"
    assert trailer[4:12] == WORD.to_bytes(8, "big")
    assert telemetry.read(trailer) == {
        "scale": 4,
        "hops": 1,
        "hop": [
            {"speed_bps": 200_000_000_000, "time_ns": 5603, "sent_bytes": 432 * 512, "queue_bytes": 169 * 320}
        ],
    }


def test_a_packet_keeps_its_icrc_and_shows_the_hops_behind_it():
    octets = build.roce_frame(PATH, BY_NAME["RC_SEND_ONLY"].value, {"bth": {"dqpn": 17, "psn": 5}}, bytes(8))
    found = frame.dissect(octets + telemetry.octets_of(1, 2, [WORD, WORD]))
    assert found.icrc is not None
    assert found.icrc.ok
    told = present.frame_json(found, 1, 0, len(octets) + 44, len(octets) + 44)
    assert told["int"]["hops"] == 2
    assert len(told["int"]["hop"]) == 2
    lines = [line for _, line in present.tree(found, len(octets) + 44, len(octets) + 44)]
    assert any(line.startswith("INT  records of hops") for line in lines)
    assert sum(line.startswith("hop ") for line in lines) == 2


def test_padding_behind_a_packet_is_no_record():
    octets = build.roce_frame(PATH, BY_NAME["RC_SEND_ONLY"].value, {"bth": {"dqpn": 17, "psn": 5}}, bytes(8))
    for behind in (b"", bytes(60), b"HT" + bytes(40)):
        assert frame.dissect(octets + behind).telemetry is None


@given(st.binary(max_size=80))
def test_whatever_stands_there_is_read_without_harm(behind):
    found = telemetry.read(b"HT" + behind)
    assert (found is None) == (len(behind) + 2 < telemetry.TRAILER_BYTES)
    if found is not None:
        assert len(found["hop"]) == min(found["hops"], feedback.MAX_HOPS)


@given(st.integers(1, 255), st.lists(st.integers(0, (1 << 64) - 1), max_size=feedback.MAX_HOPS))
def test_a_trailer_is_read_as_written(scale, words):
    found = telemetry.read(telemetry.octets_of(scale, len(words), words))
    assert found is not None
    assert found["hop"] == [
        {name: getattr(telemetry.hop_of(word, scale), name) for name in ("speed_bps", "time_ns", "sent_bytes",
         "queue_bytes")} for word in words
    ]  # fmt: skip
