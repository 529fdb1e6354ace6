"""Every text kernel and its readable twin, against each other and against Python's own parsers."""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill.kernels import decimal_spans, span_values, tokenizer

twins = {
    name: pytest.mark.parametrize(
        name, [getattr(home, name), getattr(home, f"{name}_reference")], ids=["kernel", "reference"]
    )
    for home, names in (
        (tokenizer, ("count_bytes", "tokenize")),
        (span_values, ("parse_integers", "factorize_spans")),
        (decimal_spans, ("parse_decimals", "find_missing")),
    )
    for name in names
}


def as_bytes(text):
    encoded = text if isinstance(text, bytes) else text.encode()
    return np.frombuffer(encoded, dtype=np.uint8)


def joined(spans):
    """The spans one after the other, and where each starts and ends."""
    encoded = [span.encode() for span in spans]
    lengths = np.array([len(span) for span in encoded], dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    return as_bytes(b"".join(encoded)), starts, ends


def run_tokenize(tokenize, text, delimiter=(44, -1), wanted=(0, 1, 2), room=50, expected=0, begin=0):
    starts, ends = np.full((2, len(wanted), room), -1, dtype=np.int64)
    data = as_bytes(text)
    records, fields, offset, status = tokenize(
        data, begin, delimiter, expected, np.array(wanted, dtype=np.int64), starts, ends
    )
    spans = [[data[starts[w, r] : ends[w, r]].tobytes().decode() for w in range(len(wanted))] for r in range(records)]
    return spans, fields, offset, status


@twins["count_bytes"]
def test_counts_bytes(count_bytes):
    assert count_bytes(as_bytes("a\nb\n\n"), 10) == 3
    assert count_bytes(as_bytes(""), 10) == 0


@twins["tokenize"]
@pytest.mark.parametrize(
    ("text", "delimiter", "expected"),
    [
        ("1,2,3\n4,5,6\n", ",", [["1", "2", "3"], ["4", "5", "6"]]),
        ("1,2,3\n4,5,6", ",", [["1", "2", "3"], ["4", "5", "6"]]),
        ("1,2,3\r\n4,5,6\r\n", ",", [["1", "2", "3"], ["4", "5", "6"]]),
        ("\n1,2,3\n \t\r\n\n4,5,6\n\n", ",", [["1", "2", "3"], ["4", "5", "6"]]),
        ("1::2::3::9\n4:4::5::6::9", "::", [["1", "2", "3"], ["4:4", "5", "6"]]),
        ("a\t\tc\n\tb\t", "\t", [["a", "", "c"], ["", "b", ""]]),
        ("1 2 3", " ", [["1", "2", "3"]]),
        (" 1 , 2\t,3 \n", ",", [["1", "2", "3"]]),
        ('"a,b","c\nd",3\n', ",", [["a,b", "c\nd", "3"]]),
        ('"a""b","",3\n', ",", [['"a""b"', "", "3"]]),
        ('"a" , "b"\t,3\n', ",", [["a", "b", "3"]]),
        ('"""",""""""\t,3', ",", [['""""', '""""""', "3"]]),
        ("a'b,c\"d,3", ",", [["a'b", 'c"d', "3"]]),
        ("é|ü|€\n", "|", [["é", "ü", "€"]]),
        ("", ",", []),
    ],
)
def test_finds_fields(tokenize, text, delimiter, expected):
    first, second = (delimiter.encode() + b"\0")[:2]
    spans, _, offset, status = run_tokenize(tokenize, text, (first, second or -1))
    assert spans == expected
    assert status == tokenizer.COMPLETE
    assert offset == len(text.encode())


@twins["tokenize"]
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,2,3\n4,5\n6,7,8\n", (1, 2, 6, tokenizer.RAGGED)),
        ("1,2,3\n4,5,6\n7,8,9,0", (2, 4, 12, tokenizer.RAGGED)),
        ('1,2,3\n4,"5,6\n7,8,9\n', (1, 2, 6, tokenizer.UNCLOSED_QUOTE)),
        ('1,2,3\n4,"5"x,6\n', (1, 2, 6, tokenizer.TEXT_AFTER_QUOTE)),
        ('1,2,3\n"', (1, 1, 6, tokenizer.UNCLOSED_QUOTE)),
    ],
)
def test_reports_the_first_broken_record(tokenize, text, found):
    spans, *rest = run_tokenize(tokenize, text)
    assert (len(spans), *rest) == found


@twins["tokenize"]
def test_expected_fields_room_and_begin(tokenize):
    text = "x,y,z\n1,2,3\n4,5,6\n"
    assert run_tokenize(tokenize, text, room=1) == ([["x", "y", "z"]], 3, 6, tokenizer.COMPLETE)
    assert run_tokenize(tokenize, text, begin=6)[0] == [["1", "2", "3"], ["4", "5", "6"]]
    assert run_tokenize(tokenize, text, expected=4)[3] == tokenizer.RAGGED
    assert run_tokenize(tokenize, text, wanted=(2, 0))[0][1] == ["3", "1"]


@given(st.text('ab,:" \t\r\n"', max_size=40), st.sampled_from([(44, -1), (58, 58), (9, -1), (32, -1)]))
@settings(max_examples=500)
def test_kernel_and_twin_agree_on_anything(text, delimiter):
    results = [
        run_tokenize(tokenize, text, delimiter) for tokenize in (tokenizer.tokenize, tokenizer.tokenize_reference)
    ]
    assert results[0] == results[1]


