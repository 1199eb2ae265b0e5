"""Number frames against Python's own arithmetic."""

from __future__ import annotations

import math
import re
import struct

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from structgen.automata.numbers import (
    bounded_number_frame,
    fixed_frame,
    integer_frame,
    number_frame,
)
from structgen.automata.remainders import Remainders
from structgen.schema.grid import decimal_text, number_grid
from tests.automata.frames import accepts
from tests.strategies import examples

NUMBER = re.compile(
    r"-?(?:(?:0|[1-9]\d{0,15})(?:\.\d{1,20})?"
    r"|[1-9](?:\.\d{1,17})?[eE](?:\+?(?:\d{1,2}|[0-2]\d\d|30[0-7])"
    r"|-(?:\d{1,2}|[0-2]\d\d|3[01]\d|32[0-4])))",
    re.ASCII,
)
INTEGER = re.compile(r"-?[1-9]\d{0,18}|0", re.ASCII)
SOUP = st.text("0123456789.eE+-", max_size=8)


def fits(value: float, low: float | None, high: float | None, above=False, below=False) -> bool:
    at_least = low is None or (value > low if above else value >= low)
    return at_least and (high is None or (value < high if below else value <= high))


integers = st.one_of(
    st.integers(-1200, 1200), st.integers(-(10**21), 10**21), st.sampled_from([0, 1, -1, 9, 10])
)


@examples(150)
@given(st.none() | integers, st.none() | integers, st.lists(integers, max_size=20))
@example(low=10**25, high=None, others=[10**26 - 1, 10**26])
@example(low=None, high=-(10**25), others=[-(10**26) + 1, -(10**26)])
def test_integers_between_bounds(low, high, others):
    if low is not None and high is not None and low > high:
        low, high = high, low
    frame = integer_frame(low, high)
    digits = max(19, len(str(abs(low or 0))), len(str(abs(high or 0))))
    near = [edge + d for edge in (low or 0, high or 0) for d in (-10, -1, 0, 1, 10)]
    for value in [*others, *near, *(low + n for n in range(25) if low is not None)]:
        expected = fits(value, low, high) and abs(value) < 10**digits
        assert accepts(frame, str(value).encode()) == expected, value


@pytest.mark.parametrize("text", ["", "-", "00", "01", "-0", "-01", "+1", "1.0", "1e3", " 1", "1 "])
@pytest.mark.parametrize("bounds", [(None, None), (-5, 5), (0, None)])
def test_integers_are_written_in_one_way(bounds, text):
    assert not accepts(integer_frame(*bounds), text.encode())


@examples(300)
@given(SOUP | integers.map(str))
def test_integers_without_bounds(text):
    assert accepts(integer_frame(None, None), text.encode()) == bool(INTEGER.fullmatch(text))


@examples(500)
@given(SOUP)
@example("1e307")
@example("1e308")
@example("1e-324")
@example("1e-325")
@example("9.99999999999999999e307")
@example("-0")
@example("-0.0e0")
def test_numbers_without_bounds(text):
    assert accepts(number_frame(), text.encode()) == bool(NUMBER.fullmatch(text))


@pytest.mark.parametrize("sign", ["", "+", "-"])
def test_every_exponent(sign):
    for exponent in range(400):
        for text in (f"1e{sign}{exponent}", f"-9.5E{sign}{exponent:02}", f"3e{sign}{exponent:03}"):
            assert accepts(number_frame(), text.encode()) == bool(NUMBER.fullmatch(text)), text


@examples(500)
@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 1e308))
def test_every_double_can_be_written(value):
    assert accepts(number_frame(), repr(value).encode())


@examples(300)
@given(SOUP)
def test_numbers_are_never_infinite(text):
    if accepts(number_frame(), text.encode()):
        assert math.isfinite(float(text))


bounds = st.none() | st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.1 + 0.2, 1e-9, 100.0, 1e16, 1e17, -1e20, 5e-324]),
    st.floats(-20, 20),
    st.integers(-1000, 1000).map(lambda n: n / 8),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@examples(200)
@given(bounds, bounds, st.booleans(), st.booleans(), st.lists(st.floats(-30, 30), max_size=6))
@example(low=0.0, high=1.0, above=False, below=False, others=[])
@example(low=0.1, high=None, above=True, below=False, others=[])
@example(low=1e300, high=None, above=False, below=False, others=[1e300])
@example(low=-1e-30, high=1e-30, above=True, below=True, others=[])
@example(low=0.0, high=0.0, above=False, below=False, others=[])
def test_numbers_between_bounds(low, high, above, below, others):
    """A text is accepted exactly if its nearest double is within the bounds."""
    if low is not None and high is not None and low > high:
        low, high = high, low
    frame = bounded_number_frame(low, high, above, below)
    texts = [f"{x:.{n}f}" for x in others for n in (0, 1, 3, 17, 20)]
    for edge in (low, high):
        texts += [] if edge is None else list(_texts_near(edge))
    whole_digits = max(16, *(len(str(int(abs(edge or 0)))) for edge in (low, high)))
    for text in texts:
        value = float(text)
        if value == 0 and text.startswith("-"):
            expected = False  # a bounded number has no negative zero
        else:
            expected = fits(value, low, high, above, below)
            expected = expected and len(text.lstrip("-").split(".")[0]) <= whole_digits
        assert (frame is not None and accepts(frame, text.encode())) == expected, text


