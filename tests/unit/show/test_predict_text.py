"""Predictions as text: one screen, harmless, plain without a model; and as rows."""

from pathlib import Path

from tests.unit.show.documents import read
from tests.unit.show.predictions import REQUEST, document, prediction, target

from gpuwaste.advice.predict.predict_text import predict_text
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import to_csv, to_parsable

GOLDEN = Path(__file__).parent / "golden" / "predict.txt"


def test_a_prediction_is_the_golden_text() -> None:
    """Expected, why, what to change, notes."""
    assert predict_text(read(document(prediction(), notes=("a note",))), Look()) == GOLDEN.read_text()


def test_a_prediction_fits_a_screen() -> None:
    """At most 40 lines of at most 80 columns."""
    lines = predict_text(read(document(prediction())), Look()).splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines) <= 80


def test_without_a_model_and_history_only_the_request_and_the_notes_stand() -> None:
    """Nothing expected, nothing why."""
    said = prediction(model="", targets=[], changes=[], notes=["no model of this site"])
    text = predict_text(read(document(said)), Look())
    assert "Expected" not in text
    assert "no model of this site" in text


def test_history_is_named_as_what_speaks() -> None:
    """No model: the heading says whose numbers these are."""
    said = prediction(
        model="", model_hash="", targets=[target("failure", source="history", basis=8, p=0.5)], changes=[]
    )
    text = predict_text(read(document(said)), Look())
    assert "Prediction by your own history" in text
    assert "of your last 8" in text


def test_hostile_names_print_as_escapes() -> None:
    """Escape sequences in a name, a reason or an option do not reach the terminal."""
    evil = "\x1b[31mx\nroot"
    said = prediction(request={**REQUEST, "name": evil, "account": evil, "partition": evil, "gpu_type": evil})
    said["targets"][0]["reasons"][0]["text"] = evil
    said["changes"][0]["option"] = evil
    said["notes"] = [evil]
    text = predict_text(read(document(said, notes=(evil,))), Look())
    assert "\x1b" not in text
    assert "\nroot" not in text


def test_many_components_are_cut_and_counted() -> None:
    """A het job of ten components prints eight."""
    assert "... and 2 more" in predict_text(read(document(*[prediction()] * 10)), Look())


def test_rows_have_each_probability_and_each_quantile() -> None:
    """--parsable and --csv: a header, then a row for each number."""
    rows = to_parsable(read(document(prediction()))).splitlines()
    assert rows[0].startswith("request|name|user|target|source|basis|p|level|quantile|value|")
    assert len(rows) == 1 + 3 + 4 + 2
    assert "1|train|alice|walltime|site model|9000|||0.99|2300|" in rows[6]
    assert to_csv(read(document(prediction()))).count("\n") == len(rows)


def test_what_rests_on_the_site_alone_has_no_bar() -> None:
    """Of a user without any known job the model says what the site's jobs do: the line says so, and draws nothing."""
    said = prediction(own_history=False, targets=[target("failure", p=0.61, level="warn")], changes=[])
    text = predict_text(read(document(said)), Look())
    assert "  Fails       61 % of similar jobs at this site (no earlier job of yours is known)\n" in text
    assert "|" not in text
    assert "[|||" in predict_text(read(document(said | {"own_history": True})), Look())


def test_a_program_s_own_memory_keeps_its_line_for_a_new_user() -> None:
    """What does not come from the site's model, such as an estimate of the program, is drawn as ever."""
    said = prediction(own_history=False, targets=[target("memory", p=0.9, source="white box")], changes=[])
    assert "[|||" in predict_text(read(document(said)), Look())
