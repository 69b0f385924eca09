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
