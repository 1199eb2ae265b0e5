"""Names of hosts: in ASCII, and in other scripts as far as IDNA 2008 allows them for certain.

A name in letters of other scripts has at most three labels of about twelve characters, so that it
is short enough once it is encoded. Of the characters of IDNA 2008 (RFC 5892) those are left out
that may have to be written in another form (NFC), and scripts that are not in daily use. Labels
beginning with `xn--` are never written: few texts behind it are an encoding.
"""

from __future__ import annotations

from structgen.schema.nodes import Pattern

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SHORT = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?"


def hostname(behind: int) -> str:
    """A label of up to 63 characters and some of up to 30: at most 253 with six behind."""
    return rf"{_LABEL}(?:\.{_SHORT}){{0,{behind}}}"


PUNYCODE = Pattern(r"(?:^|\.)[A-Za-z0-9-]{2}--", negated=True)
"""No label promises an encoding of other characters, which few of them keep."""
MAIL_PUNYCODE = Pattern(r'@(?:[^@"]*\.)?[A-Za-z0-9-]{2}--[^@"]*$', negated=True)
"""The same for the domain of a mailbox."""

_LATIN = "ß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįĵķĺļľłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżž"
_GREEK = "\u03ac-\u03ce"
_EASTERN = "\u0430-\u045f\u0560-\u0586\u10d0-\u10fa"  # Cyrillic, Armenian, Georgian
_INDIC = "\u0904-\u0939\u0e01-\u0e30\u0e32\u0e40-\u0e44"  # Devanagari, Thai
_SIGNS = "\u093e-\u094c\u0f0b"
_JAPANESE = "\u3005\u3007\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff"
_OTHER = "\u1200-\u1248\uac00-\ud7a3"  # Ethiopic, Hangul
_HEBREW = "\u05d0-\u05ea"
_ARABIC = "\u0620-\u063f\u0641-\u064a\u0679-\u06d3\u06fd\u06fe"

_LETTERS = f"{_LATIN}{_GREEK}{_EASTERN}{_INDIC}{_JAPANESE}{_OTHER}"
# Characters that RFC 5892, appendix A, allows in the context of others only.
_IN_CONTEXT = (
    rf"\u0375[{_GREEK}]|\u30fb[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff]"
    r"|[\u0904-\u0939]\u094d[\u200c\u200d]?[\u0904-\u0939]"
)
_FIRST = f"(?:[a-z0-9{_LETTERS}]|l\u00b7l|{_IN_CONTEXT})"
_LEFT_TO_RIGHT = f"{_FIRST}(?:-?[a-z0-9{_LETTERS}{_SIGNS}]){{0,9}}(?:l\u00b7l|{_IN_CONTEXT})?"
_RIGHT_TO_LEFT = (
    f"(?:[{_HEBREW}][\u05f3\u05f4]?){{1,6}}|[{_ARABIC}](?:[{_ARABIC}\u0660-\u0669]){{0,11}}"
)
# In a name with letters that run to the left, no label may begin with a digit (RFC 5893).
_PLAIN = "[a-z](?:[a-z0-9-]{0,14}[a-z0-9])?"
_BRIEF = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,14}[A-Za-z0-9])?"


def international_name(behind: int) -> str:
    """A name of a host, in ASCII with so many labels behind the first, or in other scripts."""
    to_right = rf"(?:{_BRIEF}|{_LEFT_TO_RIGHT})(?:\.(?:{_BRIEF}|{_LEFT_TO_RIGHT})){{0,2}}"
    to_left = rf"(?:{_PLAIN}|{_RIGHT_TO_LEFT})(?:\.(?:{_PLAIN}|{_RIGHT_TO_LEFT})){{0,2}}"
    return f"{hostname(behind)}|{to_right}|{to_left}"
