r"""What Unicode says about characters: general categories, `\d \w \s`, cases.

Tables come from Python's `unicodedata` and are computed on first use. Characters that it does not
know are in no class for sure, neither in `\w` nor in `\W`: newer validators may know them.
"""

from __future__ import annotations

import unicodedata
from functools import cache, reduce
from operator import or_

from structgen.regex.charsets import (
    ALL,
    TOP,
    CharClass,
    CharSet,
    charset,
    complement,
    intersection,
    of_text,
    union,
)
from structgen.regex.scripts import PROPERTIES, SCRIPT_CODES, SCRIPTS

ASCII_DIGITS = CharClass.exactly(((0x30, 0x39),))
ASCII_WORD = CharClass.exactly(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)))
NEWLINE = of_text("\n")
ECMA_LINE_ENDS = of_text("\n\r\u2028\u2029")
WHITE_SPACE = charset(
    ((9, 13), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
     (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))
)  # fmt: skip
ECMA_SPACE = union(intersection(WHITE_SPACE, complement(of_text("\x85"))), of_text("\ufeff"))

_ASSIGNED_PLANES = ((0, 0x3FFFF), (0xE0000, 0xE0FFF))
_PRIVATE_PLANES = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
# Symbols with the property Other_Alphabetic, and the two join controls.
_WORD_SYMBOLS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189),
                 (0x200C, 0x200D))  # fmt: skip

_LONG_CATEGORIES = {
    "letter": "L", "casedletter": "LC", "uppercaseletter": "Lu", "lowercaseletter": "Ll",
    "titlecaseletter": "Lt", "modifierletter": "Lm", "otherletter": "Lo", "mark": "M",
    "combiningmark": "M", "nonspacingmark": "Mn", "spacingmark": "Mc", "enclosingmark": "Me",
    "number": "N", "decimalnumber": "Nd", "digit": "Nd", "letternumber": "Nl",
    "othernumber": "No", "punctuation": "P", "punct": "P", "connectorpunctuation": "Pc",
    "dashpunctuation": "Pd", "openpunctuation": "Ps", "closepunctuation": "Pe",
    "initialpunctuation": "Pi", "finalpunctuation": "Pf", "otherpunctuation": "Po",
    "symbol": "S", "mathsymbol": "Sm", "currencysymbol": "Sc", "modifiersymbol": "Sk",
    "othersymbol": "So", "separator": "Z", "spaceseparator": "Zs", "lineseparator": "Zl",
    "paragraphseparator": "Zp", "control": "Cc", "cntrl": "Cc", "format": "Cf",
    "privateuse": "Co", "unassigned": "Cn", "other": "C", "lc": "LC", "l&": "LC",
}  # fmt: skip

_DERIVED: dict[str, tuple[tuple[str, ...], str]] = {
    "alphabetic": (("L", "Nl"), "otheralphabetic"),
    "alpha": (("L", "Nl"), "otheralphabetic"),
    "lowercase": (("Ll",), "otherlowercase"),
    "lower": (("Ll",), "otherlowercase"),
    "uppercase": (("Lu",), "otheruppercase"),
    "upper": (("Lu",), "otheruppercase"),
}
_IGNORED = {ord(char): None for char in "_- "}

_POSIX: dict[str, CharSet] = {
    "alnum": charset(((48, 57), (65, 90), (97, 122))), "alpha": charset(((65, 90), (97, 122))),
    "ascii": charset(((0, 127),)), "blank": of_text("\t "), "cntrl": charset(((0, 31), (127, 127))),
    "digit": charset(((48, 57),)), "graph": charset(((33, 126),)), "lower": charset(((97, 122),)),
    "print": charset(((32, 126),)), "space": charset(((9, 13), (32, 32))),
    "punct": charset(((33, 47), (58, 64), (91, 96), (123, 126))),
    "upper": charset(((65, 90),)), "word": ASCII_WORD.sure,
    "xdigit": charset(((48, 57), (65, 70), (97, 102))),
}  # fmt: skip


@cache
def _categories() -> dict[str, CharSet]:
    """The characters of each general category that this Python knows.

    Of the unassigned ones (Cn) only those that will never be assigned.
    """
    ranges: dict[str, list[tuple[int, int]]] = {"Co": list(_PRIVATE_PLANES)}
    category = unicodedata.category
    for first, last in _ASSIGNED_PLANES:
        start, current = first, category(chr(first))
        for char in range(first + 1, last + 2):
            kind = category(chr(char)) if char <= last else ""
            if kind != current:
                ranges.setdefault(current, []).append((start, char - 1))
                start, current = char, kind
    ranges["Cn"] = [(0xFDD0, 0xFDEF)]
    ranges["Cn"] += [(plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, TOP, 0x10000)]
    return {kind: charset(found) for kind, found in ranges.items() if kind != "Cs"}


@cache
def unassigned() -> CharSet:
    """Characters that this Python's Unicode does not know."""
    return complement(union(*_categories().values()))


def _doubtful(chars: CharSet) -> CharClass:
    """The class of known characters `chars`; unknown ones may belong to it."""
    return CharClass(chars, union(chars, unassigned()))


