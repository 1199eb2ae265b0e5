"""Keywords about strings and about numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from structgen.regex import PatternError, PatternTooLarge
from structgen.schema import nodes
from structgen.schema.formats import LONGEST, format_node
from structgen.schema.jsonschema.admits import exact
from structgen.schema.jsonschema.documents import Json, child
from structgen.schema.jsonschema.formats import ENFORCED, INTEGER_FORMATS
from structgen.schema.jsonschema.numbers import MOST_DIGITS, NUMERIC, meet_numbers, multiples
from structgen.schema.jsonschema.reader import Reader
from structgen.schema.nodes import Fixed, Integer, Never, Node, Number, Pattern, String
from structgen.schema.strings import pattern_dfa

STRING_KEYWORDS = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER_KEYWORDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"}
)


def read_string(reader: Reader, schema: Json, path: str) -> Node:
    """The strings of a schema."""
    low = size(reader, schema, "minLength", path) or 0
    high = size(reader, schema, "maxLength", path)
    if high is not None and high >= _longest(schema):
        high = None
    node = nodes.string(low, high)
    if isinstance(node, Never):
        return Never(f"minLength {low} is more than maxLength {high}", path)
    if "pattern" in schema:
        pattern = pattern_of(reader, schema["pattern"], child(path, "pattern"))
        node = String(low, high, (pattern,)) if pattern is not None else node
    return reader.meet(node, _format(schema)) if "format" in schema else node


def pattern_of(reader: Reader, source: Any, path: str) -> Pattern | None:
    """A pattern of the schema; None where it cannot be enforced."""
    try:
        source.encode()
    except (AttributeError, UnicodeEncodeError):
        reader.refuse(path, "a pattern must be a string, without lone surrogates")
        return None
    pattern = Pattern(source, "ecma")
    try:
        pattern_dfa(pattern)
    except PatternTooLarge as error:
        reader.refuse(path, f"the pattern {source[:60]!r} is too large: {error}", "simplify it")
    except PatternError as error:
        reader.refuse(path, f"the pattern {source[:60]!r} cannot be enforced: {error}")
    else:
        return pattern
    return None


def _format(schema: Json) -> String:
    """Strings of the format that a schema names; formats about other types say nothing here."""
    name = schema["format"]
    known = format_node(name) if isinstance(name, str) and name in ENFORCED else None
    return String() if known is None else known


def _longest(schema: Json) -> float:
    """The longest text of a schema's format, as far as that is known."""
    name = schema.get("format")
    return LONGEST.get(name, math.inf) if isinstance(name, str) else math.inf


def size(reader: Reader, schema: Json, keyword: str, path: str) -> int | None:
    """The value of a keyword that counts something, None where it is missing."""
    if keyword not in schema:
        return None
    value = schema[keyword]
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if not whole or isinstance(value, bool) or value < 0:
        reader.refuse(child(path, keyword), f"{keyword} must be a whole number, 0 or more")
        return None
    if value > 10**18:
        # No text is that long, so the bound only has to stay that large.
        return 10**18
    return int(value)


def read_number(reader: Reader, schema: Json, path: str) -> Node:
    """The numbers of a schema, or its integers if that is its type."""
    node = _bounds(reader, schema, path)
    if "multipleOf" in schema:
        divisor = _bound(reader, schema, "multipleOf", path)
        if divisor is not None and divisor <= 0:
            reader.refuse(child(path, "multipleOf"), "multipleOf must be more than 0")
        elif divisor is not None and isinstance(node, NUMERIC):
            node = _multiples_of(node, exact(divisor))
    if isinstance(node, Never):
        return Never(node.reason, path)
    if "format" in schema:
        return _number_format(reader, schema, node)
    return node


def _multiples_of(node: Integer | Number | Fixed, divisor: Fraction) -> Node:
    if isinstance(node, Integer) and (1 / divisor).denominator == 1:
        return node  # such as 0.5, of which every integer is a multiple
    grid = multiples(divisor)
    return meet_numbers(node, grid) if isinstance(grid, NUMERIC) else grid


def _number_format(reader: Reader, schema: Json, node: Node) -> Node:
    name = schema["format"]
    bounds = INTEGER_FORMATS.get(name) if isinstance(name, str) else None
    return node if bounds is None else reader.meet(node, Integer(*bounds))


def _bounds(reader: Reader, schema: Json, path: str) -> Node:
    low, above = _one_bound(reader, schema, "minimum", "exclusiveMinimum", path)
    high, below = _one_bound(reader, schema, "maximum", "exclusiveMaximum", path)
    if schema["type"] == "integer":
        first = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
        last = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
        return nodes.integer(first, last)
    if low is None and high is None:
        return Number()
    bounds = _double(low), _double(high), above, below
    if problem := nodes.too_fine_bounds(*bounds):
        return reader.refuse(path, problem, "use wider bounds, or another unit")
    return nodes.number(*bounds)


def _double(bound: float | None) -> float | None:
    try:
        return None if bound is None else float(bound)
    except OverflowError:
        return math.inf if bound is not None and bound > 0 else -math.inf


def _one_bound(
    reader: Reader, schema: Json, inclusive: str, exclusive: str, path: str
) -> tuple[float | None, bool]:
    """The stronger of two bounds on one side, and whether it is exclusive."""
    bound = _bound(reader, schema, inclusive, path)
    if isinstance(schema.get(exclusive), bool):  # draft 4: it makes the other one exclusive
        return bound, bound is not None and bool(schema[exclusive])
    strict = _bound(reader, schema, exclusive, path)
    if strict is None:
        return bound, False
    if bound is None:
        return strict, True
    stronger = strict >= bound if inclusive == "minimum" else strict <= bound
    return (strict, True) if stronger else (bound, False)


def _bound(reader: Reader, schema: Json, keyword: str, path: str) -> int | float | None:
    value = schema.get(keyword)
    if keyword not in schema:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        reader.refuse(child(path, keyword), f"{keyword} must be a number")
        return None
    if isinstance(value, float) and not math.isfinite(value):
        reader.refuse(child(path, keyword), f"{keyword} must be a finite number")
        return None
    if isinstance(value, int) and value.bit_length() > MOST_DIGITS * 3.32:
        reader.refuse(child(path, keyword), f"{keyword} has more than {MOST_DIGITS} digits")
        return None
    return value
