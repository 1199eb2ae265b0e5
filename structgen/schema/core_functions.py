"""Python functions in a core schema: Pydantic's own are known by name, all others run after."""

from __future__ import annotations

import functools
import types
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from structgen.schema import nodes
from structgen.schema.core_checks import validator
from structgen.schema.core_containers import with_length
from structgen.schema.core_reader import Core, Reader, ReadType, wrapped
from structgen.schema.core_strings import base64_node, base64_text_node
from structgen.schema.emails import EMAIL_ADDRESS
from structgen.schema.formats import IPV4, IPV6, REGEX, whole
from structgen.schema.label_checks import DistinctLabels, LabelCheck
from structgen.schema.networks import IPV4_NETWORK, IPV6_NETWORK
from structgen.schema.nodes import Integer, Node, String

_Lengths: TypeAlias = tuple[int, int | None]

_V4_INTERFACE = f"{IPV4}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?"
_V6_INTERFACE = f"{IPV6}(?:/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?"
_SIZE = r"[0-9]{1,12}(?:\.[0-9]{1,6})? ?(?:[kKMGTPE]i?)?B"


def _strings(name: str, *sources: str) -> String:
    return String(patterns=(whole("|".join(sources)),), name=name)


_ADDRESSES: Mapping[str, Node] = {
    "IPv4Address": _strings("ipv4", IPV4),
    "IPv6Address": _strings("ipv6", IPV6),
    "IPv4Network": _strings("ipv4 network", *IPV4_NETWORK),
    "IPv6Network": _strings("ipv6 network", *IPV6_NETWORK),
    "IPv4Interface": _strings("ipv4 interface", _V4_INTERFACE),
    "IPv6Interface": _strings("ipv6 interface", _V6_INTERFACE),
    "IPvAnyAddress._validate": _strings("ip address", IPV4, IPV6),
    "IPvAnyNetwork._validate": _strings("ip network", *IPV4_NETWORK, *IPV6_NETWORK),
    "IPvAnyInterface._validate": _strings("ip interface", _V4_INTERFACE, _V6_INTERFACE),
}
_REGEX = _strings("regex", REGEX)

_KNOWN: Mapping[str, Node] = {
    **_ADDRESSES,
    "ip_v4_address_validator": _ADDRESSES["IPv4Address"],
    "ip_v6_address_validator": _ADDRESSES["IPv6Address"],
    "ip_v4_network_validator": _ADDRESSES["IPv4Network"],
    "ip_v6_network_validator": _ADDRESSES["IPv6Network"],
    "ip_v4_interface_validator": _ADDRESSES["IPv4Interface"],
    "ip_v6_interface_validator": _ADDRESSES["IPv6Interface"],
    "pattern_either_validator": _REGEX,
    "pattern_str_validator": _REGEX,
    "ByteSize._validate": nodes.union((Integer(0), _strings("size", _SIZE))),
}
"""Functions of Pydantic and the standard library that stand for a type."""

_HARMLESS = frozenset(
    {
        "SecretStr",
        "SecretBytes",
        "Secret.__get_pydantic_core_schema__.<locals>.<lambda>",
        "_BaseUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
        "_BaseMultiHostUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
        "GenerateSchema._path_schema.<locals>.path_validator",
        "sequence_validator",
        "deque_validator",
        "defaultdict_validator",
    }
)
"""Functions that only build the Python value and accept whatever the inner schema does."""

_PATHS = {
    "PathType.validate_file": "the file exists",
    "PathType.validate_directory": "the directory exists",
    "PathType.validate_new": "nothing is there yet, but its parent exists",
    "PathType.validate_socket": "the socket exists",
}
"""What Pydantic asks the file system."""

_ALPHABETS = {"Base64Encoder": "+/", "Base64UrlEncoder": "_-"}
"""The last two digits of the encodings that Pydantic brings."""

OWNERS = ("pydantic.", "ipaddress")


def _after(reader: Reader, core: Core, path: str) -> Node:
    function = _function(core)
    name = _name(function)
    node = wrapped(reader, core, path)
    if isinstance(function, LabelCheck | DistinctLabels):
        return reader.possible(function.node(node, reader.resolved), path)
    if name in _KNOWN:
        return reader.possible(_within(_KNOWN[name], node), path)
    if name in _HARMLESS:
        return node
    if name in ("EmailStr._validate", "NameEmail._validate"):
        reader.after_check(path, "the email-validator package has no objection")
        return reader.possible(_within(EMAIL_ADDRESS, node), path)
    if name == "EncodedBytes.decode" and node != String():
        problem = "bytes in Base64 inside of another encoding (val_json_bytes)"
        return reader.refuse(path, problem, "use bytes, which are then in one encoding")
    exact = _enforced(function, name, node)
    if exact is not None:
        return reader.possible(exact, path)
    reader.after_check(path, _PATHS.get(name) or validator(core))
    return node


def _enforced(function: Any, name: str, node: Node) -> Node | None:
    """A check that can be made part of the inner node, None for all others."""
    if name in ("EncodedBytes.decode", "EncodedStr.decode_str"):
        made = base64_node if name == "EncodedBytes.decode" else base64_text_node
        alphabet = _ALPHABETS.get(getattr(function.__self__.encoder, "__name__", ""))
        return _within(made(alphabet), node) if alphabet else None
    if name in ("min_length_validator", "max_length_validator"):
        bounds: dict[str, int] = function.keywords
        return with_length(node, bounds.get("min_length", 0), bounds.get("max_length"))
    return None


def _within(node: Node, around: Node) -> Node:
    """The strings of `node` that also keep to the settings of a model, which `around` shows."""
    text = next((part for part in _options(around) if isinstance(part, String)), String())
    options = [
        _bounded(part, text) if isinstance(part, String) else part for part in _options(node)
    ]
    return nodes.union(options)


def _options(node: Node) -> tuple[Node, ...]:
    return node.options if isinstance(node, nodes.Union) else (node,)


def _bounded(node: String, text: String) -> Node:
    bounded = with_length(replace(node, name=""), text.min_length, text.max_length)
    if not isinstance(bounded, String):
        return bounded or node
    return replace(bounded, patterns=(*node.patterns, *text.patterns), name=node.name)


def _plain(reader: Reader, core: Core, path: str) -> Node:
    name = _name(_function(core))
    if name in _KNOWN:
        return _KNOWN[name]
    if name == "validate_str_is_valid_iana_tz":
        zones = sorted(zoneinfo.available_timezones())
        return reader.possible(nodes.labels(map(nodes.json_text, zones)), path)
    return reader.refuse(
        path,
        "a function decides alone what is valid (PlainValidator)",
        "use AfterValidator or BeforeValidator, which name the type they want",
    )


def _function(core: Core) -> Any:
    function = core["function"]
    return function["function"] if isinstance(function, dict) else function


def _name(function: Any) -> str:
    """The qualified name of a function of Pydantic or the standard library, else nothing."""
    if isinstance(function, functools.partial):
        return _name(function.func)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    owner: Callable[..., Any] = function
    if isinstance(function, types.MethodType):
        owner = function.__func__
    if not str(getattr(owner, "__module__", "")).startswith(OWNERS):
        return ""
    return str(getattr(owner, "__qualname__", ""))


FUNCTIONS: Mapping[str, ReadType] = {
    "function-after": _after,
    "function-before": _after,
    "function-wrap": _after,
    "function-plain": _plain,
}
