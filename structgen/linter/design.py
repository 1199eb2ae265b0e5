"""What rules look at: the sites of a schema, and the model it is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from structgen.linter.silences import Silences
from structgen.schema.load import LoadedSchema
from structgen.schema.nodes import Choice, Labels, Node, Object, Property, Schema, json_text, labels
from structgen.schema.reading import adapters
from structgen.schema.sites import Site, options, sites
from structgen.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding without its rule, and the rules that its field silences."""

    path: str
    message: str
    suggestion: str
    silenced: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Design:
    """A schema as the rules see it."""

    source: Any
    loaded: LoadedSchema
    vocabulary: Vocabulary | None = None
    max_new_tokens: int | None = None

    @property
    def schema(self) -> Schema:
        return self.loaded.schema

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        return tuple(site for site in sites(self.schema) if not site.same_as)

    @cached_property
    def silences(self) -> Silences:
        return Silences(self.source if isinstance(self.source, dict) else self.core_schemas)

    @property
    def core_schemas(self) -> list[object]:
        """What Pydantic makes of the types; a JSON Schema has none."""
        if isinstance(self.source, dict):
            return []
        return [adapter.core_schema for adapter in adapters(self.loaded.reader)]

    @property
    def objects(self) -> Iterator[tuple[Site, Object]]:
        """Sites of objects that declare properties."""
        for site in self.sites:
            if isinstance(site.node, Object) and site.node.properties:
                yield site, site.node

    @property
    def choices(self) -> Iterator[tuple[Site, Labels]]:
        """Sites of label sets, constants left out."""
        for site in self.sites:
            node = _as_labels(site.node)
            if node is not None and len(node.texts) > 1:
                yield site, node

    def options(self, node: Node) -> tuple[Node, ...]:
        """What a node may be, without unions and references."""
        return options(self.schema, node)

    def at(self, site: Site, message: str, suggestion: str) -> Problem:
        """A problem of a site."""
        silenced = self.silences.of(site.owner, site.field)
        if isinstance(site.node, Object):
            silenced |= self.silences.of_object(site.node)
        return Problem(site.path, message, suggestion, silenced)

    def at_field(
        self, site: Site, owner: Object, field: Property, message: str, suggestion: str
    ) -> Problem:
        """A problem of one field of the object at a site."""
        silenced = self.silences.of(owner, field)
        return Problem(f"{site.path}.{field.name}", message, suggestion, silenced)


def _as_labels(node: Node) -> Labels | None:
    """A set of labels, whether they are written as JSON or as plain text."""
    if isinstance(node, Choice):
        found = labels(json_text(text.decode()) for text in node.declared or node.texts)
        return found if isinstance(found, Labels) else None
    return node if isinstance(node, Labels) else None
