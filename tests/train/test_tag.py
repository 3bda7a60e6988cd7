"""Training taggers, in folders that can be killed and loaded."""

from __future__ import annotations

import itertools
import json
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from statewise.data import TaggedSentences, WordVectors, hidden_markov_sentences, score_spans
from statewise.data.hidden_markov_sentences import HiddenMarkovSentences
from statewise.errors import ArgumentError, DivergedError, DtypeError, RunFolderError, ShapeError
from statewise.models import Lexicon, TaggerConfig
from statewise.train import (
    RunFolder,
    TaggerSettings,
    load_classifier,
    load_tagger,
    train_tagger,
)
from statewise.train.tag_data import TagSet, calibrate, judged, measure_tags
from statewise.train.tag_folder import read_given, tagged_path
from train.forks import Forks
from train.killed import Outcome, outcome, undisturbed_outcomes

SMALL = TaggerConfig(hidden=6, words=5, characters=3, character_hidden=3)
SETTINGS = TaggerSettings(epochs=2, batch=8, optimizer="adam", lr=0.01)
KINDS = ("tagger", "doubled tagger")
SITES = ("input", "pre-output", "through-time")


@cache
def made(train: int = 40) -> HiddenMarkovSentences:
    return hidden_markov_sentences(train=train, valid=20, test=20)


def run(folder: Path, settings: TaggerSettings = SETTINGS, config: TaggerConfig = SMALL, **options: Any) -> Any:
    parts = (options.pop("train", made().train), options.pop("valid", made().valid), options.pop("tests", {}))
    return train_tagger(config, settings, *parts, folder, **options)


def rates(folder: Path) -> list[float]:
    return [record["lr"] for record in RunFolder(folder).metrics()[:-1]]


def test_names_are_learnt_in_seconds(tmp_path: Path) -> None:
    data = hidden_markov_sentences(train=120, valid=30, test=40, ambiguity=0.0)
    best = score_spans(data.test, data.model.viterbi(data.test.sentences)).f1
    config = replace(SMALL, hidden=16, words=20, characters=0, dropout=0.1)
    settings = TaggerSettings(epochs=8, batch=8, optimizer="adam", lr=0.03)
    parts = (data.train.converted("bioes"), data.valid.converted("bioes"), {"test": data.test.converted("bioes")})
    result = train_tagger(config, settings, *parts, tmp_path / "run")
    assert result.tests["test"].f1 > best - 0.2


