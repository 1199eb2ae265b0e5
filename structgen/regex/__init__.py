"""Regular expressions of a schema as small deterministic automata, exactly or refused.

    search("^a+$", "ecma") -> Dfa -> to_bytes(dfa, "json") -> ByteDfa

Lazy quantifiers, groups and names do not change which texts match, so they are read and forgotten.
Look-around is made part of the automaton; back-references are refused. Every construction stops
with PatternTooLarge at a limit of states and of work.
"""

from structgen.regex.algebra import bounded, complement, intersect, lengths, literals, union
from structgen.regex.dfa import (
    Dfa,
    all_accepting,
    dfa_size,
    distances,
    endless,
    finite_size,
    is_empty,
    is_everything,
    matches,
    shortest,
    strings,
)
from structgen.regex.limits import PatternError, PatternTooLarge
from structgen.regex.recent import remembered
from structgen.regex.search import full, search
from structgen.regex.syntax import Dialect
from structgen.regex.utf8 import ByteDfa, ByteEdge, Encoding, to_bytes

__all__ = [
    "ByteDfa",
    "ByteEdge",
    "Dfa",
    "Dialect",
    "Encoding",
    "PatternError",
    "PatternTooLarge",
    "all_accepting",
    "bounded",
    "complement",
    "dfa_size",
    "distances",
    "endless",
    "finite_size",
    "full",
    "intersect",
    "is_empty",
    "is_everything",
    "lengths",
    "literals",
    "matches",
    "remembered",
    "search",
    "shortest",
    "strings",
    "to_bytes",
    "union",
]
