"""Random JSON texts of nodes, for soundness: whatever a node allows must validate."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from structgen import regex
from structgen.schema import nodes
from structgen.schema.nodes import Node, String
from structgen.schema.strings import content_dfa

FREE = 'ab09 -éß/:.\U0001f600\n"\\'


def sample(node: Node, definitions: Mapping[str, Node], rng: random.Random, depth: int = 4) -> str:
    """One text of a node; lengths near both bounds, arrays and objects small."""

    def of(inner: Node) -> str:
        return sample(inner, definitions, rng, depth - 1)

    match node:
        case nodes.Labels():
            return rng.choice(node.texts).decode()
        case nodes.String():
            return json.dumps(text_of(node, rng), ensure_ascii=rng.random() < 0.2)
        case nodes.Integer():
            low = node.minimum if node.minimum is not None else min(-(10**18), node.maximum or 0)
            high = node.maximum if node.maximum is not None else max(10**18, low)
            return str(rng.choice([low, high, rng.randint(low, high)]))
        case nodes.Fixed():
            return fixed_text(node, rng)
        case nodes.Number():
            low = -1e6 if node.minimum is None else node.minimum
            high = low + 2e6 if node.maximum is None else node.maximum
            return f"{rng.uniform(low, high):.10f}"
        case nodes.Array():
            return "[" + ", ".join(_items(node, definitions, rng, depth)) + "]"
        case nodes.Object():
            return _object(node, definitions, rng, depth)
        case nodes.Union():
            flat = (nodes.Labels, nodes.String, nodes.Integer)
            ending = [part for part in node.options if isinstance(part, flat)]
            return of(rng.choice(ending if depth <= 0 and ending else node.options))
        case nodes.Ref():
            return of(definitions[node.name])
        case nodes.Embedded():
            return json.dumps(json.dumps(json.loads(of(node.node)), separators=(",", ":")))
        case nodes.AnyJson():
            return rng.choice(["null", "1", '"a"', "[]", "{}", "[1, true]"])
        case _:
            raise AssertionError(node)


def fixed_text(node: nodes.Fixed, rng: random.Random) -> str:
    low, high = node.low // node.step, node.high // node.step
    near = [n for n in (0, 1, -1, low, high) if low <= n <= high]
    n = node.step * rng.choice([*near, rng.randint(low, high)])
    digits = str(abs(n)).zfill(node.places + 1)
    whole, fraction = digits[: len(digits) - node.places], digits[len(digits) - node.places :]
    text = f"{whole}.{fraction}" if fraction else whole
    if fraction and rng.random() < 0.5:
        text = text.rstrip("0").rstrip(".")
    return ("-" if n < 0 else "") + text


def text_of(node: String, rng: random.Random) -> str:
    if not node.patterns:
        most = node.min_length + 5 if node.max_length is None else node.max_length
        length = rng.randint(node.min_length, min(most, node.min_length + 5))
        return "".join(rng.choice(FREE) for _ in range(length))
    dfa = content_dfa(node.patterns, node.excluded)
    while True:
        text = walk(dfa, rng, node.min_length)
        if node.min_length <= len(text) and (
            node.max_length is None or len(text) <= node.max_length
        ):
            return text


def walk(dfa: regex.Dfa, rng: random.Random, least: int = 0) -> str:
    """A random text of an automaton, of about `least` to `least + 40` characters."""
    left, state, out = regex.distances(dfa), 0, list[str]()
    while dfa.edges[state]:
        may_end = state in dfa.accepting and len(out) >= least
        if may_end and (rng.random() < 0.1 or len(out) > least + 40):
            break
        edges = dfa.edges[state]
        if len(out) > least + 40:
            edges = (min(edges, key=lambda edge: left[edge[2]]),)
        first, last, state = rng.choice(edges)
        code = rng.choice([first, last, rng.randint(first, last)])
        out.append(chr(first if 0xD800 <= code < 0xE000 else code))
    return "".join(out)


def _items(node: nodes.Array, definitions: Mapping[str, Node], rng: random.Random, depth: int):
    most = node.min_items + (2 if depth > 0 else 0)
    most = most if node.max_items is None else min(most, node.max_items)
    found: list[str] = []
    wanted = rng.randint(node.min_items, max(node.min_items, most))
    for _ in range(50 * wanted):
        if len(found) == wanted:
            break
        n = len(found)
        item = node.prefix[n] if n < len(node.prefix) else node.item
        text = sample(item, definitions, rng, depth - 1)
        if not (node.unique and any(json.loads(text) == json.loads(other) for other in found)):
            found.append(text)
    return found


def _object(node: nodes.Object, definitions: Mapping[str, Node], rng: random.Random, depth: int):
    members: dict[str, str] = {}
    optional = [prop.name for prop in node.properties if not prop.required]
    missing = node.min_properties - len(node.properties) + len(optional)
    needed = set(rng.sample(optional, min(max(missing, 0), len(optional))))
    more = depth > 0 and node.max_properties is None
    for prop in node.properties:
        if prop.required or prop.name in needed or (more and rng.random() < 0.3):
            members[prop.name] = sample(prop.node, definitions, rng, depth - 1)
    wanted = node.min_properties + (rng.randint(0, 2) if depth > 0 else 0)
    wanted = wanted if node.max_properties is None else min(wanted, node.max_properties)
    for _ in range(50 * wanted if node.extras else 0):
        if len(members) >= wanted:
            break
        extra = rng.choice(node.extras)
        key: Any = json.loads(sample(extra.key, definitions, rng, 0))
        if key not in members and key not in node.reserved:
            members[key] = sample(extra.value, definitions, rng, depth - 1)
    return "{" + ", ".join(f"{json.dumps(key)}: {text}" for key, text in members.items()) + "}"
