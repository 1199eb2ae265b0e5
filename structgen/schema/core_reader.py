"""The walk over a Pydantic core schema: paths, settings, definitions, and what is wrong.

Every type and every key is looked up in a table: implemented, harmless, or refused with its
path. Unknown means refused. The tables live in the other `core_*` files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from structgen.errors import Fault, LimitError
from structgen.schema.core_checks import AfterCheck
from structgen.schema.keywords import HARMLESS, NESTING, STRING_SETTINGS, advice
from structgen.schema.nodes import Never, Node, Ref

Core: TypeAlias = Mapping[str, Any]

MOST_LEVELS = 64
"""Nesting of the schema as it is written; a recursive type may go deeper while generating."""

_Use: TypeAlias = tuple[str, frozenset[str], tuple[object, ...]]
"""A definition's reference, the tags it must write, the settings that reach into it."""


@dataclass(slots=True)
class Reader:
    """State of one conversion: where it is, what is wrong, what is defined."""

    readers: Mapping[str, ReadType]
    """How each type of core schema is read."""
    faults: list[Fault] = field(default_factory=list[Fault])
    impossible: list[Fault] = field(default_factory=list[Fault])
    definitions: dict[str, Node] = field(default_factory=dict[str, Node])
    checks: list[AfterCheck] = field(default_factory=lambda: list[AfterCheck]())
    config: list[Core] = field(default_factory=lambda: list[Core]([{}]))
    owners: list[type] = field(default_factory=list[type])
    cores: dict[str, Core] = field(default_factory=dict[str, Core])
    """Definitions by reference, read or not."""
    names: dict[_Use, str] = field(default_factory=lambda: dict[_Use, str]())
    """Names of the definitions read so far, by reference and by the tags they must write."""
    forced: frozenset[str] = frozenset()
    """Names of discriminators, which a tagged union's objects must always write."""
    depth: int = 0

    def refuse(self, path: str, problem: str, advice: str = "") -> Never:
        """Note a part that cannot be enforced."""
        self.faults.append(Fault(path, problem, advice))
        return Never(problem, path)

    def setting(self, name: str) -> Any:
        """A setting of the innermost model around, None where it is not set."""
        return self.config[-1].get(name)

    def possible(self, node: Node, path: str) -> Node:
        """`node`, with a fault noted if its own bounds contradict each other."""
        if isinstance(node, Never):
            self.impossible.append(Fault(path, node.reason))
        return node

    def after_check(self, path: str, what: str) -> None:
        """Note a check that only runs on the finished value."""
        self.checks.append(AfterCheck(path, what))

    def check_keys(self, core: Core, path: str, *known: str) -> None:
        """Refuse keys that are neither implemented by the caller nor harmless."""
        for key, value in core.items():
            if key in HARMLESS or key in known or value is None or value is False:
                continue
            self.refuse(path, f"{key}={value!r} of type {core['type']!r} cannot be enforced")

    def node(self, core: Core, path: str) -> Node:
        """The node of a core schema; a part with a reference becomes a definition."""
        name = core.get("ref")
        if name is None:
            return self._read(core, path)
        self.cores[name] = core
        return self.named(name, path)

    def named(self, ref: str, path: str) -> Node:
        """A reference to a definition, which is read at its first use.

        As an option of a tagged union it is another definition: there the tag must be written. So
        is an alias of a type in a model with other settings.
        """
        core = self.cores[ref]
        key = (ref, self.forced, self._settings(core))
        name = self.names.get(key)
        if name is None:
            # Counted, because the reference holds an address that differs from run to run.
            same = sum(known.split("#")[0] == _title(core) for known in self.names.values())
            name = self.names[key] = _title(core) + (f"#{same + 1}" if same else "")
            self.definitions[name] = Never("under construction")
            self.definitions[name] = self._read(core, path)
        return Ref(name)

    def resolved(self, node: Node) -> Node:
        """A node that is no reference."""
        while isinstance(node, Ref):
            node = self.definitions[node.name]
        return node

    def target(self, core: Core) -> Core:
        """A core schema that is no reference."""
        while True:
            if core["type"] == "definitions":
                self.learn(core)
                core = core["schema"]
            elif core["type"] == "definition-ref":
                core = self.cores[core["schema_ref"]]
            else:
                return core

    def learn(self, core: Core) -> None:
        """Remember the definitions that a core schema brings along."""
        for definition in core["definitions"]:
            self.cores[definition["ref"]] = definition

    def _read(self, core: Core, path: str) -> Node:
        read = self.readers.get(core["type"])
        if read is None:
            problem = f"type {type_name(core)} is not supported"
            return self.refuse(path, problem, advice(core["type"]))
        level = core["type"] in NESTING
        self.depth += level
        if self.depth > MOST_LEVELS:
            raise LimitError(
                f"the schema is nested more than {MOST_LEVELS} levels deep, at {path[:60]}...; "
                "flatten it, or write the nesting as a recursive type"
            )
        node = read(self, core, path)
        self.depth -= level
        return node

    def _settings(self, core: Core) -> tuple[object, ...]:
        """The settings around that change what `core` means; a model has its own."""
        while core["type"].startswith("function-") and "schema" in core:
            core = core["schema"]
        if core["type"] in ("model", "dataclass", "typed-dict"):
            return ()
        return tuple(self.setting(name) for name in STRING_SETTINGS)


ReadType: TypeAlias = Callable[[Reader, Core, str], Node]


def type_name(core: Core) -> str:
    """What an error calls a core schema: its type, and its class where there is one."""
    owner = core.get("cls")
    return f"{core['type']!r}" + (f" ({owner.__name__})" if isinstance(owner, type) else "")


def wrapped(reader: Reader, core: Core, path: str) -> Node:
    """Kinds that only add something around an inner schema."""
    reader.check_keys(core, path)
    return reader.node(core["schema"], path)


def inner(core: Core, key: str) -> Core:
    """A part of a core schema that may be left out: anything."""
    return core.get(key) or {"type": "any"}


def strict(reader: Reader, core: Core) -> bool:
    """Whether lax readings are switched off for a core schema."""
    own = core.get("strict")
    return bool(reader.setting("strict") if own is None else own)


def plain_text(text: Iterable[str] | str | None) -> str:
    """Text for people and prompts, in which a lone surrogate would spoil the whole prompt."""
    return "".join(text or "").encode(errors="replace").decode()


def _title(core: Core) -> str:
    """The class's name, or the kind of schema where there is no class."""
    while "cls" not in core and "schema" in core:
        core = core["schema"]
    owner = core.get("cls")
    return owner.__name__ if owner is not None else str(core["type"])
