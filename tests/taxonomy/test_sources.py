"""What a taxonomy can be made of, and the faults that are reported together."""

from __future__ import annotations

import enum
import gzip
import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.errors import OptionError, UnsupportedSchemaError
from structgen.taxonomy import Taxonomy

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
FOLDER = DATA / "taxonomies"
FILES = sorted(p for p in FOLDER.glob("*/*") if p.name.endswith((".txt", ".txt.gz")))

NESTED = {"Animals": {"Cats": {}, "Dogs": None, "Birds": ["Owls", "Gulls"]}, "Cars": "With engines"}


def problems(*args, **kwargs) -> list[str]:
    with pytest.raises(UnsupportedSchemaError) as caught:
        Taxonomy(*args, **kwargs)
    return [str(fault) for fault in caught.value.faults]


def test_a_list_keeps_its_order():
    assert list(Taxonomy(["b", "a", "c"])) == ["b", "a", "c"]


def test_paths_are_joined_by_the_separator():
    assert list(Taxonomy([("A", "B"), "C"], separator="/")) == ["A/B", "C"]


def test_of_a_nested_dict_the_leaves_are_labels_and_texts_describe_them():
    found = Taxonomy(NESTED)
    assert found.labels == (
        "Animals > Cats",
        "Animals > Dogs",
        "Animals > Birds > Owls",
        "Animals > Birds > Gulls",
        "Cars",
    )
    assert found["Cars"].description == "With engines"


def test_every_level_can_be_a_label():
    found = Taxonomy(NESTED, inner=True)
    assert found.labels[0] == "Animals"
    assert len(found) == 7
    assert Taxonomy(["A > B > C", "A > D", "E"], inner=True).labels == (
        "A", "A > B", "A > B > C", "A > D", "E",
    )  # fmt: skip


class Team(enum.Enum):
    BILLING = "billing"
    SALES = "sales"


class Word(enum.StrEnum):
    RED = "red"


def test_enums_and_literals_are_sets_of_labels():
    assert list(Taxonomy(Team)) == ["billing", "sales"]
    assert [type(label) for label in Taxonomy(Word)] == [str]
    assert list(Taxonomy(Literal["a", "b"])) == ["a", "b"]
    assert list(Taxonomy(Annotated[Literal["a", "b"], "note"])) == ["a", "b"]


def test_a_taxonomy_can_be_made_of_another_ones_entries():
    first = Taxonomy(NESTED)
    again = Taxonomy([entry.path for entry in first.entries()])
    assert again.labels == first.labels


@pytest.mark.parametrize("source", ["a > b", b"ab", 3, None])
def test_what_is_no_set_of_labels_is_refused(source):
    with pytest.raises(OptionError, match="a taxonomy is made of"):
        Taxonomy(source)


def test_all_faults_are_reported_together():
    found = problems(["a", "a", "", " b", "A", "c\td", "x\ud800", "e >  > f", 3, ("g", "h > i")])
    told = "\n".join(found)
    for part in (
        "[8]: 3 is no text and no path",
        "[9]: the level 'h > i' holds the separator",
        "[2]: the label is blank",
        "[3]: ' b' has white space at its ends",
        "[7]: a level of 'e >  > f' is blank",
        "[6]: 'x\\ud800' holds a lone surrogate",
        "[5]: 'c\\td' holds a control character",
        "[1]: 'a' is also at [0]",
        "[4]: 'A' differs from 'a' at [0] only in case or Unicode form",
    ):
        assert part in told
    assert len(found) == 9


def test_only_some_of_many_faults_are_shown_and_their_number():
    found = problems(["a"] * 1000)
    assert len(found) == 21
    assert found[-1] == "$: in all 999 repeated labels, of which 20 are shown"


@pytest.mark.parametrize("one", ["straße", "Ångström", "ﬁx", "\uff41"])
def test_labels_that_look_alike_need_an_option(one):
    other = {"straße": "STRASSE", "Ångström": "A\u030angström", "ﬁx": "fix", "\uff41": "a"}[one]
    assert "only in case or Unicode form" in problems([one, other])[0]
    assert len(Taxonomy([one, other], allow_similar=True)) == 2


def test_an_empty_source_is_a_fault():
    assert problems([]) == ["$: the taxonomy has no labels"]
    assert problems({}) == ["$: the taxonomy has no labels"]


def test_without_a_separator_there_are_no_paths():
    assert Taxonomy(["A > B"], separator=None).roots == ("A > B",)
    assert "no way to write it" in problems([("A", "B")], separator=None)[0]
    assert "stands below another" in problems({"A": {"B": None}}, separator=None)[0]


def test_a_dict_that_holds_itself_ends():
    circle: dict[str, object] = {}
    circle["a"] = circle
    assert any("more than 64 levels" in problem for problem in problems(circle))


