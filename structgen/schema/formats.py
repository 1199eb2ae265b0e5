"""Formats of strings as regular expressions.

    format_node("date") -> a String whose pattern knows the days of every month

Everything that is generated is valid; what is left out is written in the comments: leap seconds,
more than nine digits where a standard has no bound, hosts of more than seven labels, of which all
but the first have up to 30 characters, and what regular expressions say to some engines only.
"""

from __future__ import annotations

from collections.abc import Callable

from structgen.schema.hosts import MAIL_PUNYCODE, PUNYCODE, hostname, international_name
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

# Mail: RFC 5321 with quoted local parts (without backslashes) and addresses in brackets; RFC 6531.

_ATEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_UTF8 = r"\x80-\U0010ffff"
_LITERAL = rf"\[(?:{IPV4}|IPv6:{IPV6})\]"


def _mailbox(more: str, domain: str) -> str:
    """A mailbox with more characters in its local part, whose length is another pattern's."""
    atom = f"[{_ATEXT}{more}]+"
    quoted = rf'"[ !#-\[\]-~{more}]*"'
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{domain}|{_LITERAL})"


_MAILBOX = _mailbox("", hostname(4))
_UTF8_MAILBOX = _mailbox(_UTF8, international_name(4))
# 64 bytes before the `@`; a character outside of ASCII takes up to four of them.
_ASCII_LENGTH = Pattern(r'^(?:[^@"]{1,64}|"[^"]{0,62}")@')
_UTF8_LENGTH = Pattern(r'^(?:[^@"\x80-\U0010ffff]{1,64}|[^@"]{1,16}|"[^"]{0,15}")@')

# Identifiers: RFC 3986; RFC 3987, which adds characters; RFC 6570; RFC 6901.

_ESCAPED = "%[0-9A-Fa-f]{2}"
PORT = "(?:0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_FUTURE = r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*"
_UCS = r"\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    rf"\U{plane:04x}{first}-\U{plane:04x}fffd"
    for plane in range(1, 15)
    for first in (["0000"] if plane < 14 else ["1000"])
)
_PRIVATE = r"\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"


def _identifiers(ucs: str, private: str) -> tuple[str, str]:
    """Absolute and relative identifiers with more characters, some of them in queries only."""
    char = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@{ucs}-]|{_ESCAPED})"
    no_colon = rf"(?:[A-Za-z0-9._~!$&'()*+,;=@{ucs}-]|{_ESCAPED})"
    name = rf"(?:[A-Za-z0-9._~!$&'()*+,;={ucs}-]|{_ESCAPED})*"
    user = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:{ucs}-]|{_ESCAPED})*"
    authority = rf"(?:{user}@)?(?:\[(?:{IPV6}|{_FUTURE})\]|{name})(?::{PORT})?"
    path = f"(?:/{char}*)*"
    rooted = f"/(?:{char}+{path})?"
    tail = rf"(?:\?(?:{char}|[/?{private}])*)?(?:#(?:{char}|[/?])*)?"
    absolute = f"{_SCHEME}:(?://{authority}{path}|{rooted}|{char}+{path}|){tail}"
    return absolute, f"(?://{authority}{path}|{rooted}|{no_colon}+{path}|){tail}"


_URI, _RELATIVE = _identifiers("", "")
_IRI, _RELATIVE_IRI = _identifiers(_UCS, _PRIVATE)
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_ESCAPED})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPED}))*"
_VALUE = rf"{_VARIABLE}(?::[1-9][0-9]{{0,3}}|\*)?"
_EXPRESSION = rf"\{{[+#./;?&]?{_VALUE}(?:,{_VALUE})*\}}"
_TEMPLATE = rf"(?:[!#$&'()*+,./0-9:;=?@A-Z\[\]_a-z~{_UCS}{_PRIVATE}-]|{_ESCAPED}|{_EXPRESSION})*"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"
_RELATIVE_POINTER = rf"(?:0|[1-9][0-9]{{0,8}})(?:#|{_POINTER})"

# Others.

_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_SET = r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_ .,:;@#%/])+\]"
_SIGN = r"[A-Za-z0-9_ ,:;@#%/=!~<>&\"'`-]|\.|\\[dDwWsS.\\()\[\]{}*+?|^$/]"
_OFTEN = r"(?:[*+?]\??)?"


def _counts() -> str:
    """`{n}`, `{n,}` and `{m,n}` of two digits at most, and one for the lower bound."""
    pairs = "|".join(f"{n},(?:[{n}-9]|[1-9][0-9])" for n in range(10))
    return rf"\{{(?:[1-9]?[0-9],?|{pairs})\}}"


_TIMES = rf"(?:[*+?]\??|{_counts()})?"


def _groups(depth: int) -> str:
    """A group with so many levels of groups in it."""
    inner = f"|{_groups(depth - 1)}" if depth else ""
    units = f"(?:(?:{_SIGN}|{_SET}){_TIMES}{inner})*"
    return rf"\((?:\?:)?{units}(?:\|{units})*\){_OFTEN}"


REGEX = rf"\^?(?:(?:{_SIGN}|{_SET}){_TIMES}|{_groups(1)}|\|)*\$?"
"""Regular expressions that all engines read alike: without look-around, references, names of
groups, counts above 99 or of groups, and more than two levels of groups."""


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
    return String(patterns=(whole(hostname(6)), PUNYCODE))


def _international_host() -> String:
    return String(patterns=(whole(international_name(6)), PUNYCODE))


def _email() -> String:
    return String(patterns=(whole(_MAILBOX), _ASCII_LENGTH, MAIL_PUNYCODE))


def _international_email() -> String:
    return String(patterns=(whole(_UTF8_MAILBOX), _UTF8_LENGTH, MAIL_PUNYCODE))


def _plain(source: str) -> Callable[[], String]:
    return lambda: String(patterns=(whole(source),))


_FORMATS: dict[str, Callable[[], String]] = {
    "date-time": _plain(f"{DATE}T{clock(9)}{OFFSET}"),
    "date": _plain(DATE),
    "full-date": _plain(DATE),  # what RFC 3339 and OpenAPI call it
    "time": _plain(f"{clock(9)}{OFFSET}"),
    "duration": _plain(_DURATION),
    "email": _email,
    "idn-email": _international_email,
    "hostname": _host,
    "idn-hostname": _international_host,
    "ipv4": _plain(IPV4),
    "ipv6": _plain(IPV6),
    "uuid": _plain(_UUID),
    "uri": _plain(_URI),
    "uri-reference": _plain(f"(?:{_URI}|{_RELATIVE})"),
    "iri": _plain(_IRI),
    "iri-reference": _plain(f"(?:{_IRI}|{_RELATIVE_IRI})"),
    "uri-template": _plain(_TEMPLATE),
    "json-pointer": _plain(_POINTER),
    "relative-json-pointer": _plain(_RELATIVE_POINTER),
    "regex": _plain(REGEX),
    "byte": _plain(BASE64),
}

FORMATS = frozenset(_FORMATS)
"""The names that `format_node` knows."""

LONGEST = {"hostname": 253, "idn-hostname": 253, "email": 254, "idn-email": 254, "uuid": 36}
"""Characters that no text of a format exceeds, where that spares an automaton of its lengths."""


def format_node(name: str) -> String | None:
    """Strings of a JSON Schema format, None where the format is not known.

    Example: `format_node("ipv4")` allows `127.0.0.1`
    """
    made = _FORMATS.get(name)
    if made is None:
        return None
    node = made()
    return String(node.min_length, node.max_length, node.patterns, name=name)
