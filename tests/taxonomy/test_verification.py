"""The structural proof, and that it would find what is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from structgen.errors import UnsupportedSchemaError
from structgen.taxonomy import Taxonomy, verification
from structgen.taxonomy.verification import Language, Verification, accepted, unwritable_labels
from structgen.testing import byte_vocabulary, small_vocabulary

DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
FOLDER = DATA / "taxonomies"


@settings(max_examples=30, deadline=None)
@given(st.sets(st.text('ab >"\\é', min_size=1, max_size=5), min_size=1, max_size=12))
def test_the_language_is_exactly_the_labels(labels):
    clean = sorted({label.strip() for label in labels} - {""})
    if not clean:
        return
    taxonomy = Taxonomy(clean, separator=None, allow_similar=True)
    vocabulary = small_vocabulary(["ab", " >", '"a', 'b"', "aab"])
    found = taxonomy.verify(vocabulary)
    assert found
    assert (found.bare.count, found.json.count) == (len(clean), len(clean))
    compiled = sg.compile(sg.OneOf(clean), vocabulary)
    assert sorted(text.decode() for text in accepted(compiled, 10)) == clean


def test_a_text_too_much_or_too_few_is_found(monkeypatch):
    taxonomy = Taxonomy(["ab", "abc", "b"])
    vocabulary = small_vocabulary(["ab"])
    right = verification.compile_schema
    monkeypatch.setattr(
        verification,
        "compile_schema",
        lambda source, v: right(
            sg.OneOf(["ab", "abd"]) if isinstance(source, sg.OneOf) else source, v
        ),
    )
    found = taxonomy.verify(vocabulary)
    assert not found
    assert found.json.ok
    assert found.bare == Language(2, ("abc", "b"), ("abd",), ("b", "abc"))
    assert "2 are not accepted bare, such as 'abc', 'b'" in str(found)


def test_a_language_without_an_end_is_not_followed_for_ever(monkeypatch):
    right = verification.compile_schema
    monkeypatch.setattr(
        verification,
        "compile_schema",
        lambda source, v: right(sg.Regex("[ab]+") if isinstance(source, sg.OneOf) else source, v),
    )
    found = Taxonomy(["ab", "b"]).verify(byte_vocabulary())
    assert len(found.bare.extra) == verification.MOST_SHOWN


def test_tokens_that_do_not_lead_to_a_label_are_found(monkeypatch):
    taxonomy = Taxonomy(["ab", "b"])
    vocabulary = small_vocabulary(["ab"])
    monkeypatch.setattr("structgen.tokens.session.Session.allows", lambda self, t: t != 256)
    assert taxonomy.verify(vocabulary).bare.unreached == ("ab",)


def test_without_an_encoder_only_bytes_are_looked_at():
    vocabulary = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)], eos_token_ids=256)
    found = Taxonomy(["a", "b"]).verify(vocabulary)
    assert found.ok
    assert "not known" in str(found)


def test_the_result_is_a_sentence_with_the_count():
    exact = Language(3, (), (), ())
    found = Verification("topics", 3, exact, exact, True)
    assert str(found) == (
        "topics: the automata accept exactly the 3 labels, 3 texts bare and 3 in JSON; each is "
        "reached by the tokenizer's own tokens, which spell it exactly"
    )


def test_labels_that_no_tokens_write_are_reported_together():
    tokens = [b"a", b"b", b"\xc3\xa9", b'"']
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_token_ids=4)
    taxonomy = Taxonomy(["ab", "é", "c", "aé", "bc"])
    taxonomy.subset(["ab", "é", "aé"]).check(vocabulary)
    with pytest.raises(UnsupportedSchemaError) as caught:
        taxonomy.check(vocabulary)
    assert [fault.path for fault in caught.value.faults] == ["[2]", "[4]"]
    many = unwritable_labels([f"c{i}" for i in range(100)], vocabulary)
    assert len(many) == verification.MOST_SHOWN + 1
    assert "all 100" in many[-1].problem
    byte_vocabulary_ = byte_vocabulary()
    assert unwritable_labels(["c"], byte_vocabulary_) == []


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no taxonomies where STRUCTGEN_DATA says")
@pytest.mark.parametrize(
    ("file", "count"),
    [
        ("iab-content-3.1/labels.txt", 704),
        ("naics-2022/labels.txt", 1432),
        ("iso-codes/countries.txt", 249),
    ],
)
def test_real_taxonomies_are_exactly_what_is_accepted(file, count, real_vocabulary):
    taxonomy = Taxonomy.from_file(FOLDER / file)
    found = taxonomy.verify(real_vocabulary)
    assert found, str(found)
    assert (found.n_labels, found.bare.count, found.json.count) == (count, count, count)


def test_labels_with_codes_are_verified_as_they_are_written():
    taxonomy = Taxonomy(["a", "b"], codes={"a": "1", "b": "2"}, written="code")
    compiled = sg.compile(Annotated[str, taxonomy], byte_vocabulary())
    assert sorted(accepted(compiled, 5)) == [b'"1"', b'"2"']
    assert taxonomy.verify(byte_vocabulary())