def test_codes_and_descriptions_belong_to_labels():
    found = Taxonomy(["Cats", "Dogs"], codes={"Cats": "A1"}, descriptions={"Dogs": "bark"})
    assert found["A1"].label == "Cats"
    assert (found["Dogs"].code, found["Dogs"].description) == (None, "bark")
    told = problems(
        ["a", "b", "c"], codes={"a": "1", "b": "1", "c": "a", "d": "2"}, descriptions={"x": ""}
    )
    assert told == [
        "$: codes names 'd', which is no label",
        "$: descriptions names 'x', which is no label",
        "[1]: the code '1' is also at [0]",
        "[2]: the code 'a' is the label of another row",
    ]


def test_codes_can_be_what_is_written():
    found = Taxonomy({"A": ["B", "C"]}, codes={"A > B": "1", "A > C": "2"}, written="code")
    assert list(found) == ["1", "2"]
    assert "1" in found
    assert "A > B" not in found
    assert found.parent("2") == "A"
    assert found.text_of("A > B") == "1"
    assert "1 labels have no code: 'C'" in problems(
        ["B", "C"], codes={"B": "1"}, written="code"
    )[0]  # fmt: skip
    assert "have no code" in problems(["B", "C"], written="code")[0]


@pytest.mark.parametrize(
    "options", [{"name": ""}, {"separator": ""}, {"written": "id"}, {"codes": {"a": 1}}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(OptionError):
        Taxonomy(["a"], **options)


def test_a_text_file_has_one_label_a_line(tmp_path):
    path = tmp_path / "pets.txt"
    path.write_bytes("\ufeffA > Ä\r\nB\n".encode())
    found = Taxonomy.from_file(path)
    assert (found.name, found.labels) == ("pets", ("A > Ä", "B"))
    packed = tmp_path / "pets.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert Taxonomy.from_file(packed) == found


def test_blank_lines_are_faults_with_their_number(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\n\nb\n")
    with pytest.raises(UnsupportedSchemaError, match="line 2: the label is blank"):
        Taxonomy.from_file(path)
    path.write_text("")
    with pytest.raises(UnsupportedSchemaError, match="no labels"):
        Taxonomy.from_file(path)


def test_a_table_has_columns_by_name(tmp_path):
    path = tmp_path / "icd.csv"
    path.write_text('Code,Title,Notes\nA00,"Cholera, any",x\nA01,Typhoid,\n', encoding="utf-8-sig")
    found = Taxonomy.from_file(path, code="Code", label="Title", description="Notes")
    assert found["A00"].label == "Cholera, any"
    assert found["A00"].description == "x"
    assert Taxonomy.from_file(path)["A01"].label == "Typhoid"
    with pytest.raises(OptionError, match="no column 'Name', only 'Code', 'Title'"):
        Taxonomy.from_file(path, label="Name")
    tabs = tmp_path / "icd.tsv"
    tabs.write_text("code\tlabel\nA\tB\tC\nD\tE\n")
    with pytest.raises(UnsupportedSchemaError, match=r"line 2: 3 cells, where .* 2 columns"):
        Taxonomy.from_file(tabs)


def test_files_that_cannot_be_read_say_why(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff")
    with pytest.raises(OptionError, match="not UTF-8"):
        Taxonomy.from_file(path)
    with pytest.raises(OptionError, match="no table"):
        Taxonomy.from_file(path, label="a")
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(b"no")
    with pytest.raises(OptionError, match="gzip"):
        Taxonomy.from_file(packed)
    with pytest.raises(FileNotFoundError):
        Taxonomy.from_file(tmp_path / "none.txt")


@pytest.mark.skipif(not FILES, reason="no taxonomies in the folder that STRUCTGEN_DATA names")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_real_taxonomies_need_no_option(path):
    found = Taxonomy.from_file(path)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        assert list(found) == file.read().splitlines()


@given(st.lists(st.text(alphabet="aAé\u0301 >\n\ud800", max_size=4), max_size=6))
def test_what_is_accepted_is_clean_and_what_is_refused_says_where(labels):
    import unicodedata

    def folded(text: str) -> str:
        return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())

    levels = [level for label in labels for level in label.split(" > ")]
    clean = (
        labels
        and len(set(map(folded, labels))) == len(labels)
        and all(level and level == level.strip() for level in levels)
        and not any("\n" in label or "\ud800" in label for label in labels)
    )
    if clean:
        assert list(Taxonomy(labels)) == labels
        return
    with pytest.raises(UnsupportedSchemaError) as caught:
        Taxonomy(labels)
    assert caught.value.faults
    str(caught.value).encode()


@pytest.mark.parametrize("labels", [["/a/b"], ["d/"], ["x", "/y/z"]])
def test_levels_at_the_ends_are_not_blank(labels):
    with pytest.raises(UnsupportedSchemaError, match="a level of"):
        Taxonomy(labels, separator="/")
