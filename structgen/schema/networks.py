"""Networks as address and prefix length, without host bits."""

from __future__ import annotations

from collections.abc import Iterator

from structgen.schema.formats import IPV4, IPV6

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"


def _ipv4() -> Iterator[str]:
    """Every prefix length with the addresses whose other bits are zero."""
    yield rf"{IPV4}(?:/32)?"
    for prefix in range(32):
        octets, bits = divmod(prefix, 8)
        partial = "|".join(str(n) for n in range(0, 256, 2 ** (8 - bits)))
        parts = [_OCTET] * octets + [f"(?:{partial})"] + ["0"] * (3 - octets)
        yield r"\.".join(parts) + f"/{prefix}"


def _ipv6() -> Iterator[str]:
    """A full address, or its first groups, `::` and a prefix length that covers them.

    Where only the last group is zero, Python writes it instead of `::`.
    """
    group = "[0-9A-Fa-f]{1,4}"
    yield rf"{IPV6}(?:/128)?"
    yield "::/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8])"
    yield f"{group}(?::{group}){{6}}:0/(?:11[2-9]|12[0-8])"
    for groups in range(1, 8):
        lengths = "|".join(map(str, range(16 * groups, 129)))
        yield f"{group}(?::{group}){{{groups - 1}}}::/(?:{lengths})"


IPV4_NETWORK = tuple(_ipv4())
IPV6_NETWORK = tuple(_ipv6())