def _texts_near(edge: float):
    """The doubles around a bound and the decimals between them, in several lengths."""
    value = edge
    for _ in range(3):
        value = math.nextafter(value, -math.inf)
    for _ in range(7):
        after = math.nextafter(value, math.inf)
        if math.isfinite(after):
            yield from (f"{value:.{n}f}" for n in (0, 1, 2, 10, 16, 17, 18, 19, 20))
        value = after


@examples(200)
@given(bounds, bounds, st.booleans(), st.booleans())
def test_the_grid_has_exactly_the_numbers_in_range(low, high, above, below):
    assume(low is None or high is None or low <= high)
    first, last = number_grid(low, high, above, below)
    assert (bounded_number_frame(low, high, above, below) is None) == (first > last)
    if first > last:
        return

    def value(n: int) -> float:
        return n / 10**20

    assert fits(value(first), low, high, above, below)
    assert fits(value(last), low, high, above, below)
    assert low is None or not fits(value(first - 1), low, None, above)
    assert high is None or not fits(value(last + 1), None, high, False, below)


@examples(200)
@given(st.binary(min_size=8, max_size=8), st.integers(0, 30), st.sampled_from("0123456789.eE+-"))
def test_damaged_numbers(raw, place, other):
    value = struct.unpack("d", raw)[0]
    assume(math.isfinite(value) and abs(value) < 1e308)
    text = list(repr(value))
    text[place % len(text)] = other
    damaged = "".join(text)
    assert accepts(number_frame(), damaged.encode()) == bool(NUMBER.fullmatch(damaged))


@pytest.mark.parametrize(
    "text", ["", "-", ".", "1.", ".5", "-.5", "01", "1e", "1e+", "0.0.1", "--1"]
)
def test_texts_that_are_no_numbers(text):
    assert not accepts(number_frame(), text.encode())
    assert not accepts(bounded_number_frame(-5.0, 5.0, False, False), text.encode())


def written(n: int, places: int) -> str:
    """n / 10**places, with as many digits after the point as are needed, or a few zeros more."""
    digits = decimal_text(abs(n)).zfill(places + 1)
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
    return "-" * (n < 0) + whole + ("." + fraction if fraction else "")


steps = st.sampled_from([1, 2, 3, 5, 7, 8, 10, 12, 20, 25, 50, 60, 100, 125, 250, 1000])


@examples(100)
@given(
    st.integers(-3000, 3000),
    st.integers(0, 10**5),
    st.integers(0, 2),
    steps,
    st.sampled_from([(), (), (4,), (10,), (2, 3)]),
    st.lists(st.integers(-(10**5), 10**5), max_size=10),
)
@example(low=-1000, more=2000, places=0, step=1000, gaps=(), others=[])
@example(low=-5, more=10, places=2, step=5, gaps=(10,), others=[])
@example(low=120, more=3000, places=0, step=125, gaps=(), others=[])
def test_multiples_between_bounds(low, more, places, step, gaps, others):
    high = low + more
    frame = fixed_frame(low, high, places, step, tuple(step * gap for gap in gaps))
    near = [edge + d for edge in (low, high, 0) for d in (-step, -1, 0, 1, step)]
    near += [step * (n // step) + d for n in (*others, low, high) for d in (-step, 0, 1, step)]
    for n in (*near, *others):
        fits = low <= n <= high and n % step == 0 and all(n % (step * gap) for gap in gaps)
        assert accepts(frame, written(n, places).encode()) == fits, n
        if places and n % 10 == 0:
            short = written(n // 10, places - 1)
            assert accepts(frame, short.encode()) == fits, short


@pytest.mark.parametrize("step", [1, 3, 10, 12, 50, 80, 100, 125, 250, 1000, 96])
def test_remainders_of_a_class_are_completed_by_the_same_digits(step):
    remainders = Remainders(step)
    for remainder in range(step):
        other = remainders.of(remainder)
        for length in range(4):
            tails = range(10**length)
            mine, theirs = (r * 10**length for r in (remainder, other))
            assert all(((mine + t) % step == 0) == ((theirs + t) % step == 0) for t in tails)


@pytest.mark.parametrize(("step", "most"), [(1000, 4), (100, 3), (50, 5), (7, 7), (250, 8)])
def test_remainders_have_few_classes(step, most):
    remainders = Remainders(step)
    assert len({remainders.of(remainder) for remainder in range(step)}) <= most


@pytest.mark.parametrize("step", [10, 50, 100, 250, 1000, 10**6, 3600])
def test_multiples_of_round_numbers_are_small(step):
    assert len(fixed_frame(-(10**16), 10**16, 0, step).states) < 250
