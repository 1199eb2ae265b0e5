"""Taxonomies: sets of 2 to 100,000 labels with codes, descriptions and a hierarchy.

    Taxonomy([...]) -> rows -> faults, all at once -> a type, a choice, a tree

They stand above the engine and import neither torch nor transformers.
"""

from structgen.taxonomy.entries import Entry
from structgen.taxonomy.taxonomy import Taxonomy

__all__ = ["Entry", "Taxonomy"]