def test_a_run_is_a_folder_with_the_best_tagger_and_all_that_it_said(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = []
    test = made().test
    settings = replace(SETTINGS, epochs=5)
    result = run(tmp_path / "run", settings, tests={"eng/test b": test}, on_epoch=records.append, source={"data": "x"})
    told = RunFolder(tmp_path / "run").metrics()
    assert told[:-1] == records
    assert [record["epoch"] for record in records] == [1, 2, 3, 4, 5]
    assert 0 < records[-1]["clean_loss"] < records[0]["clean_loss"]
    ranks = [(-record["valid_f1"], record["valid_loss"]) for record in records]
    assert result.best_epoch == ranks.index(min(ranks)) + 1
    assert result.valid.f1 == records[result.best_epoch - 1]["valid_f1"]
    tagger, about = load_tagger(tmp_path / "run")
    assert about["lexicon"] == {"scheme": "iob2", "vectors": None, "context": 0}
    assert about["source"] == {"data": "x"}
    given = tuple(map(tuple, tagger.tag(test.sentences)))
    assert read_given(tagged_path(tmp_path / "run", "eng/test b")) == (test.tags, given)
    found = result.tests["eng/test b"]
    assert found.f1 == score_spans(test.tags, given).f1
    examples = TagSet(tagger.lexicon, test)
    assert measure_tags(tagger, examples, batch=7).loss == pytest.approx(found.loss, rel=1e-5)
    assert told[-1]["tests"]["eng/test b"]["ece"] == pytest.approx(calibrate(tagger, examples, batch=3).ece, abs=1e-4)
    assert "kept after epoch" in str(result)


def test_the_last_is_kept_where_nothing_chooses(tmp_path: Path) -> None:
    result = run(tmp_path / "run", replace(SETTINGS, keep="last"), valid=None, tests={"test": made().test})
    assert (result.valid, result.best_epoch) == (None, 2)
    with pytest.raises(ArgumentError, match="valid: got None"):
        run(tmp_path / "other", valid=None)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("mixup", SITES)
@pytest.mark.parametrize("head", ["crf", "softmax"])
def test_every_kind_of_mixing_trains_every_head(tmp_path: Path, mixup: str, head: str) -> None:
    settings = replace(SETTINGS, epochs=1, mixup=mixup, rho=0.5, crf_mode="coupled")
    config = replace(SMALL, head=head, layers=2, bidirectional=head == "crf")
    result = run(tmp_path / "run", settings, config)
    assert np.isfinite(result.valid.loss)


def test_what_is_mixed_changes_what_is_learnt(tmp_path: Path) -> None:
    found = {run(tmp_path / kind, replace(SETTINGS, epochs=1, mixup=kind)).valid.loss for kind in ("none", *SITES)}
    assert len(found) == 4


@pytest.mark.parametrize("pairing", ["permute", "double"])
def test_a_last_sentence_without_a_partner_is_not_mixed(tmp_path: Path, pairing: str) -> None:
    settings = replace(SETTINGS, epochs=1, mixup="input", pairing=pairing)
    assert run(tmp_path / "run", settings, train=made().train[:17]).epochs == 1


def test_tags_that_the_training_set_has_not_are_known_if_their_types_are(tmp_path: Path) -> None:
    train = TaggedSentences.of([["Ada", "is"]] * 4, [["S-PER", "O"]] * 4, scheme="bioes")
    valid = TaggedSentences.of([["Ada", "King"]], [["B-PER", "E-PER"]], scheme="bioes")
    run(tmp_path / "run", train=train, valid=valid)
    assert load_tagger(tmp_path / "run")[0].lexicon.tags == ("O", "B-PER", "E-PER", "I-PER", "S-PER")


def test_pairs_that_are_drawn_twice_as_wide_make_as_many_updates(tmp_path: Path) -> None:
    for pairing in ("permute", "double"):
        run(tmp_path / pairing, replace(SETTINGS, epochs=1, mixup="input", pairing=pairing))
    counts = [RunFolder(tmp_path / name).metrics()[0]["updates"] for name in ("permute", "double")]
    assert counts[0] == 5  # 40 sentences, 8 of them an update
    assert counts[1] == 6  # twice through them, 16 an update


def test_the_learning_rate_follows_its_schedule(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=4, lr=0.01, divide=4.0)
    few: dict[str, Any] = {"train": made().train[:16]}
    run(tmp_path / "steps", replace(settings, schedule="steps", step_every=2), **few)
    assert rates(tmp_path / "steps") == [0.01, 0.01, 0.0025, 0.0025]
    run(tmp_path / "cosine", replace(settings, schedule="cosine"), **few)
    falling = rates(tmp_path / "cosine")
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) == 4


def test_on_a_plateau_the_learning_rate_is_divided_and_ends_the_run(tmp_path: Path) -> None:
    # Far too high a rate, at which nothing is learnt any more.
    settings = replace(SETTINGS, epochs=20, optimizer="sgd", lr=4.0, schedule="plateau", step_every=1, least_lr=3.0)
    result = run(tmp_path / "run", replace(settings, divide=2.0))
    found = rates(tmp_path / "run")
    assert all(later in (earlier, earlier / 2) for earlier, later in itertools.pairwise(found))
    assert found[-1] >= 3.0
    assert result.epochs < 20


def test_given_vectors_are_kept_as_they_are_and_words_without_one_are_nothing(tmp_path: Path) -> None:
    words = ("jordan", "said", "nowhere")
    vectors = WordVectors(words, np.arange(9, dtype=np.float32).reshape(3, 3))
    run(tmp_path / "run", vectors=vectors)
    tagger, about = load_tagger(tmp_path / "run")
    assert about["lexicon"]["vectors"] == 3
    assert tagger.lexicon.words == ("jordan", "said")  # the third does not occur
    assert tagger.words.weight.tolist() == [[0, 0, 0], [0, 1, 2], [3, 4, 5]]
    others = WordVectors(words, np.ones((3, 3), dtype=np.float32))
    with pytest.raises(RunFolderError, match="vectors was"):
        run(tmp_path / "run", replace(SETTINGS, epochs=3), vectors=others, resume=True)


def test_vectors_from_outside_are_given_for_every_set(tmp_path: Path) -> None:
    data = made()
    rows = {name: np.random.default_rng(0).normal(size=(each.tokens, 2)) for name, each in
            (("train", data.train), ("valid", data.valid), ("test", data.test))}  # fmt: skip
    result = run(tmp_path / "run", tests={"test": data.test}, context=rows)
    tagger, about = load_tagger(tmp_path / "run")
    assert about["lexicon"]["context"] == 2
    found = measure_tags(tagger, TagSet(tagger.lexicon, data.test, context=rows["test"]), batch=9)
    assert found.loss == pytest.approx(result.tests["test"].loss, rel=1e-5)
    with pytest.raises(ArgumentError, match=r"context\['valid'\]: got nothing"):
        run(tmp_path / "other", context={"train": rows["train"]})
    with pytest.raises(ShapeError, match="one row a token"):
        run(tmp_path / "other", context={"train": rows["train"], "valid": rows["train"]})


