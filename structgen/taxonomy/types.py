"""A taxonomy in annotations: the labels as a Pydantic type, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, get_args, get_origin

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from structgen.errors import OptionError
from structgen.schema.label_checks import DistinctLabels, LabelCheck


class LabelSet(Protocol):
    """What is asked of a taxonomy here."""

    @property
    def name(self) -> str: ...
    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def label_check(self) -> LabelCheck: ...


def label_schema(labels: LabelSet, source: Any) -> CoreSchema:
    """The core schema of one label.

    Raises:
        OptionError: something other than `str` is annotated.
    """
    if source is not str:
        raise OptionError(
            f"a taxonomy annotates str: Annotated[str, {labels.name}], not {source!r:.100}; for "
            f"several labels write set[Annotated[str, {labels.name}]], or {labels.name}.Labels()"
        )
    text = core_schema.any_schema(serialization=core_schema.simple_ser_schema("str"))
    return core_schema.no_info_after_validator_function(labels.label_check, text)


class LabelList:
    """Annotates a list of labels of one taxonomy, none of which is there twice."""

    def __init__(
        self, labels: LabelSet, check: DistinctLabels, min_length: int, max_length: int | None
    ) -> None:
        self._labels = labels
        self._check = check
        self._min_length = min_length
        self._max_length = max_length

    def _key(self) -> tuple[object, ...]:
        return self._labels, self._check, self._min_length, self._max_length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelList) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        antichain = ", antichain=True" * self._check.antichain
        return f"{self._labels.name}.Labels({self._min_length}, {self._max_length}{antichain})"

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        if get_origin(source) is not list or get_args(source) == ():
            raise OptionError(f"{self!r} annotates list[str], not {source!r:.100}")
        items = core_schema.list_schema(
            handler.generate_schema(Annotated[str, self._labels]),
            min_length=self._min_length or None,
            max_length=self._max_length,
        )
        return core_schema.no_info_after_validator_function(self._check, items)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "uniqueItems": True}


def label_list(
    labels: LabelSet, check: DistinctLabels, min_length: int, max_length: int | None
) -> LabelList:
    """The annotation of a list of labels, whose bounds are looked at.

    Raises:
        OptionError: bounds that are no whole numbers, or contradict each other.
    """
    bounds: Sequence[tuple[str, object]] = (
        ("min_length", min_length),
        ("max_length", 0 if max_length is None else max_length),
    )
    for name, bound in bounds:
        if not _is_count(bound):
            raise OptionError(f"{name}={bound!r} must be a whole number from 0 up")
    most = len(labels.texts) if max_length is None else max_length
    if min_length > most:
        raise OptionError(
            f"min_length={min_length} is more than {most}, the most labels there can be"
        )
    return LabelList(labels, check, min_length, max_length)


def _is_count(bound: object) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0
