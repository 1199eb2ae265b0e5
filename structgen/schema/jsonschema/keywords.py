"""Every keyword of JSON Schema: enforced, without effect on validity, or refused."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

ENFORCED = frozenset(
    {
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minContains",
        "maxContains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "unevaluatedItems",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
    }
)
"""Keywords that a reader looks at."""

COMMENTS = frozenset(
    {
        "title",
        "description",
        "default",
        "example",
        "examples",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)
"""Keywords whose values nobody looks at."""

ANNOTATIONS = COMMENTS | {
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$schema",
    "$vocabulary",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$defs",
    "definitions",
}
"""Keywords that say nothing about a value, or only where definitions are found."""

PLAIN = COMMENTS | {"type"}
"""All that a schema has which says a type and nothing else."""

NAMES = {
    "$schema": "a string",
    "$id": "a string",
    "$anchor": "a string",
    "$dynamicAnchor": "a string",
    "$defs": "an object of schemas",
    "definitions": "an object of schemas",
}
"""Keywords by which parts are found, and what their values must be."""

REFUSED = {
    "nullable": "add null to the type: it is a keyword of OpenAPI, not of JSON Schema",
    "discriminator": "give every alternative a const property: it is a keyword of OpenAPI",
    "divisibleBy": "use multipleOf: it is a keyword of draft 3",
    "disallow": "use not: it is a keyword of draft 3",
    "extends": "use allOf: it is a keyword of draft 3",
}
"""Keywords of other languages that authors mean as a rule, with what to write instead."""

IN_PLACE = frozenset(
    {
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that say more about the same value."""

FOR_TYPES = ENFORCED - IN_PLACE
"""Keywords about the type of a value, or about the values of one type."""

_KNOWN = ENFORCED | ANNOTATIONS
_PLAIN = {name.lower(): name for name in ENFORCED}


@lru_cache(maxsize=4096)
def misspelt(keyword: str) -> str:
    """The assertion that an unknown keyword is a misspelling of; empty for a mere annotation.

    Example: `misspelt("maxLenght")` is `maxLength`, `misspelt("x-order")` is empty.
    """
    if keyword in _KNOWN or keyword in REFUSED:
        return ""
    if not keyword[:1].isalpha() or keyword.startswith(("x-", "X-")):
        return ""  # a mark that says "mine": `x-order`, `_format`, `^note`
    plain = keyword.replace("_", "").replace("-", "").lower()
    if plain in {name.lower() for name in ANNOTATIONS}:
        return ""
    if plain in _PLAIN:
        return _PLAIN[plain]
    close = get_close_matches(plain, _PLAIN, 1, 0.86) if len(plain) > 3 else []
    return _PLAIN[close[0]] if close else ""
