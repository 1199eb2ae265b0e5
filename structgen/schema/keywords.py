"""Tables of what core schemas may say: harmless, or refused with a reason."""

from __future__ import annotations

HARMLESS = frozenset(
    {
        "type",
        "ref",
        "metadata",
        "serialization",
        "strict",
        "cls",
        "cls_repr",
        "config",
        "schema",
        "sub_type",
        "missing",
        "custom_init",
        "root_model",
        "post_init",
        "frozen",
        "frozen_fields",
        "revalidate_instances",
        "generic_origin",
        "model_name",
        "computed_fields",
        "from_attributes",
        "custom_error_type",
        "custom_error_message",
        "custom_error_context",
        "coerce_numbers_to_str",
        "copy_default",
        "default",
        "default_factory",
        "default_factory_takes_data",
        "on_error",
        "validate_default",
        "fail_fast",
        "function",
        "mode",
        "return_schema",
        "info_arg",
        "auto_collapse",
        "serialize_by_alias",
        "json_schema_input_schema",
        "slots",
        "cls_name",
    }
)
"""Keys that change nothing about which JSON texts are accepted, or that the readers look at."""

CONFIG_REFUSED = {
    "str_to_lower": "it changes the text after it was generated",
    "str_to_upper": "it changes the text after it was generated",
}
"""Settings of a model that cannot be enforced, with the reason; others are harmless or read."""

STRING_SETTINGS = (
    "str_min_length",
    "str_max_length",
    "str_strip_whitespace",
    "regex_engine",
    "val_json_bytes",
    "strict",
    *CONFIG_REFUSED,
)
"""Settings that reach into the parts of a model."""

NESTING = frozenset(
    {
        "list",
        "tuple",
        "set",
        "frozenset",
        "generator",
        "deque",
        "dict",
        "frozendict",
        "ordered-dict",
        "counter",
        "json",
        "named-tuple",
        "model-fields",
        "dataclass-args",
        "typed-dict",
        "arguments",
        "arguments-v3",
    }
)
"""Types that are one level of nesting."""

_ADVICE = {
    "use a list of two numbers": ("complex",),
    "use Decimal, or a str and a validator": ("fraction",),
    "name a type that JSON can write": (
        "callable",
        "is-instance",
        "is-subclass",
        "invalid",
        "ellipsis",
    ),
}


def advice(kind: str) -> str:
    """What an author can use instead of a kind of schema that is not supported."""
    for text, kinds in _ADVICE.items():
        if kind in kinds:
            return text
    return "see the table of supported types in docs/support.md"
