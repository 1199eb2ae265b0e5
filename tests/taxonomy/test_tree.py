"""A taxonomy as an immutable collection and as a tree."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.errors import OptionError
from structgen.taxonomy import Entry, Taxonomy

TOPICS = Taxonomy(
    ["Animals", "Animals > Cats", "Animals > Dogs > Poodles", "Cars"],
    codes={"Cars": "C"},
    descriptions={"Cars": "with engines"},
)


def test_it_is_a_collection_of_its_labels():
    assert len(TOPICS) == 4
    assert "Animals" in TOPICS
    assert "Animals > Dogs" not in TOPICS
    assert 3 not in TOPICS
    assert repr(TOPICS).startswith("<Taxonomy labels: 4 labels, ")


def test_an_entry_tells_all_that_is_known():
    assert TOPICS["C"] == Entry("Cars", "C", "with engines", ("Cars",), None)
    assert TOPICS["Animals > Dogs > Poodles"] == Entry(
        "Animals > Dogs > Poodles", None, "", ("Animals", "Dogs", "Poodles"), "Animals > Dogs"
    )
    with pytest.raises(KeyError, match="neither a label nor a code"):
        TOPICS["Animals > Dogs"]


def test_levels_above_labels_are_part_of_the_tree():
    assert TOPICS.roots == ("Animals", "Cars")
    assert TOPICS.children("Animals") == ("Animals > Cats", "Animals > Dogs")
    assert TOPICS.children("C") == ()
    assert TOPICS.parent("Animals > Dogs") == "Animals"
    assert TOPICS.parent("Cars") is None
    assert TOPICS.ancestors("Animals > Dogs > Poodles") == ("Animals > Dogs", "Animals")
    assert TOPICS.descendants("Animals") == ("Animals > Cats", "Animals > Dogs > Poodles")
    assert TOPICS.leaves == ("Animals > Cats", "Animals > Dogs > Poodles", "Cars")
    assert TOPICS.depth("Animals > Dogs > Poodles") == 3


def test_it_is_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        TOPICS.name = "x"
    with pytest.raises(AttributeError, match="immutable"):
        TOPICS.fingerprint = "x"
    with pytest.raises(AttributeError, match="immutable"):
        del TOPICS.labels


def test_what_matters_is_in_the_fingerprint():
    base = Taxonomy(["a", "b"])
    same = Taxonomy(["a", "b"], name="other")
    assert base == same
    assert hash(base) == hash(same)
    codes = {"a": "1", "b": "2"}
    different = [
        base,
        Taxonomy(["b", "a"]),
        Taxonomy(["a", "b", "c"]),
        Taxonomy(["a", "b"], separator="/"),
        Taxonomy(["a", "b"], separator=None),
        Taxonomy(["a", "b"], codes=codes),
        Taxonomy(["a", "b"], codes=codes, written="code"),
        Taxonomy(["a", "b"], descriptions={"a": "1"}),
        Taxonomy(["a", "b"], descriptions={"b": "1"}),
    ]
    assert len({taxonomy.fingerprint for taxonomy in different}) == len(different)
    assert base != ["a", "b"]


def test_the_fingerprint_is_the_same_in_another_process():
    code = "from structgen.taxonomy import Taxonomy; print(Taxonomy(['a > b', 'é']).fingerprint)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == Taxonomy(["a > b", "é"]).fingerprint


def test_a_subset_keeps_what_is_known_in_the_given_order():
    some = TOPICS.subset(["C", "Animals > Cats"])
    assert some.labels == ("Cars", "Animals > Cats")
    assert some["C"].description == "with engines"
    assert some.roots == ("Cars", "Animals")
    with pytest.raises(OptionError, match="no labels of labels: 'nope'"):
        TOPICS.subset(["nope"])
    for names in ([], ["C", "Cars"]):
        with pytest.raises(OptionError, match="at least one label"):
            TOPICS.subset(names)


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)


@given(st.lists(PATHS, min_size=1, max_size=12, unique=True))
def test_the_tree_agrees_with_the_paths(paths):
    found = Taxonomy(paths)
    nodes = {path[:n] for path in paths for n in range(1, len(path) + 1)}

    def text(path):
        return " > ".join(path)

    assert set(found.roots) == {text(path) for path in nodes if len(path) == 1}
    for path in nodes:
        name = text(path)
        below = [other for other in nodes if other[: len(path)] == path and other != path]
        assert found.path(name) == path
        assert set(found.children(name)) == {
            text(other) for other in below if len(other) == len(path) + 1
        }
        assert set(found.descendants(name)) == {text(other) for other in below if other in paths}
        assert found.ancestors(name) == tuple(text(path[:n]) for n in range(len(path) - 1, 0, -1))
        assert (name in found) == (path in paths)
    assert set(found.leaves) == {
        text(path) for path in paths if not any(o[: len(path)] == path and o != path for o in nodes)
    }
