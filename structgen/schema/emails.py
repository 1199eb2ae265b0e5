r"""Email addresses as the package email-validator reads them, which Pydantic asks.

    local@label.label.last

It wants a dot in the domain, a letter at its end, and no domain that is reserved for other uses.
Only ASCII is written.
"""

from __future__ import annotations

from structgen.schema.formats import whole
from structgen.schema.nodes import Pattern, String

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_FIRST = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?"
_LAST = "(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}))?[A-Za-z]"
_EMAIL = rf"{_ATOM}(?:\.{_ATOM})*@{_FIRST}(?:\.{_LABEL}){{0,3}}\.{_LAST}"
"""At most 188 characters behind the `@`."""
_PUNYCODE = r"[@.][A-Za-z0-9-]{2}--"
"""Labels that promise an encoding of other characters, which few of them keep."""
_RESERVED = r"(?i)\.(?:arpa|invalid|local|localhost|onion|test)$"

EMAIL_ADDRESS = String(
    patterns=(
        whole(_EMAIL),
        Pattern("^[^@]{1,64}@"),
        Pattern(_PUNYCODE, negated=True),
        Pattern(_RESERVED, negated=True),
    ),
    name="email",
)