@cache
def _category(name: str) -> CharClass | None:
    """The class of a general category, by its short name with one or two letters."""
    kinds = _categories()
    wanted = ("Lu", "Ll", "Lt") if name == "LC" else (name,)
    found = [kinds[kind] for kind in kinds if kind.startswith(wanted)]
    return _doubtful(union(*found)) if found else None


@cache
def unicode_digits() -> CharClass:
    r"""`\d` of Rust."""
    return _doubtful(_categories()["Nd"])


@cache
def unicode_word() -> CharClass:
    r"""`\w` of Rust: letters, marks, digits, connectors and a few symbols."""
    kinds = _categories()
    wanted = (kinds[kind] for kind in kinds if kind[0] in "LM" or kind in ("Nd", "Nl", "Pc"))
    return _doubtful(union(*wanted, _WORD_SYMBOLS))


def posix(name: str) -> CharClass | None:
    """The ASCII class `[:name:]`."""
    return CharClass.exactly(_POSIX[name]) if name in _POSIX else None


def named(name: str) -> CharClass | None:
    r"""The class `\p{name}`: a general category, a common script or one of a few properties."""
    kind, equals, value = name.translate(_IGNORED).lower().partition("=")
    if not equals:
        return _general(kind) or _script(kind) or _property(kind)
    if kind in ("gc", "generalcategory"):
        return _general(value)
    return _script(value) if kind in ("sc", "script") else None


def _general(name: str) -> CharClass | None:
    short = _LONG_CATEGORIES.get(name, name[:1].upper() + name[1:])
    return _category(short) if 0 < len(short) <= 2 else None


def _script(name: str) -> CharClass | None:
    name = SCRIPT_CODES.get(name, name)
    return _known(SCRIPTS[name]) if name in SCRIPTS else None


@cache
def _property(name: str) -> CharClass | None:
    if name == "any":
        return CharClass.exactly(ALL)
    if name == "ascii":
        return CharClass.exactly(((0, 127),))
    if name in ("whitespace", "wspace", "space"):
        return CharClass.exactly(WHITE_SPACE)
    if name == "assigned":
        known = [chars for kind, chars in _categories().items() if kind != "Cn"]
        return CharClass(union(*known), union(*known, unassigned()))
    if name in _DERIVED:
        categories, extra = _DERIVED[name]
        parts = [found for kind in categories if (found := _category(kind)) is not None]
        return reduce(or_, parts, _known(PROPERTIES[extra]))
    return _known(PROPERTIES[name]) if name.startswith(("emoji", "extended")) else None


@cache
def _known(ranges: str) -> CharClass:
    """A class from a table such as `41-5A AA`."""
    pairs = (part.split("-") for part in ranges.split())
    chars = charset((int(pair[0], 16), int(pair[-1], 16)) for pair in pairs)
    return _doubtful(intersection(chars, complement(unassigned())))


def fold_case(chars: CharClass) -> CharClass:
    """The class with every other case of its characters, by simple case folding."""
    sure = _other_cases(chars.sure)
    if chars.sure == chars.possible and (not sure or sure[-1][1] < _OLD_CASES):
        return CharClass.exactly(sure)
    return _doubtful(sure)


_OLD_CASES = 0x180
"""Characters below are in no pair of cases that a later Unicode completes."""


def _other_cases(chars: CharSet) -> CharSet:
    if not chars or chars[-1][1] < 128:
        return _other_ascii_cases(chars)
    orbits = _orbits()
    extra: list[tuple[int, int]] = []
    for char, others in orbits.items():
        if any(first <= char <= last for first, last in intersection(chars, ((char, char),))):
            extra.extend((other, other) for other in others)
    return charset((*chars, *extra))


def _other_ascii_cases(chars: CharSet) -> CharSet:
    """ASCII only needs no table; s and k have a third case, the long s and the kelvin sign."""
    lower = intersection(chars, ((97, 122),))
    upper = intersection(chars, ((65, 90),))
    swapped = [(first - 32, last - 32) for first, last in lower]
    swapped += [(first + 32, last + 32) for first, last in upper]
    letters = charset((*lower, *swapped))
    if any(first <= 115 <= last for first, last in letters):
        swapped.append((0x17F, 0x17F))
    if any(first <= 107 <= last for first, last in letters):
        swapped.append((0x212A, 0x212A))
    return charset((*chars, *swapped))


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """For each character with cases: all characters that fold to the same one."""
    groups: dict[str, list[int]] = {}
    for number in (*range(0xD800), *range(0xE000, 0x1FFFF)):
        char = chr(number)
        if char.lower() != char or char.upper() != char or char.casefold() != char:
            groups.setdefault(_simple_fold(char), []).append(number)
            groups[_simple_fold(char)].append(ord(_simple_fold(char)))
    orbits: dict[int, tuple[int, ...]] = {}
    for group in groups.values():
        orbit = tuple(sorted(set(group)))
        orbits.update((char, orbit) for char in orbit if len(orbit) > 1)
    return orbits


# Folded to each other since Unicode 15.1, as their full foldings are equal.
_LATE_FOLDS = {"\ufb05": "\ufb06", "\u1fd3": "\u0390", "\u1fe3": "\u03b0"}


def _simple_fold(char: str) -> str:
    """Simple case folding of one character."""
    folded = char.casefold()
    if len(folded) == 1:
        return folded
    lower = char.lower()
    return _LATE_FOLDS.get(char, lower if len(lower) == 1 else char)
