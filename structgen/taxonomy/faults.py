"""Everything that is wrong with the labels of a taxonomy, found in bulk.

100,000 labels are checked in a tenth of a second: they are looked at together, in calls that run in
C, and one by one only where such a call has found that something is wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from structgen.errors import Fault

SHOWN = 20
"""Faults of one kind that are named."""

_CONTROL = bytes([*range(32), 127])
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_HIGH_CONTROLS = re.compile("[\x80-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_BLANKS = " \u00a0\u3000"
"""White space that people leave beside a separator."""

Place = Callable[[int], str]


def label_faults(
    labels: list[str], separator: str | None, place: Place, *, allow_similar: bool
) -> list[Fault]:
    """What is wrong with labels, at most `SHOWN` of each kind and then their number."""
    if not labels:
        return [Fault("$", "the taxonomy has no labels")]
    joined = "\n".join(labels)
    odd = "\n".join([label for label in labels if not label.isascii()])
    found = [
        *_blank(labels, place),
        *_levels(labels, joined, separator, place),
        *_unwritable(labels, joined, odd, separator, place),
        *_repeated(labels, place),
    ]
    return found if allow_similar else [*found, *_similar(labels, place)]


def code_faults(codes: Sequence[str], labels: Sequence[str], place: Place) -> list[Fault]:
    """What is wrong with codes, each of which is the code of one label or empty."""
    given = list(filter(None, codes))
    joined = "\n".join(given)
    found = [
        *_odd_codes(codes, joined, place),
        *_repeated_codes(codes, given, place),
    ]
    shared = set(given) & set(labels)
    if shared:
        both = [i for i, code in enumerate(codes) if code in shared and code != labels[i]]
        problems = (f"the code {codes[i]!r:.80} is the label of another row" for i in both)
        found += _few(_at(both, place), problems, "codes that are labels", len(both))
    return found


def text_faults(texts: Iterable[str], place: Place) -> list[Fault]:
    """What is wrong with descriptions."""
    texts = list(texts)
    if _is_text("\n".join(texts)) and "\0" not in "".join(texts):
        return []
    bad = [i for i, text in enumerate(texts) if not _is_text(text) or "\0" in text]
    problems = ("its description holds a lone surrogate or a zero character" for _ in bad)
    return _few(_at(bad, place), problems, "descriptions that are not text", len(bad))


def unknown_faults(kind: str, names: Iterable[object], labels: Iterable[str]) -> list[Fault]:
    """Keys of an option that are no labels."""
    known = set(labels)
    unknown = [name for name in names if name not in known]
    problems = (f"{kind} names {name!r:.200}, which is no label" for name in unknown)
    return _few(
        ("$" for _ in unknown), problems, f"keys of {kind} that are no labels", len(unknown)
    )


def _few(
    places: Iterable[str], problems: Iterable[str], what: str, count: int, advice: str = ""
) -> list[Fault]:
    """The first faults of a kind, and how many there are where that is not all."""
    pairs = islice(zip(places, problems, strict=False), SHOWN)
    found = [Fault(where, problem, advice) for where, problem in pairs]
    if count > SHOWN:
        found.append(Fault("$", f"in all {count} {what}, of which {SHOWN} are shown"))
    return found


def _at(rows: Iterable[int], place: Place) -> Iterator[str]:
    return map(place, rows)


def _blank(labels: list[str], place: Place) -> list[Fault]:
    stripped = list(map(str.strip, labels))
    if stripped == labels and all(labels):
        return []
    blank = [i for i, text in enumerate(stripped) if not text]
    found = _few(_at(blank, place), ("the label is blank" for _ in blank), "blanks", len(blank))
    ends = [i for i, text in enumerate(stripped) if text and text != labels[i]]
    problems = (f"{labels[i]!r:.200} has white space at its ends" for i in ends)
    return found + _few(_at(ends, place), problems, "labels with white space", len(ends))


def _levels(labels: list[str], joined: str, separator: str | None, place: Place) -> list[Fault]:
    """Paths with a level that is blank, or has white space at its ends."""
    if not separator or separator not in joined:
        return []
    beside = (separator, *_BLANKS)
    at_ends = any(text.startswith(separator) or text.endswith(separator) for text in labels)
    if not at_ends and not any(
        separator + text in joined or text + separator in joined for text in beside
    ):
        return []
    bad = [
        i
        for i, label in enumerate(labels)
        if any(not level or level != level.strip() for level in label.split(separator))
        and label == label.strip() != ""
    ]
    problems = (f"a level of {labels[i]!r:.200} is blank or has white space" for i in bad)
    return _few(_at(bad, place), problems, "labels with such levels", len(bad))


def _is_text(joined: str) -> bool:
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unwritable(
    labels: list[str], joined: str, odd: str, separator: str | None, place: Place
) -> list[Fault]:
    """Labels with lone surrogates, or with control characters other than the separator's."""
    found: list[Fault] = []
    if not _is_text(odd):
        bad = [i for i, label in enumerate(labels) if _SURROGATES.search(label)]
        problems = (f"{labels[i]!r:.200} holds a lone surrogate and is not text" for i in bad)
        found += _few(_at(bad, place), problems, "labels with lone surrogates", len(bad))
    if _has_controls(joined, len(labels) - 1) or _HIGH_CONTROLS.search(odd):
        own = separator or "\n\n"
        bad = [i for i, label in enumerate(labels) if _CONTROLS.search(label.replace(own, ""))]
        problems = (f"{labels[i]!r:.200} holds a control character" for i in bad)
        found += _few(_at(bad, place), problems, "labels with control characters", len(bad))
    return found


