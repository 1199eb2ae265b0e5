"""A content hash of a schema and of how it is compiled."""

from __future__ import annotations

import hashlib

from structgen.options import Options
from structgen.schema.nodes import Schema

FORMAT = 1
"""Raised whenever the same schema would compile to something else."""


def fingerprint(schema: Schema, options: Options) -> str:
    """Hex sha256 over the nodes, the definitions and the options."""
    content = f"{FORMAT} {options!r} {schema.root!r} {sorted(schema.definitions.items())!r}"
    return hashlib.sha256(content.encode()).hexdigest()
