"""JSON Schema -> nodes: exactly the valid instances, or a fault with its path.

`read.py` is the entry, `reader.py` reads one subschema, `documents.py` follows references.
`scalars.py`, `lists.py` and `members.py` read keywords about one type, `values.py` reads `enum`,
`applicators.py` and `unevaluated.py` what combines schemas; `keywords.py` is their table.
`intersect.py`, `complement.py`, `disjoint.py` and `admits.py` are the algebra of nodes.
"""

from structgen.schema.jsonschema.admits import admits
from structgen.schema.jsonschema.read import JsonSchemaNodes, read_json_schema

__all__ = ["JsonSchemaNodes", "admits", "read_json_schema"]
