"""Labels with levels, of which none may stand beside one that extends it by a separator.

Labels are sorted JSON strings, so those below `"a"` are a run of labels that begin with `"a > `.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate

from structgen.schema.nodes import Array, Labels, json_text


@dataclass(frozen=True, slots=True)
class Antichain:
    """A set of labels in a program whose levels exclude each other."""

    first: int
    """The labels are those from `first` to before `end`."""
    end: int
    separator: str


def separator_in_json(separator: str) -> bytes:
    """How a separator stands in a label."""
    return json_text(separator)[1:-1]


def above(label: bytes, separator: bytes) -> list[bytes]:
    """The labels of the levels above one: `"a > b"` -> `["a"]`, be they there or not."""
    found: list[bytes] = []
    at = label.find(separator)
    while at >= 0:
        found.append(label[:at] + label[-1:])
        at = label.find(separator, at + 1)
    return found


def below(label: bytes, separator: bytes) -> bytes:
    """How all labels below one begin."""
    return label[:-1] + separator


def exclude_each_other(one: bytes, other: bytes, separator: bytes) -> bool:
    """Whether one of two labels stands below the other, or is it."""
    return (
        one == other
        or one.startswith(below(other, separator))
        or other.startswith(below(one, separator))
    )


def without_the_widest(node: Array) -> Array:
    """An antichain without the labels that could leave too few others for `min_items`.

    A label takes away the lowest labels below it. As many of those that are left as can be demanded
    besides the last item may be chosen in any order, and there is still one more.
    """
    if not node.antichain or not isinstance(node.item, Labels) or node.min_items < 2:
        return node
    texts, separator = node.item.texts, separator_in_json(node.separator)
    spans = [
        (bisect_left(texts, start), bisect_left(texts, start + b"\xff"))
        for start in (below(text, separator) for text in texts)
    ]
    lowest = [0, *accumulate(begin == end for begin, end in spans)]
    most = (lowest[-1] - 1) // (node.min_items - 1)
    kept = tuple(
        text
        for text, (begin, end) in zip(texts, spans, strict=True)
        if lowest[end] - lowest[begin] <= most
    )
    return node if len(kept) == len(texts) else replace(node, item=Labels(kept))
