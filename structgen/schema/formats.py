"""Formats of strings as regular expressions.

    format_node("date") -> a String whose pattern knows the days of every month

Everything that is generated is valid; what is left out is written in the comments: only ASCII in
internationalised formats, no leap seconds, at most nine digits where a standard has no bound,
and hosts of at most seven labels, of which all but the first have up to 30 characters.
"""

from __future__ import annotations

from collections.abc import Callable

from structgen.schema.nodes import Pattern, String

# Dates and times: RFC 3339, the years 0001 to 9999.

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAYS = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
DATE = f"(?:{_YEAR}-{_DAYS}|{_LEAP}-02-29)"
OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def clock(most_digits: int) -> str:
    """Hours, minutes and seconds, with at most so many digits of a second."""
    return rf"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,{most_digits}}})?"


_N = "[0-9]{1,9}"
_CLOCK_SPAN = f"T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)"
_DAY_SPAN = f"(?:{_N}Y(?:{_N}M(?:{_N}D)?)?|{_N}M(?:{_N}D)?|{_N}D)"
_DURATION = f"P(?:{_DAY_SPAN}(?:{_CLOCK_SPAN})?|{_CLOCK_SPAN}|{_N}W)"

# Addresses.

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LAST32 = f"(?:{_H16}:{_H16}|{IPV4})"


def _ipv6() -> str:
    """All forms of RFC 4291: in full, shortened by `::`, and with an IPv4 address at the end."""
    forms = [f"(?:{_H16}:){{6}}{_LAST32}"]
    for behind in range(5, -1, -1):  # groups between `::` and the last 32 bits
        before = f"(?:{_H16}(?::{_H16}){{0,{4 - behind}}})?" if behind < 5 else ""
        forms.append(f"{before}::(?:{_H16}:){{{behind}}}{_LAST32}")
    forms.append(f"(?:{_H16}(?::{_H16}){{0,5}})?::{_H16}")
    forms.append(f"(?:{_H16}(?::{_H16}){{0,6}})?::")
    return "(?:" + "|".join(forms) + ")"


IPV6 = _ipv6()
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SHORT = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?"


def _hostname(behind: int) -> str:
    """A label of up to 63 characters and some of up to 30: at most 253 with six behind."""
    return rf"{_LABEL}(?:\.{_SHORT}){{0,{behind}}}"


PUNYCODE = r"(?:^|[.@])[A-Za-z0-9-]{2}--"
"""Labels that promise an encoding of other characters, which few of them keep."""
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
EMAIL = rf"{_ATOM}(?:\.{_ATOM})*@{_hostname(4)}"

# Identifiers: RFC 3986 without IPvFuture; RFC 6570; RFC 6901.

_ESCAPED = "%[0-9A-Fa-f]{2}"
_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_ESCAPED})"
_NO_COLON = rf"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|{_ESCAPED})"
_NAME = rf"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_ESCAPED})*"
_USER = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{_ESCAPED})*"
PORT = "(?:0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_AUTHORITY = rf"(?:{_USER}@)?(?:\[{IPV6}\]|{_NAME})(?::{PORT})?"
_PATH = f"(?:/{_CHAR}*)*"
_ROOTED = f"/(?:{_CHAR}+{_PATH})?"
_TAIL = rf"(?:\?(?:{_CHAR}|[/?])*)?(?:#(?:{_CHAR}|[/?])*)?"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*"
_URI = f"{_SCHEME}:(?://{_AUTHORITY}{_PATH}|{_ROOTED}|{_CHAR}+{_PATH}|){_TAIL}"
_RELATIVE = f"(?://{_AUTHORITY}{_PATH}|{_ROOTED}|{_NO_COLON}+{_PATH}|){_TAIL}"
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*"
_VALUE = rf"{_VARIABLE}(?::[1-9][0-9]{{0,3}}|\*)?"
_EXPRESSION = rf"\{{[+#./;?&]?{_VALUE}(?:,{_VALUE})*\}}"
_TEMPLATE = rf"(?:[!#$&()*+,./0-9:;=?@A-Z\[\]_a-z~-]|{_ESCAPED}|{_EXPRESSION})*"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"
_RELATIVE_POINTER = rf"(?:0|[1-9][0-9]{{0,8}})(?:#|{_POINTER})"

# Others.

_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_SET = r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_ .,:;@#%/])+\]"
_SIGN = r"[A-Za-z0-9_ ,:;@#%/=!~<>&\"'`-]|\.|\\[dDwWsS.\\()\[\]{}*+?|^$/]"
_OFTEN = r"(?:[*+?]\??)?"
_UNITS = f"(?:(?:{_SIGN}|{_SET}){_OFTEN})*"
_GROUP = rf"\((?:\?:)?{_UNITS}(?:\|{_UNITS})*\){_OFTEN}"
REGEX = rf"\^?(?:(?:{_SIGN}|{_SET}){_OFTEN}|{_GROUP}|\|)*\$?"
"""Regular expressions that Python and ECMAScript both read: without look-around, references,
counted repeats, and groups in groups."""


def base64_groups(alphabet: str, tail: int) -> str:
    """Base64 with so many bytes behind the last full group of three."""
    digit = f"[A-Za-z0-9{alphabet}]"
    endings = ("", f"{digit}[AQgw]==", f"{digit}{{2}}[AEIMQUYcgkosw048]=")
    return f"(?:{digit}{{4}})*{endings[tail]}"


BASE64 = "(?:" + "|".join(base64_groups("+/", tail) for tail in range(3)) + ")"


def whole(source: str) -> Pattern:
    """The strings that a regular expression describes from start to end."""
    return Pattern(f"^(?:{source})$")


def _host() -> String:
    return String(patterns=(whole(_hostname(6)), Pattern(PUNYCODE, negated=True)))


def _email() -> String:
    """At most 254 characters, of which 64 stand before the `@`."""
    short = Pattern("^[^@]{1,64}@")
    return String(patterns=(whole(EMAIL), short, Pattern(PUNYCODE, negated=True)))


def _plain(source: str) -> Callable[[], String]:
    return lambda: String(patterns=(whole(source),))


_FORMATS: dict[str, Callable[[], String]] = {
    "date-time": _plain(f"{DATE}T{clock(9)}{OFFSET}"),
    "date": _plain(DATE),
    "time": _plain(f"{clock(9)}{OFFSET}"),
    "duration": _plain(_DURATION),
    "email": _email,
    "idn-email": _email,
    "hostname": _host,
    "idn-hostname": _host,
    "ipv4": _plain(IPV4),
    "ipv6": _plain(IPV6),
    "uuid": _plain(_UUID),
    "uri": _plain(_URI),
    "uri-reference": _plain(f"(?:{_URI}|{_RELATIVE})"),
    "iri": _plain(_URI),
    "iri-reference": _plain(f"(?:{_URI}|{_RELATIVE})"),
    "uri-template": _plain(_TEMPLATE),
    "json-pointer": _plain(_POINTER),
    "relative-json-pointer": _plain(_RELATIVE_POINTER),
    "regex": _plain(REGEX),
    "byte": _plain(BASE64),
}

FORMATS = frozenset(_FORMATS)
"""The names that `format_node` knows."""


def format_node(name: str) -> String | None:
    """Strings of a JSON Schema format, None where the format is not known.

    Example: `format_node("ipv4")` allows `127.0.0.1`
    """
    made = _FORMATS.get(name)
    if made is None:
        return None
    node = made()
    return String(node.min_length, node.max_length, node.patterns, name=name)
