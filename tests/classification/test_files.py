"""A file of texts in, a file of labels out, whatever happens in between."""

from __future__ import annotations

import csv
import json

import pytest

from structgen.classification.classifier import Classifier
from structgen.classification.files import Columns, classify_file
from structgen.classification.prompting import check_text
from structgen.cli import main
from structgen.errors import InvalidTextError, OptionError
from structgen.runtime.hf import load
from structgen.taxonomy import Taxonomy
from structgen.testing import RandomLM, byte_vocabulary
from tests.runtime.fakes import tiny_model, tiny_tokenizer

LABELS = ["billing", "sales", "technical"]
TEXTS = ["plain", 'with "quotes", commas', "two\nlines", "", "ümlaut \u2028 line", "last"]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(LABELS, RandomLM(byte_vocabulary(), 5))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(TEXTS))
    return path


def read(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_each_row_gets_its_label(classifier, source, tmp_path, ending):
    target = tmp_path / f"out.{ending}"
    columns = Columns(top=2, probabilities=True)
    report = classify_file(classifier, source, target, columns, progress=False)
    assert (report.written, report.skipped) == (len(TEXTS), 0)
    for row, text, expected in zip(read(target), TEXTS, classifier.many(TEXTS), strict=True):
        assert row["text"] == text
        assert row["label"] == expected.label
        assert float(row["probability"]) == pytest.approx(expected.probability, abs=1e-4)
        assert row["label_2"] == expected.ranking[1].label
        each = row["probabilities"]
        each = json.loads(each) if isinstance(each, str) else each
        assert set(each) == set(LABELS)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_run_that_was_cut_anywhere_goes_on(classifier, source, tmp_path, ending):
    target = tmp_path / f"out.{ending}"
    classify_file(classifier, source, target, progress=False)
    whole = target.read_bytes()
    for cut in range(0, len(whole) + 1, 7):
        target.write_bytes(whole[:cut])
        report = classify_file(classifier, source, target, progress=False)
        assert report.written + report.skipped == len(TEXTS)
        assert [row["text"] for row in read(target)] == TEXTS
        assert target.read_bytes() == whole
    assert classify_file(classifier, source, target, progress=False).written == 0


@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_other_inputs(classifier, tmp_path, ending):
    source, target = tmp_path / f"rows.{ending}", tmp_path / "out.csv"
    lines = ["a", "b"] if ending == "txt" else ['{"text": "a", "n": [1]}', '{"text": "b"}']
    source.write_text("\n".join(lines), "utf-8")
    classify_file(classifier, source, target, progress=False)
    assert [row["text"] for row in read(target)] == ["a", "b"]


def test_what_is_wrong_with_files_is_said(classifier, source, tmp_path):
    target = tmp_path / "out.csv"
    for wrong, message in [
        (("no.csv", target), "no file"),
        ((source, tmp_path / "x" / "out.csv"), "folder"),
        ((source, source), "is the input"),
        ((source, "out.xlsx"), "end with one of"),
        (("in.xlsx", target), "end with one of"),
    ]:
        with pytest.raises(OptionError, match=message):
            classify_file(classifier, *wrong)
    with pytest.raises(OptionError, match=r"row 1 .* no text in 'body'"):
        classify_file(classifier, source, target, Columns(text="body"))
    target.write_text("id,text,label,probability,valid_mass,error\n0,other,sales,1,1,\n")
    with pytest.raises(OptionError, match="row 1 is no row of this input"):
        classify_file(classifier, source, target)
    assert "other" in target.read_text(), "a file of others is left as it is"
    for ours in ("my notes", "id,name\n1,Bob", 'id,note\n1,6" pipe\n2,"x"\n3,z\n'):
        for other in (target, tmp_path / "out.jsonl"):
            other.write_text(ours)
            with pytest.raises(OptionError, match="no output of this run"):
                classify_file(classifier, source, other)
            assert other.read_text() == ours
    source.write_bytes(b"id,text\n1,\xff\n")
    with pytest.raises(InvalidTextError, match="cannot be read"):
        classify_file(classifier, source, tmp_path / "new.csv")


def test_the_command(monkeypatch, source, tmp_path, capsys):
    from structgen.runtime import hf

    labels, target = tmp_path / "labels.txt", tmp_path / "out.csv"
    labels.write_text("\n".join(LABELS) + "\n")
    monkeypatch.setattr(hf, "load", lambda *_, **__: RandomLM(byte_vocabulary(), 5))
    arguments = ["classify", "--labels", str(labels), "--in", str(source), "--out", str(target)]
    assert main([*arguments, "--top", "3", "--quiet"]) == 0
    assert capsys.readouterr().out == f"{len(TEXTS)} written, 0 failed, 0 skipped\n"
    assert all(row["label_3"] in LABELS for row in read(target))
    assert main([*arguments, "--text", "body"]) == 1
    assert "no text in 'body'" in capsys.readouterr().err


def test_rows_of_other_shapes_keep_their_columns(classifier, tmp_path):
    source, target = tmp_path / "rows.jsonl", tmp_path / "out.csv"
    source.write_text('{"text": "a\\rb", "id": 1}\n{"id": 2, "text": "b"}\n{"text": "c"}\n')
    for _ in range(2):
        classify_file(classifier, source, target, progress=False)
        rows = read(target)
        assert [(row["text"], row["id"]) for row in rows] == [("a\rb", "1"), ("b", "2"), ("c", "")]
    with pytest.raises(OptionError, match="does not begin as"):
        classify_file(classifier, source, target, Columns(top=2))
    source.write_text('{"text": "a", "label": "gold"}\n')
    with pytest.raises(OptionError, match=r"columns \['label'\].*rename them .* \['given_label'\]"):
        classify_file(classifier, source, tmp_path / "other.csv")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_text_that_is_too_long_has_an_error_and_no_label(source, tmp_path, ending):
    short = Classifier(LABELS, RandomLM(byte_vocabulary(), 5, context_length=400))
    with source.open("a", encoding="utf-8") as file:
        file.write(f"6,{'long ' * 99}\n7,at the end\n")
    target = tmp_path / f"out.{ending}"
    report = classify_file(short, source, target, Columns(top=2, probabilities=True), batch_size=3)
    assert (report.written, report.failed, report.skipped) == (len(TEXTS) + 1, 1, 0)
    rows = read(target)
    assert [row["text"] for row in rows][-1] == "at the end"
    assert all(bool(row["label"]) != bool(row.get("error")) for row in rows)
    error = rows[-2]["error"]
    assert error["type"] == "PromptTooLongError" if ending == "jsonl" else "the prompt has" in error
    again = classify_file(short, source, target, Columns(top=2, probabilities=True))
    assert (again.written, again.failed, again.skipped) == (0, 0, len(TEXTS) + 2)


class Moody(RandomLM):
    """A model that refuses some texts until its mood is better."""

    def __init__(self) -> None:
        super().__init__(byte_vocabulary(), 5)
        self.refused: tuple[str, ...] = ()
        self.asked: list[str] = []
        self.stop_at: str | None = None

    def encode_prompt(self, prompt):
        if prompt == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(prompt)
        if prompt in self.refused:
            raise InvalidTextError("line one\nline two")
        return super().encode_prompt(prompt)


def bare(text: str) -> str:
    return text


@pytest.fixture
def moody() -> Moody:
    return Moody()


def test_an_error_of_several_lines_does_not_stop_a_run_that_goes_on(moody, source, tmp_path):
    moody.refused = (TEXTS[1],)
    classifier, target = Classifier(LABELS, moody, prompt=bare), tmp_path / "out.csv"
    assert classify_file(classifier, source, target).failed == 1
    assert read(target)[1]["error"] == "InvalidTextError: line one line two"
    assert classify_file(classifier, source, target).skipped == len(TEXTS)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_rows_with_errors_are_done_again_where_that_is_asked_for(moody, source, tmp_path, ending):
    classifier, target = Classifier(LABELS, moody, prompt=bare), tmp_path / f"out.{ending}"
    expected = tmp_path / f"expected.{ending}"
    classify_file(classifier, source, expected)
    moody.refused = (TEXTS[1], TEXTS[2], TEXTS[4])
    assert classify_file(classifier, source, target).failed == 3
    target.write_bytes(target.read_bytes()[:-9])  # the last row was cut
    moody.refused, moody.asked = (TEXTS[4],), []
    report = classify_file(classifier, source, target, retry_errors=True, batch_size=2)
    assert (report.written, report.failed, report.skipped) == (3, 1, 2)
    assert moody.asked == [TEXTS[1], TEXTS[2], TEXTS[4], TEXTS[5]]
    moody.refused, moody.asked = (), []
    report = classify_file(classifier, source, target, retry_errors=True)
    assert (report.written, report.failed, report.skipped) == (1, 0, 5)
    assert moody.asked == [TEXTS[4]]
    assert target.read_bytes() == expected.read_bytes()
    assert classify_file(classifier, source, target, retry_errors=True).skipped == len(TEXTS)
    assert sorted(path.name for path in tmp_path.glob(f"out.{ending}*")) == [
        f"out.{ending}", f"out.{ending}.settings.json",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_second_try_that_was_cut_anywhere_goes_on(moody, source, tmp_path, ending):
    classifier, target = Classifier(LABELS, moody, prompt=bare), tmp_path / f"out.{ending}"
    retried = tmp_path / f"out.{ending}.retried"
    moody.refused = (TEXTS[0], TEXTS[2], TEXTS[4])
    classify_file(classifier, source, target)
    before, moody.refused, moody.stop_at = target.read_bytes(), (), TEXTS[4]
    with pytest.raises(KeyboardInterrupt):
        classify_file(classifier, source, target, retry_errors=True, batch_size=1)
    assert target.read_bytes() == before, "what was good before is there"
    moody.stop_at, moody.asked = None, []
    written = retried.read_bytes()
    report = classify_file(classifier, source, target, retry_errors=True)
    assert (report.written, report.skipped, moody.asked) == (1, len(TEXTS) - 1, [TEXTS[4]])
    whole = target.read_bytes()
    assert all(not row.get("error") for row in read(target))
    for cut in range(0, len(written), 11):
        target.write_bytes(before)
        retried.write_bytes(written[:cut])
        classify_file(classifier, source, target, retry_errors=True)
        assert target.read_bytes() == whole
    retried.write_bytes(b"of an output that is gone")
    target.unlink()
    assert classify_file(classifier, source, target, retry_errors=True).written == len(TEXTS)


def test_texts_that_are_compared_are_all_done_again_for_one_that_failed(moody, source, tmp_path):
    classifier = Classifier(LABELS, moody, prompt=bare, calibrate="batch")
    target, expected = tmp_path / "out.csv", tmp_path / "expected.csv"
    classify_file(classifier, source, expected)
    moody.refused = (TEXTS[0],)
    classify_file(classifier, source, target)
    assert classify_file(classifier, source, target).skipped == len(TEXTS)
    moody.refused, moody.stop_at, before = (), TEXTS[5], target.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        classify_file(classifier, source, target, retry_errors=True)
    assert target.read_bytes() == before
    moody.stop_at = None
    assert classify_file(classifier, source, target, retry_errors=True).written == len(TEXTS)
    assert target.read_bytes() == expected.read_bytes()


WRONG = {
    "None": (lambda text: None, "returned None: .* list of chat messages"),
    "int": (lambda text: 3, "returned 3"),
    "dict": (lambda text: {"role": "user", "content": text}, "returned {'role'"),
    "messages": (lambda text: [{"content": text}], "'role' and 'content'"),
    "surrogate": (lambda text: "\udc00", "not valid Unicode"),
    "raises": (lambda text: {}["x"], "raised KeyError: 'x'"),
    "refuses": (lambda text: check_text(text + "\ud800"), "raised InvalidTextError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_prompt_function_is_no_fault_of_the_texts(lm, source, tmp_path, name):
    function, message = WRONG[name]
    target = tmp_path / "out.jsonl"
    with pytest.raises(OptionError, match=f"the prompt function <lambda> .*{message}") as caught:
        classify_file(Classifier(LABELS, lm, prompt=function), source, target)
    assert caught.value.__notes__ == ["structgen: this was text 0"]
    assert target.read_bytes() == b""
    report = classify_file(Classifier(LABELS, lm, prompt=bare), source, target)
    assert (report.written, report.failed) == (len(TEXTS), 0)


def test_a_chat_template_that_refuses_all_prompts_is_no_fault_of_the_texts(source, tmp_path):
    template = "{{ raise_exception('no such role') }}"
    lm = load((tiny_model(), tiny_tokenizer(template)))
    with pytest.raises(OptionError, match="no such role"):
        classify_file(Classifier(LABELS, lm), source, tmp_path / "out.csv")


def test_a_shortlist_function_that_finds_nothing_fails_for_one_text_alone(lm, source, tmp_path):
    found = Classifier(LABELS, lm, shortlist=lambda text, k: LABELS if text else [])
    report = classify_file(found, source, tmp_path / "out.csv")
    assert (report.written, report.failed) == (len(TEXTS) - 1, 1)
    for wrong in (None, "billing", ["no label"]):
        classifier = Classifier(LABELS, lm, shortlist=lambda text, k, wrong=wrong: wrong)
        with pytest.raises(OptionError, match=r"shortlist function .* returned|no labels of"):
            classify_file(classifier, source, tmp_path / "other.csv")


def test_labels_of_several_lines_are_found_again(lm, source, tmp_path):
    labels = Taxonomy(["a\nb", "a\nc"], separator="\n")
    target = tmp_path / "out.csv"
    assert classify_file(Classifier(labels, lm), source, target).written == len(TEXTS)
    assert classify_file(Classifier(labels, lm), source, target).skipped == len(TEXTS)


def test_settings_are_written_whole_or_not_at_all(classifier, source, tmp_path, monkeypatch):
    with pytest.raises(InvalidTextError, match=r"instructions='Which\\ud800' is not valid Unicode"):
        Classifier(LABELS, classifier.lm, instructions="Which\ud800")
    target = tmp_path / "out.csv"
    with pytest.raises(InvalidTextError, match="text='x"):
        classify_file(classifier, source, target, Columns(text="x\ud800"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"]

    def full(_: int) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            classify_file(classifier, source, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "rows.csv"]
    assert classify_file(classifier, source, target).written == len(TEXTS)


@pytest.mark.parametrize(
    ("labels", "options", "columns", "named"),
    [
        ([*LABELS, "other"], {}, {}, "labels was '3 labels"),
        (LABELS, {"calibrate": "pmi"}, {}, "calibrate was None and is 'pmi'"),
        (LABELS, {"examples": [("a", "sales")]}, {}, "examples was"),
        (LABELS, {"min_probability": 0.5, "index": True}, {}, "index was .*min_probability was"),
        (LABELS, {"prompt": str.upper}, {}, r"prompt was None and is 'builtins.str.upper'"),
        (LABELS, {}, {"text": "id"}, "text was 'text' and is 'id'"),
    ],
)
def test_a_run_with_other_settings_does_not_go_on(
    classifier, source, tmp_path, labels, options, columns, named
):
    target = tmp_path / "out.jsonl"
    classify_file(classifier, source, target)
    before = target.read_bytes()
    other = Classifier(labels, classifier.lm, **options)
    with pytest.raises(OptionError, match=f"begun with other settings.*{named}.*another output"):
        classify_file(other, source, target, Columns(**columns))
    assert target.read_bytes() == before
    assert classify_file(classifier, source, target).written == 0


def test_a_run_with_another_model_does_not_go_on(classifier, source, tmp_path):
    target = tmp_path / "out.csv"
    classify_file(classifier, source, target)
    lm = RandomLM(byte_vocabulary(), 6)
    lm.name = "larger"
    with pytest.raises(OptionError, match=r"model was 'random .* is 'larger"):
        classify_file(Classifier(LABELS, lm), source, target)


def test_what_changes_no_result_may_change(classifier, source, tmp_path):
    target = tmp_path / "out.csv"
    classify_file(classifier, source, target)
    same = Classifier(LABELS, classifier.lm, max_pass_tokens=7, strategy="full")
    assert classify_file(same, source, target, batch_size=3).written == 0


def test_settings_that_are_lost_are_asked_for(classifier, source, tmp_path):
    target = tmp_path / "out.csv"
    classify_file(classifier, source, target)
    settings = tmp_path / "out.csv.settings.json"
    text = settings.read_text("utf-8")
    for wrong, message in (("{", "cannot be read"), ("[]", "holds no settings")):
        settings.write_text(wrong)
        with pytest.raises(OptionError, match=message):
            classify_file(classifier, source, target)
    settings.unlink()
    with pytest.raises(OptionError, match=r"there is no 'out.csv.settings.json'"):
        classify_file(classifier, source, target)
    settings.write_text(text)
    assert classify_file(classifier, source, target).written == 0
    target.unlink()  # of an output without rows, settings are of no interest
    settings.write_text("{")
    assert classify_file(classifier, source, target).written == len(TEXTS)


def test_texts_that_are_compared_are_all_done_again(classifier, source, tmp_path):
    target = tmp_path / "out.csv"
    compared = Classifier(LABELS, classifier.lm, calibrate="batch")
    classify_file(compared, source, target)
    whole = target.read_bytes()
    target.write_bytes(whole[: len(whole) // 2])
    assert classify_file(compared, source, target).written == len(TEXTS)
    assert target.read_bytes() == whole
    assert classify_file(compared, source, target).written == 0


def test_the_command_tells_by_its_status_that_texts_failed(monkeypatch, tmp_path, capsys):
    from structgen.runtime import hf

    labels, source, target = tmp_path / "l.txt", tmp_path / "in.txt", tmp_path / "out.csv"
    labels.write_text("\n".join(LABELS))
    source.write_text("short\n" + "long " * 100 + "\n")
    lm = RandomLM(byte_vocabulary(), 5, context_length=300)
    monkeypatch.setattr(hf, "load", lambda *_, **__: lm)
    arguments = ["classify", "--labels", str(labels), "--in", str(source), "--out", str(target)]
    assert main([*arguments, "--quiet"]) == 1
    assert capsys.readouterr().out == "1 written, 1 failed, 0 skipped\n"
    lm.context_length = None
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().out == "0 written, 0 failed, 2 skipped\n"
    assert main([*arguments, "--quiet", "--retry-errors"]) == 0
    assert capsys.readouterr().out == "1 written, 0 failed, 1 skipped\n"
    assert main([*arguments, "--quiet", "--none-of-these"]) == 1
    assert "none_of_these was None and is 'none of these'" in capsys.readouterr().err