def _has_controls(text: str, expected: int) -> bool:
    """Whether there are more control characters of one byte than the expected line ends."""
    data = text.encode("utf-8", "surrogatepass")
    return len(data) - len(data.translate(None, _CONTROL)) != expected


def _repeated(labels: list[str], place: Place) -> list[Fault]:
    if len(set(labels)) == len(labels):
        return []
    counts = Counter(labels)
    first = {label: i for i, label in reversed(list(enumerate(labels)))}
    again = [i for i, label in enumerate(labels) if counts[label] > 1 and first[label] != i]
    problems = (f"{labels[i]!r:.200} is also at {place(first[labels[i]])}" for i in again)
    return _few(_at(again, place), problems, "repeated labels", len(again))


def _similar(labels: list[str], place: Place) -> list[Fault]:
    """Labels that a reader, and so a model, would take for the same."""
    folded = _all_folded(labels)
    if len(set(folded)) == len(set(labels)):
        return []
    first: dict[str, int] = {}
    same: list[tuple[int, int]] = []
    for i, text in enumerate(folded):
        one = first.setdefault(text, i)
        if labels[one] != labels[i]:
            same.append((one, i))
    problems = (
        f"{labels[i]!r:.200} differs from {labels[one]!r:.200} at {place(one)} only in case or "
        "Unicode form"
        for one, i in same
    )
    advice = "rename one, or pass allow_similar=True"
    rows = (i for _, i in same)
    return _few(_at(rows, place), problems, "labels that are like others", len(same), advice)


def _all_folded(labels: list[str]) -> list[str]:
    """Labels without regard to case and Unicode form."""
    plain = "\n".join([label if label.isascii() else "" for label in labels])
    folded = plain.lower().split("\n")
    if len(folded) != len(labels):  # a label holds a line end
        return list(map(_folded, labels))
    for i, label in enumerate(labels):
        if not label.isascii():
            folded[i] = _folded(label)
    return folded


def _folded(text: str) -> str:
    """A text without regard to case and Unicode form."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded)


def _odd_codes(codes: Sequence[str], joined: str, place: Place) -> list[Fault]:
    n_lines = joined.count("\n")
    plain = _is_text(joined) and not _has_controls(joined, n_lines)
    plain = plain and not _HIGH_CONTROLS.search(joined)
    if plain and all(code == code.strip() for code in codes):
        return []
    bad = [
        i
        for i, code in enumerate(codes)
        if code != code.strip() or _CONTROLS.search(code) or _SURROGATES.search(code)
    ]
    problems = (f"the code {codes[i]!r:.80} has white space or is not text" for i in bad)
    return _few(_at(bad, place), problems, "codes that are not text", len(bad))


def _repeated_codes(codes: Sequence[str], given: list[str], place: Place) -> list[Fault]:
    if len(set(given)) == len(given):
        return []
    first: dict[str, int] = {}
    again = [i for i, code in enumerate(codes) if code and first.setdefault(code, i) != i]
    problems = (f"the code {codes[i]!r:.80} is also at {place(first[codes[i]])}" for i in again)
    return _few(_at(again, place), problems, "repeated codes", len(again))
