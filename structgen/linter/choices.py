"""Rules about sets of labels, and about how a vocabulary writes them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from structgen.errors import VocabularyError
from structgen.later import later
from structgen.linter.design import Design, Problem
from structgen.linter.words import all_texts, listed, texts, words
from structgen.schema.nodes import Labels, String
from structgen.schema.sites import Site
from structgen.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    import structgen.compiler as compiler
else:
    compiler = later("structgen.compiler")

MANY_LABELS = 10
LONG_LABEL = 60
"""Mean length in characters."""
FEW_LABELS = 3
"""Smaller sets are yes-or-no questions."""
MOST_TOKENISED = 1_000
"""Labels of one set that are run through the tokenizer."""

WAYS_OUT = frozenset(
    {
        "other", "others", "another", "none", "unknown", "unclear", "unsure", "undecided",
        "undetermined", "unspecified", "neither", "else", "misc", "miscellaneous", "na",
        "neutral", "maybe", "mixed", "ambiguous", "uncertain", "inconclusive", "abstain", "nothing",
        "general",
    }
)  # fmt: skip
SCALES = frozenset(
    {
        "very", "extremely", "somewhat", "rather", "too", "low", "lower", "lowest", "medium", "mid",
        "middle", "moderate", "average", "high", "higher", "highest", "minor", "major", "critical",
        "severe", "urgent", "trivial", "blocker", "small", "large", "tiny", "huge", "short", "long",
        "easy", "normal", "hard", "beginner", "intermediate", "advanced", "expert", "never",
        "rarely", "seldom", "sometimes", "often", "usually", "always", "poor", "bad", "fair", "ok",
        "good", "great", "excellent", "weak", "strong", "negative", "positive", "decreasing",
        "stable", "increasing",
    }
)  # fmt: skip
"""Labels made of these words alone are steps of a scale, on which everything has its place."""
CALENDAR = (
    frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}),
    frozenset(
        {
            "january", "february", "march", "april", "may", "june", "july", "august", "september",
            "october", "november", "december",
        }
    ),
)  # fmt: skip
_CONTEXT = '{"choice": '


def index_over_string(design: Design) -> Iterator[Problem]:
    """Many long labels, each of which is written out."""
    for site, node in design.choices:
        long = texts(node)
        mean = sum(map(len, long)) / max(len(long), 1)
        if len(long) > MANY_LABELS and mean > LONG_LABEL:
            message = f"{len(long)} labels of {mean:.0f} characters on average are written out"
            advice = "number them in the prompt and ask for the number, or for a short code"
            yield design.at(site, message, advice)


def look_alike_labels(design: Design) -> Iterator[Problem]:
    """Labels that differ only by case or blanks."""
    for site, node in design.choices:
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for text in texts(node):
            groups["".join(text.split()).casefold()].append(text)
        alike = [group for group in groups.values() if len(group) > 1]
        if alike:
            shown = "; ".join(listed(group) for group in alike[:3])
            message = f"labels differ only by case or blanks: {shown}"
            yield design.at(site, message, "keep one of them")


def way_out(design: Design) -> Iterator[Problem]:
    """No label is right where none of the others is."""
    for site, node in design.choices:
        found = all_texts(node)
        is_item = site.path.endswith("]")  # a list can be left empty instead
        if found is None or len(found) < FEW_LABELS or b"null" in node.texts or is_item:
            continue
        if _covers_all(found) or _allows_text(design, site):
            continue
        if not any(map(_is_way_out, found)):
            message = f"none of the {len(found)} labels fits where the input fits none of them"
            advice = 'add a label such as "other" or "unknown", or make the field optional'
            yield design.at(site, message, advice)


def _covers_all(labels: list[str]) -> bool:
    """Whether nothing else is thinkable: steps of a scale, single letters, days or months."""
    if all(len(label) == 1 or SCALES.issuperset(words(label)) for label in labels):
        return True
    short = {label.casefold()[:3] for label in labels}
    return any(short == {name[:3] for name in names} for names in CALENDAR)


def _is_way_out(text: str) -> bool:
    plain = words(text)
    return bool(WAYS_OUT & {*plain}) or plain in (["n", "a"], []) or plain[:1] == ["not"]


def _allows_text(design: Design, site: Site) -> bool:
    """Whether the labels are options of a union that also takes free text."""
    others = design.options(site.union) if site.union is not None else ()
    return any(isinstance(node, String) for node in others)


def split_labels(design: Design) -> Iterator[Problem]:
    """Labels that begin with another token in JSON than they do in plain text."""
    vocabulary = design.vocabulary
    if vocabulary is None or vocabulary.encode is None:
        return
    for site, node in design.choices:
        if not isinstance(site.node, Labels):
            continue  # it is written as text
        split = list(_split(node, vocabulary, vocabulary.encode))
        if split:
            message = f"labels begin with another token in JSON than in text: {listed(split)}"
            yield design.at(site, message, "begin labels with a letter, without quotes or blanks")


def _split(
    node: Labels, vocabulary: Vocabulary, encode: Callable[[str], list[int]]
) -> Iterator[str]:
    for text in texts(node)[:MOST_TOKENISED]:
        if text and not _begins_alike(text, vocabulary, encode):
            yield text


def _begins_alike(text: str, vocabulary: Vocabulary, encode: Callable[[str], list[int]]) -> bool:
    """Whether the token at a label's first byte is the same with and without quotes around."""
    quoted = json.dumps(text, ensure_ascii=False)
    try:
        alone = vocabulary.decode(encode(text)[:1])
        inside = encode(_CONTEXT + quoted)
    except VocabularyError:
        return False  # the tokenizer has no tokens for it
    at = 0
    for token in inside:
        data = vocabulary.decode([token])
        if at == len(_CONTEXT) + 1:
            # A token that also takes the closing quote still tells the label from the others.
            return data == alone or (alone == text.encode() and data.startswith(alone + b'"'))
        at += len(data)
    return False


def budget(design: Design) -> Iterator[Problem]:
    """The shortest value does not fit into the budget."""
    if design.vocabulary is None or design.max_new_tokens is None:
        return
    needed = compiler.compile(design.source, design.vocabulary).min_tokens
    if needed > design.max_new_tokens:
        message = f"the shortest value takes {needed} tokens, the budget is {design.max_new_tokens}"
        advice = f"raise max_new_tokens to {needed} and more, or shorten required fields"
        yield Problem("$", message, advice)