def test_tags_without_spans_are_judged_one_by_one(tmp_path: Path) -> None:
    train = TaggedSentences.of([["a", "b"], ["b", "a", "b"]] * 6, [["X", "Y"], ["Y", "X", "Y"]] * 6)
    result = run(tmp_path / "run", replace(SETTINGS, epochs=12, lr=0.05), train=train, valid=train)
    assert result.valid.f1 == result.valid.accuracy == 1.0
    assert judged(train, train.tags, nll=0.0).strict_f1 == 1.0


def test_sets_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    data = made()
    strange = TaggedSentences.of([["Ada"]], [["B-MISC"]], scheme="iob2")
    for other, told in (
        (data.valid.converted("bioes"), "valid: got tags in scheme bioes, wanted iob2"),
        (data.valid[:0], "valid: got no sentences"),
        (strange, "valid: got tags that the training set has not: B-MISC; the first in sentence 1, at the word 'Ada'"),
    ):
        with pytest.raises(ArgumentError, match=told):
            run(tmp_path / "run", valid=other)
    assert not (tmp_path / "run").exists()


def test_names_that_would_take_the_place_of_another_set_are_refused(tmp_path: Path) -> None:
    for tests, told in (({"train": made().test}, "called 'train'"), ({"a b": made().test, "a_b": made().test}, "a_b")):
        with pytest.raises(ArgumentError, match=told):
            run(tmp_path / "run", tests=tests)
    assert not (tmp_path / "run").exists()


def test_settings_that_contradict_are_refused_before_a_folder_becomes_a_run(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"crf_mode=\"paper\".*truncate"):
        run(tmp_path / "run", replace(SETTINGS, mixup="input", crf_mode="paper"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(ArgumentError, match="below which a run ends"):
        replace(SETTINGS, schedule="plateau", lr=1e-5)


def test_words_that_columns_cannot_hold_are_refused(tmp_path: Path) -> None:
    for word, tag in (("a\nb", "O"), ("a", "X Y")):
        wrong = TaggedSentences(sentences=((word, "c"),), tags=((tag, "O"),), scheme="none", name="x")
        with pytest.raises(ArgumentError, match=r"train\[0\].*line ends"):
            run(tmp_path / "run", train=wrong, valid=wrong)


def test_a_run_does_not_go_on_with_other_vectors_from_outside(tmp_path: Path) -> None:
    vectors = [
        {name: np.random.default_rng(seed).random((sum(map(len, part.sentences)), 2)).astype(np.float32)
         for name, part in (("train", made().train), ("valid", made().valid))}
        for seed in (0, 1)
    ]  # fmt: skip
    run(tmp_path / "run", context=vectors[0])
    with pytest.raises(RunFolderError, match=r"context\.(train|valid) was"):
        run(tmp_path / "run", replace(SETTINGS, epochs=3), context=vectors[1], resume=True)


def test_a_run_that_comes_to_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(DivergedError):
        run(tmp_path / "run", replace(SETTINGS, optimizer="sgd", lr=1e30, clip=None, epochs=20))


def test_a_run_goes_on_with_more_epochs_and_with_nothing_else_changed(tmp_path: Path) -> None:
    tests = {"new": made().test}
    longer = replace(SETTINGS, epochs=4)
    run(tmp_path / "run")
    raised = run(tmp_path / "run", longer, tests=tests, resume=True)
    at_once = run(tmp_path / "other", longer, tests=tests)
    assert replace(raised, folder=at_once.folder, seconds=at_once.seconds) == at_once
    before = (tmp_path / "run" / "config.json").read_bytes()
    for changed, told in (
        ({"settings": replace(longer, lr=0.5)}, r"training\.lr was"),
        ({"settings": replace(longer, mixup="input")}, r"training\.mixup was"),
        ({"settings": longer, "train": made().train[::-1]}, r"data\.train\.checksum"),
        ({"settings": SETTINGS}, "got 2 epochs, wanted at least the 4"),
    ):
        with pytest.raises(RunFolderError, match=told):
            run(tmp_path / "run", resume=True, **changed)
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_a_run_whose_last_epoch_was_planned_does_not_go_on_with_more(tmp_path: Path) -> None:
    settings = replace(SETTINGS, schedule="cosine")
    run(tmp_path / "run", settings)
    with pytest.raises(RunFolderError, match=r"training\.epochs was 2 and is now 4"):
        run(tmp_path / "run", replace(settings, epochs=4), resume=True)


def test_a_run_that_is_older_than_a_setting_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    told = json.loads(path.read_text())
    del told["training"]["crf_mode"], told["model"]["word_dropout"]
    path.write_text(json.dumps(told))
    assert run(tmp_path / "run", replace(SETTINGS, epochs=3), resume=True).epochs == 3


def test_folders_of_other_tasks_are_not_loaded(tmp_path: Path) -> None:
    run(tmp_path / "run", replace(SETTINGS, epochs=1))
    with pytest.raises(RunFolderError, match="got task 'tagger'"):
        load_classifier(tmp_path / "run")
    (tmp_path / "run" / "lexicon.json").write_text("{")
    with pytest.raises(RunFolderError, match="words, characters and tags as JSON"):
        load_tagger(tmp_path / "run")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("epochs", 0), ("batch", 0), ("bucket", 0), ("optimizer", "lbfgs"), ("schedule", "linear"), ("lr", -1.0)),
        *(("divide", 1.0), ("clip", 0), ("patience", 0), ("mixup", "cut"), ("pairing", "twice"), ("lengths", "pad")),
        *(("crf_mode", "free"), ("keep", "first"), ("seed", -1), ("precision", "half"), ("least_lr", -1.0)),
    ],
)
def test_settings_outside_their_domain_are_named(field: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"TaggerSettings\.{field}"):
        replace(SETTINGS, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "value"), [("alpha", -1.0), ("rho", 1.5)])
