"""`--where`: what it picks, and what it says of expressions that do not parse."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt import capture
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.where import parse_where
from roce_pkt.errors import FilterError

PCAPS = Path(__file__).parents[2] / "pcaps"


@pytest.fixture(scope="module")
def frames():
    parts = [capture.open(path).frames() for path in sorted(PCAPS.glob("*.pcap*"))]
    return Frames.concat(parts)


def count(frames, text):
    return int(parse_where(text).mask(frames).sum())


def test_numbers_names_and_addresses_select_what_numpy_would(frames):
    roce = np.isin(frames.kind, [1, 2])
    assert count(frames, "opcode == RC_ACKNOWLEDGE") == int((roce & (frames.opcode == 17)).sum()) > 0
    assert count(frames, "opcode == 0x11 and psn >= 100") == int(
        (roce & (frames.opcode == 17) & (frames.psn >= 100)).sum()
    )
    assert count(frames, "src == 10.0.0.1") == int((frames.src == "10.0.0.1").sum()) > 0
    assert count(frames, "kind == rocev2 or kind == pfc") == int(np.isin(frames.kind, [1, 3]).sum())
    assert count(frames, "not kind == rocev2") == int((frames.kind != 1).sum())
    assert count(frames, "opcode in (RC_SEND_ONLY, 0x11)") == int(
        (roce & np.isin(frames.opcode, [4, 17])).sum()
    )
    assert count(frames, "kind not in (rocev2)") == int((frames.kind != 1).sum())
    assert count(frames, "src == 10.0.0.0/24") == int(
        np.char.startswith(frames.src.astype(str), "10.0.0.").sum()
    )


def test_absent_fields_never_match(frames):
    without = ~frames.present("opcode")
    assert without.any()
    for text in ("opcode == 0", "opcode != 77", "opcode >= 0", "psn < 0x1000000", "opcode not in (3)"):
        assert not (parse_where(text).mask(frames) & without).any(), text
        assert parse_where(text).mask(frames).any(), text


def test_values_beyond_a_column_are_answered_without_wrapping(frames):
    assert count(frames, "opcode == 300") == 0
    assert count(frames, "opcode < 300") == int(frames.present("opcode").sum())
    assert count(frames, "psn > -1") == int(frames.present("psn").sum())
    assert count(frames, "icrc_ok == -1") == int((frames.icrc_ok == -1).sum())


def test_bare_columns_and_bits(frames):
    assert count(frames, "ackreq") == int((frames.present("ackreq") & (frames.ackreq != 0)).sum()) > 0
    assert count(frames, "ecn & 1") == int((frames.present("ecn") & ((frames.ecn & 1) != 0)).sum())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("opcod == 3", "did you mean 'opcode'.*character 1"),
        ("opcode = 3", "did you mean '=='.*character 8"),
        ("psn >", "expected a value.*at the end"),
        ("src == 10.0.0", "is no address.*character 8"),
        ("src < 10.0.0.1", "addresses compare by == and != only"),
        ("kind == rocev3", "did you mean 'rocev2'"),
        ("opcode == RC_SENDONLY", "did you mean 'RC_SEND_ONLY'"),
        ("(psn == 3", r"expected `\)`"),
        ("psn == 5 psn", "expected `and`"),
        ("psn @ 3", "does not belong.*character 5"),
        ("psn == abc", "psn is compared with a number"),
        ("", "expected a column"),
        ("(" * 100 + "psn", "levels"),
        ("__import__('os').system('true')", "no column '__import__'"),
    ],
)
def test_errors_name_the_place_and_the_nearest_name(text, says):
    with pytest.raises(FilterError, match=says) as caught:
        parse_where(text)
    assert "\n" not in str(caught.value)


@given(
    st.lists(
        st.sampled_from(
            [
                "and",
                "or",
                "not",
                "in",
                "(",
                ")",
                ",",
                "==",
                "<",
                "&",
                "5",
                "0x",
                "10.0.0.1",
                "a'b",
                "CNP",
                "\\",
            ]
            + [c.name for c in COLUMNS[:40]]
        ),
        max_size=12,
    ).map(" ".join)
)
def test_any_text_either_parses_or_is_refused(text):
    try:
        where = parse_where(text)
    except FilterError:
        return
    assert where.mask(capture.open(PCAPS / "clean.pcap").frames()).dtype == np.bool_


# -- the names of the JSON


def test_every_dotted_name_is_one_that_the_json_prints_and_picks_the_same_frames(frames):
    from roce_pkt.capture.names import known_names
    from roce_pkt.wire.frame import dissect
    from roce_pkt.wire.present import frame_json

    wanted = {}
    number = 0
    for path in sorted(PCAPS.glob("*.pcap*")):
        source = capture.open(path)
        for record in source.records():
            found = dissect(record.octets, record.wire_len, record.link_type, source.udp_port)
            document = frame_json(found, 1, 0, record.wire_len, record.cap_len)
            for header, fields in document.items():
                for field, value in fields.items() if isinstance(fields, dict) else ():
                    wanted.setdefault(f"{header}.{field}", {})[number] = value
            number += 1
    assert number == len(frames)
    compared = 0
    for name in known_names():
        if "." not in name or name not in wanted:
            continue
        values = wanted[name]
        sample = next((v for v in values.values() if v is not None and not isinstance(v, list)), None)
        if sample is None:
            continue
        text = str(sample).lower() if isinstance(sample, bool) else str(sample)
        picked = set(np.flatnonzero(parse_where(f"{name} == '{text}'").mask(frames)).tolist())
        assert picked == {n for n, value in values.items() if value == sample}, (name, sample)
        compared += 1
    assert compared > 40


def test_values_go_by_their_names(frames):
    assert count(frames, "ecn == CE") == count(frames, "ip.ecn == 3") > 0
    assert count(frames, "ecn in (ect0, 'ECT(1)')") == count(frames, "ecn == 2 or ecn == 1")
    assert count(frames, "aeth.type == nak") == count(frames, "syndrome & 0x60 and syndrome >= 0x60")
    assert count(frames, "icrc.ok == false") == int((frames.icrc_ok == 0).sum()) > 0
    assert count(frames, "pfc.quanta3 > 0") == int((frames.pfc_quanta[:, 3] > 0).sum())
    assert count(frames, "grh.sgid == ::/0") == int((frames.kind == 2).sum())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bht.psn == 1", r"no column 'bht.psn' \(did you mean 'bth.psn'\?\)"),
        ("psn == 1 and ip.dscpp == 2", r"no column 'ip.dscpp' \(did you mean 'ip.dscp'\?\); at character 14"),
        ("ecn == CF", r"ecn is compared with a number or Not-ECT, ECT\(1\), ECT\(0\), CE.*character 8"),
        ("aeth.type == nack", r"did you mean 'nak'"),
    ],
)
def test_wrong_dotted_names_and_values_are_told(text, said):
    with pytest.raises(FilterError, match=said):
        parse_where(text)
