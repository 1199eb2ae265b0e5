"""A set of labels with codes, descriptions and a hierarchy."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from structgen.errors import Fault, OptionError, UnsupportedSchemaError
from structgen.later import later
from structgen.schema.label_checks import DistinctLabels, LabelCheck
from structgen.taxonomy.entries import Entry
from structgen.taxonomy.faults import code_faults, label_faults, text_faults, unknown_faults
from structgen.taxonomy.files import read_file
from structgen.taxonomy.rows import Rows, read_rows, with_levels
from structgen.taxonomy.tree import Tree
from structgen.taxonomy.types import label_list, label_schema
from structgen.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    import structgen.taxonomy.verification as verification
else:
    verification = later("structgen.taxonomy.verification")

Written: TypeAlias = Literal["label", "code"]

FORMAT = b"taxonomy 1"
SEPARATOR = " > "


class Taxonomy:
    """An immutable set of labels that is a type, a set of choices and a tree.

    Example: `Taxonomy(["Animals > Cats", "Animals > Dogs"]).roots` -> `("Animals",)`

    In a Pydantic model `Annotated[str, topics]` or `topics.Label` is one of the labels. Iterating
    gives the texts that are written, so `OneOf(topics)` writes one of them without JSON.

    Args:
        source: a list of labels or of paths (tuples), a nested dict, an Enum, a Literal.
        name: what errors and prompts call it.
        separator: stands between the levels of a path; None for labels without a hierarchy.
        inner: levels above others are labels too, as in a nested dict they are not otherwise.
        written: what the model writes of a label, and so what a value is.
        codes, descriptions: by label.
        allow_similar: labels may differ in nothing but case or Unicode form.

    Raises:
        UnsupportedSchemaError: with everything that is wrong with the labels.
        OptionError: an option is wrong, or the source is nothing that has labels.
    """

    def __init__(
        self,
        source: Iterable[str | Sequence[str]] | Mapping[str, Any] | Any,
        *,
        name: str = "labels",
        separator: str | None = SEPARATOR,
        inner: bool = False,
        written: Written = "label",
        codes: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        allow_similar: bool = False,
    ) -> None:
        _check_options(name, separator, written)
        rows = read_rows(source, separator, inner=inner)
        rows, faults = _with_texts(rows, codes, descriptions)
        self._fill(rows, faults, name, separator, written, allow_similar=allow_similar)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        separator: str | None = SEPARATOR,
        label: str | None = None,
        code: str | None = None,
        description: str | None = None,
        inner: bool = False,
        written: Written = "label",
        allow_similar: bool = False,
    ) -> Taxonomy:
        """The taxonomy of a text file with one label a line, or of a .csv or .tsv table.

        Example: `Taxonomy.from_file("icd.csv.gz", code="Code", label="Title", written="code")`

        Args:
            path: UTF-8, compressed where it ends with .gz.
            name: the file's own, if none is given.
            label, code, description: columns of a table; if not given, such as have usual names.
        """
        file = Path(path)
        name = file.name.partition(".")[0] or "labels" if name is None else name
        _check_options(name, separator, written)
        rows = read_file(file, label=label, code=code, description=description)
        made = cls.__new__(cls)
        rows = with_levels(rows, separator) if inner else rows
        made._fill(rows, [], name, separator, written, allow_similar=allow_similar)
        return made

    def _fill(
        self,
        rows: Rows,
        faults: list[Fault],
        name: str,
        separator: str | None,
        written: Written,
        *,
        allow_similar: bool,
    ) -> None:
        codes = rows.codes if rows.codes and any(rows.codes) else None
        texts = rows.descriptions if rows.descriptions and any(rows.descriptions) else None
        faults = [*rows.faults, *faults]
        if rows.labels or not faults:
            faults += label_faults(rows.labels, separator, rows.place, allow_similar=allow_similar)
        faults += code_faults(codes, rows.labels, rows.place) if codes else []
        faults += text_faults(texts, rows.place) if texts else []
        if written == "code":
            faults += _without_code(rows, codes)
        if faults:
            raise UnsupportedSchemaError(faults, schema=f"the taxonomy {name!r}")
        self._set(name, separator, written, tuple(rows.labels), codes, texts)

    def _set(
        self,
        name: str,
        separator: str | None,
        written: Written,
        labels: tuple[str, ...],
        codes: Sequence[str] | None,
        descriptions: Sequence[str] | None,
    ) -> None:
        # The dict itself, since assigning to an attribute is what others may not do.
        self.__dict__.update(
            name=name,
            separator=separator,
            written=written,
            labels=labels,
            _codes=None if codes is None else tuple(codes),
            _descriptions=None if descriptions is None else tuple(descriptions),
        )

    name: str
    """What errors and prompts call it; no part of its identity."""
    separator: str | None
    """Stands between the levels of a label; None where there is no hierarchy."""
    written: Written
    """Whether `texts` are the labels or their codes."""
    labels: tuple[str, ...]
    """In declared order."""
    _codes: tuple[str, ...] | None
    _descriptions: tuple[str, ...] | None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Taxonomy is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is written of each label, in declared order."""
        return self.labels if self.written == "label" or self._codes is None else self._codes

    @cached_property
    def fingerprint(self) -> str:
        """Hex sha256 of labels, codes, descriptions, separator and what is written."""
        content = hashlib.sha256(FORMAT)
        for texts in (
            (self.written, "" if self.separator is None else f"={self.separator}"),
            self.labels,
            self._codes or (),
            self._descriptions or (),
        ):
            data = "\0".join(texts).encode()
            content.update(b"%d %d " % (len(texts), len(data)) + data)
        return content.hexdigest()

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __contains__(self, text: object) -> bool:
        return text in (self._rows if self.written == "label" else self._rows_of_codes)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Taxonomy) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<Taxonomy {self.name}: {len(self)} labels, {self.fingerprint[:8]}>"

    @property
    def label_check(self) -> LabelCheck:
        """What validates one label in Python."""
        return self._label_check

    @cached_property
    def _label_check(self) -> LabelCheck:
        return LabelCheck(self.texts, self.name)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(self.labels, range(len(self.labels)), strict=True))

    @cached_property
    def _rows_of_codes(self) -> dict[str, int]:
        return {code: row for row, code in enumerate(self._codes or ()) if code}

    @cached_property
    def _tree(self) -> Tree:
        return Tree.of(self.labels, self.separator)

    def _row(self, name: str) -> int:
        row = self._rows.get(name)
        row = self._rows_of_codes.get(name) if row is None else row
        if row is None:
            raise KeyError(f"{name!r} is neither a label nor a code of {self.name}")
        return row

    def _node(self, name: str) -> str:
        """The path that a label, a code, or a level above labels stands for."""
        return name if name in self._tree.parents else self.labels[self._row(name)]

    def __getitem__(self, name: str) -> Entry:
        """What is known about a label, given by itself or by its code."""
        row = self._row(name)
        label = self.labels[row]
        return Entry(
            label,
            (self._codes[row] or None) if self._codes else None,
            self._descriptions[row] if self._descriptions else "",
            self.path(label),
            self._tree.parents[label],
        )

    def entries(self) -> Iterator[Entry]:
        """Everything that is known, label by label."""
        return map(self.__getitem__, self.labels)

    def text_of(self, name: str) -> str:
        """What is written of a label or code."""
        return self.texts[self._row(name)]

    def path(self, name: str) -> tuple[str, ...]:
        """A label level by level: `"A > B"` -> `("A", "B")`."""
        node = self._node(name)
        return tuple(node.split(self.separator)) if self.separator else (node,)

    def depth(self, name: str) -> int:
        """Levels of a label; 1 for a root."""
        return len(self.path(name))

    @property
    def roots(self) -> tuple[str, ...]:
        """The highest levels, whether they are labels or only stand above some."""
        return self._tree.roots

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels below which there are none."""
        children = self._tree.children
        return tuple(label for label in self.labels if label not in children)

    def parent(self, name: str) -> str | None:
        """The level above, which need not be a label itself; None for a root."""
        return self._tree.parents[self._node(name)]

    def children(self, name: str) -> tuple[str, ...]:
        """The paths right below a level, in declared order."""
        return self._tree.children.get(self._node(name), ())

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The levels above, the nearest first."""
        return tuple(self._tree.above(self._node(name)))

    def descendants(self, name: str) -> tuple[str, ...]:
        """The labels below a level, each before those below it."""
        return tuple(path for path in self._tree.below(self._node(name)) if path in self._rows)

    def subset(self, names: Iterable[str]) -> Taxonomy:
        """The taxonomy of some of the labels, in the given order, such as a shortlist.

        Raises:
            OptionError: there are none, one comes twice, or one is neither a label nor a code.
        """
        names = list(names)
        unknown = [n for n in names if n not in self._rows and n not in self._rows_of_codes]
        if unknown:
            shown = ", ".join(map(repr, unknown[:5]))
            raise OptionError(f"{len(unknown)} names are no labels of {self.name}: {shown}")
        rows = list(map(self._row, names))
        if not rows or len(set(rows)) < len(rows):
            raise OptionError("a subset has at least one label, and none twice")

        def some(texts: Sequence[str] | None) -> tuple[str, ...] | None:
            return None if texts is None else tuple(texts[row] for row in rows)

        made = Taxonomy.__new__(Taxonomy)
        labels = some(self.labels) or ()
        codes, descriptions = some(self._codes), some(self._descriptions)
        made._set(self.name, self.separator, self.written, labels, codes, descriptions)
        return made

    @property
    def Label(self) -> Any:  # noqa: N802  # it is a type
        """One of the labels as a type; for type checkers write `Annotated[str, taxonomy]`."""
        return Annotated[str, self]

    def Labels(  # noqa: N802  # it makes a type
        self, *, min_length: int = 0, max_length: int | None = None, antichain: bool = False
    ) -> Any:
        """A list of labels without repeats as a type.

        Args:
            antichain: a label and one that stands below it are not both chosen.

        Raises:
            OptionError: bounds that nothing meets, or `antichain` where no paths are written.
        """
        if antichain and (not self.separator or self.written == "code"):
            raise OptionError("antichain=True needs labels that are written as paths")
        check = DistinctLabels(antichain, self.separator or "" if antichain else "")
        return Annotated[list[str], label_list(self, check, min_length, max_length)]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return label_schema(self, str if source is self else source)

    def __get_pydantic_json_schema__(
        self,
        schema: CoreSchema,
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        return {"enum": list(self.texts), "type": "string"}

    def check(self, vocabulary: Vocabulary) -> None:
        """See that the tokens of a vocabulary can write every label.

        Raises:
            UnsupportedSchemaError: with the labels that they cannot.
        """
        faults = verification.unwritable_labels(self.texts, vocabulary)
        if faults:
            raise UnsupportedSchemaError(faults, schema=f"the taxonomy {self.name!r}")

    def verify(self, vocabulary: Vocabulary) -> verification.Verification:
        """Enumerate what the compiled automata accept, and compare it with the labels.

        Example: `print(topics.verify(vocabulary))`

        It takes seconds for 10,000 labels. What is wrong is told by the result, not raised.
        """
        return verification.verify(self.texts, Annotated[str, self], vocabulary, self.name)


def _check_options(name: object, separator: object, written: object) -> None:
    if not isinstance(name, str) or not name:
        raise OptionError(f"name={name!r} must be a text that is not empty")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise OptionError(f"separator={separator!r} must be a text that is not empty, or None")
    if written not in ("label", "code"):
        raise OptionError(f"written={written!r} must be 'label' or 'code'")


def _with_texts(
    rows: Rows, codes: Mapping[str, str] | None, descriptions: Mapping[str, str] | None
) -> tuple[Rows, list[Fault]]:
    """The rows with what the options say about labels."""
    faults: list[Fault] = []
    for kind, given in (("codes", codes), ("descriptions", descriptions)):
        if given is None:
            continue
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise OptionError(f"{kind} is a dict by label, got {type(given).__name__}")
        odd = [text for text in given.values() if not isinstance(text, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if odd:
            raise OptionError(f"{kind} holds {odd[0]!r:.100}, which is no text")
        faults += unknown_faults(kind, given, rows.labels)
        old = (rows.codes if kind == "codes" else rows.descriptions) or [""] * len(rows.labels)
        new = [given.get(label, text) for label, text in zip(rows.labels, old, strict=True)]
        rows = _replaced(rows, kind, new)
    return rows, faults


def _replaced(rows: Rows, kind: str, texts: list[str]) -> Rows:
    codes = texts if kind == "codes" else rows.codes
    descriptions = texts if kind == "descriptions" else rows.descriptions
    return Rows(rows.labels, codes, descriptions, rows.place, rows.faults)


def _without_code(rows: Rows, codes: list[str] | None) -> list[Fault]:
    missing = [label for label, code in zip(rows.labels, codes or [], strict=False) if not code]
    if codes and not missing:
        return []
    shown = ", ".join(f"{label!r:.80}" for label in (missing if codes else rows.labels)[:5])
    count = len(missing) if codes else len(rows.labels)
    problem = f"written='code', but {count} labels have no code: {shown}"
    return [Fault("$", problem, "give codes=, or a table with a column of codes")]