def test_coefficients_outside_their_domain_are_named(field: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=field):
        replace(SETTINGS, mixup="input", **{field: value})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def undisturbed(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return undisturbed_outcomes(forks, tmp_path_factory.mktemp("undisturbed"), KINDS)


def test_the_rules_act_in_these_runs(undisturbed: dict[str, Outcome]) -> None:
    """Otherwise the tests below would not see what a rule forgets."""
    for kind in KINDS:
        assert len({record["lr"] for record in undisturbed[kind][2][:-1]}) > 1, kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_writes_often_is_the_run_that_writes_never(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str
) -> None:
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


@pytest.mark.parametrize(
    ("kind", "kill"),
    [
        pytest.param(
            kind, kill, marks=() if (kind, kill) in {("tagger", 7), ("doubled tagger", 9)} else pytest.mark.slow
        )
        for kind in KINDS
        for kill in (*range(1, 10), 14)
    ],
)
def test_killed_in_the_middle_of_a_write_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str, kill: int
) -> None:
    assert forks.run(str(tmp_path / "run"), "--kind", kind, "--die-at", str(kill)) == -signal.SIGKILL
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


def test_killed_between_epochs_whose_rules_have_acted_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path
) -> None:
    for epoch in (2, 3):
        assert forks.run(str(tmp_path / "run"), "--kind", "tagger", "--die-after", str(epoch)) == -signal.SIGKILL
    assert forks.run(str(tmp_path / "run"), "--kind", "tagger") == 0
    assert outcome(tmp_path / "run") == undisturbed["tagger"]


@pytest.mark.gpu
@pytest.mark.parametrize("mixup", ["none", *SITES])
def test_a_tagger_is_trained_alike_on_an_accelerator_and_a_cpu(tmp_path: Path, mixup: str) -> None:
    settings = replace(SETTINGS, mixup=mixup)
    config = replace(SMALL, dropout=0.0, word_dropout=0.0)
    found = [run(tmp_path / device, settings, config, device=device).valid.loss for device in ("cpu", "cuda")]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_tags_of_another_scheme_are_not_compared() -> None:
    data = made()
    lexicon = Lexicon.of(data.train.sentences, tags=("O", "S-LOC"), scheme="bioes")
    with pytest.raises(ArgumentError, match=r'tags in scheme iob2, wanted bioes.*\.converted\("bioes"\)'):
        TagSet(lexicon, data.test)


@pytest.mark.usefixtures("as_users_have_it")
def test_what_is_no_set_of_tagged_sentences_is_named(tmp_path: Path) -> None:
    with pytest.raises(DtypeError, match="train: got list, wanted TaggedSentences"):
        run(tmp_path / "run", train=[])


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        run(tmp_path / name, replace(SETTINGS, epochs=1))
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other"))
    assert one == other