@given(
    st.lists(st.lists(st.text('ab,;"\n\r é', max_size=5), min_size=3, max_size=3), min_size=1, max_size=8),
    st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n")]),
)
def test_agrees_with_the_csv_module(records, style):
    quoting, line_end = style
    file = io.StringIO(newline="")
    csv.writer(file, quoting=quoting, lineterminator=line_end).writerows(records)
    expected = [
        [field.strip(" \t") for field in record] for record in csv.reader(io.StringIO(file.getvalue(), newline=""))
    ]
    spans, _, _, status = run_tokenize(tokenizer.tokenize, file.getvalue())
    undone = [[f[1:-1].replace('""', '"') if f.startswith('"') else f for f in record] for record in spans]
    assert status == tokenizer.COMPLETE
    assert [[field.strip(" \t") for field in record] for record in undone] == expected


FINITE = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.from_regex(r"[+-]?[0-9]{0,18}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@twins["parse_decimals"]
@given(st.lists(st.one_of(DECIMALS, FINITE.map(repr), FINITE.map("{:.6g}".format), st.text("1.e-+_ n", max_size=6))))
def test_decimals_are_exactly_what_float_reads(parse_decimals, spans):
    values = parse_decimals(*joined(spans), decimal_spans.POINT)
    for span, value in zip(spans, values, strict=True):
        if not np.isnan(value):
            assert value == float(span)
            assert np.signbit(value) == np.signbit(float(span))


@twins["parse_decimals"]
def test_plain_decimals_are_read_and_others_left(parse_decimals):
    plain = [
        "5",
        "-3.5",
        "+.25",
        "4.",
        "0.1",
        "123456789012345",
        "1e22",
        "1E-22",
        "-0",
        "000001.50",
        "2.5e+3",
    ]
    values = parse_decimals(*joined(plain), decimal_spans.POINT)
    assert values.tolist() == [float(span) for span in plain]
    assert np.signbit(values[plain.index("-0")])
    others = [
        "",
        ".",
        "-",
        "e5",
        "1e",
        "1e+",
        "nan",
        "inf",
        "1_0",
        "1,5",
        "0x1",
        "1234567890123456",
        "1e23",
        "1 2",
        "1e99999999999999999999",
    ]
    assert np.isnan(parse_decimals(*joined(others), decimal_spans.POINT)).all()


@twins["parse_decimals"]
@given(st.lists(st.floats(-1e4, 1e4).map(repr), min_size=1))
def test_numbers_written_in_full_are_read_without_help(parse_decimals, spans):
    """Up to 18 digits and a divisor up to 10^22: what the shortest text of a double that is not tiny needs."""
    plain = [span for span in spans if abs(float(span)) >= 1e-3]
    values = parse_decimals(*joined(plain), decimal_spans.POINT)
    assert values.tolist() == [float(span) for span in plain]


def test_quotients_that_lie_halfway_are_left_to_others():
    """2^54 + 1 lies between two doubles; so do its products with powers of ten, written as fractions."""
    halfway = ["18014398509481985.0", "9007199254740993.0", "900719925474099.25", "4503599627370497.5"]
    values = decimal_spans.parse_decimals(*joined(halfway), decimal_spans.POINT)
    for span, value in zip(halfway, values, strict=True):
        assert np.isnan(value) or value == float(span)


@twins["parse_decimals"]
def test_a_comma_may_be_the_point(parse_decimals):
    values = parse_decimals(*joined(["3,5", "-0,25", "4", "3.5", "1.234,5", "1,2,3"]), ord(","))
    assert values[:3].tolist() == [3.5, -0.25, 4]
    assert np.isnan(values[3:]).all()


@twins["find_missing"]
@given(st.lists(st.one_of(st.sampled_from(decimal_spans.MISSING), st.text("NnAa/-?# 1.ul\t", max_size=5))))
def test_words_for_missing_values(find_missing, spans):
    expected = [span.strip(" \t").lower() in decimal_spans.MISSING for span in spans]
    assert find_missing(*joined(spans)).tolist() == expected
    assert find_missing(*joined([span.upper() for span in spans])).tolist() == expected


@twins["parse_integers"]
@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_canonical_integers_are_read(parse_integers, integers):
    values, count = parse_integers(*joined([str(integer) for integer in integers]))
    assert count == len(integers)
    assert values.tolist() == integers


@twins["parse_integers"]
@pytest.mark.parametrize(
    "span",
    [
        "",
        "-",
        "+1",
        "-0",
        "007",
        "1.0",
        "1e3",
        " 1",
        "a",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "12345678901234567890",
    ],
)
def test_other_integers_are_not(parse_integers, span):
    assert parse_integers(*joined(["0", "-9223372036854775808", span, "3"]))[1] == 2


@twins["factorize_spans"]
@given(st.lists(st.text("abé", max_size=3)))
def test_codes_and_firsts_tell_spans_apart(factorize_spans, spans):
    codes, firsts = factorize_spans(*joined(spans))
    distinct = list(dict.fromkeys(spans))
    assert [spans[first] for first in firsts] == distinct
    assert [distinct[code] for code in codes] == spans
    assert firsts.tolist() == [spans.index(name) for name in distinct]


@pytest.mark.parametrize("seed", range(5))
def test_the_table_of_ids_grows(seed):
    names = [f"id{k}" for k in range(5000)]
    random.Random(seed).shuffle(names)
    text, starts, ends = joined(names + names)
    found = span_values.factorize_spans(text, starts, ends)
    expected = span_values.factorize_spans_reference(text, starts, ends)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
