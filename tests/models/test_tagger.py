"""Taggers: what their scores depend on, what they do not, and what mixing makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples
from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError
from statewise.layers.packing import Packing, pad
from statewise.mixup import InputMixup, Pairs, PreOutputMixup, ThroughTimeMixup
from statewise.models import Lexicon, Tagger, TaggerConfig
from statewise.models.encoded import Encoded, TokenBatch
from statewise.transforms import Pairing
from support import tolerance

TAGS = ("O", "B-PER", "I-PER")
SENTENCES = [
    ("Anna", "saw", "Otto", "Smith", "."),
    ("Otto", "saw", "Zürich", "."),
    ("it", "was", "Anna"),
    ("Anna",),
]
SMALL = TaggerConfig(hidden=5, words=4, characters=3, character_hidden=2, dropout=0.0, word_dropout=0.0)
CLOSE: dict[str, Any] = {**tolerance(torch.float64)}
SITES = ("input", "pre_output", "through_time")
EVERY_SITE = pytest.mark.parametrize("site", SITES)
EVERY_HEAD = pytest.mark.parametrize("head", ["crf", "softmax"])


def build(config: TaggerConfig = SMALL, *, seed: int = 0, **options: Any) -> Tagger:
    lexicon = Lexicon.of(SENTENCES[:1], tags=TAGS)
    made = config.build(lexicon, generator=torch.Generator().manual_seed(seed), **options)
    return made.double()


def whole(tagger: Tagger, sentences: Any = SENTENCES, context: Any = None) -> TokenBatch:
    encoded = Encoded(tagger.lexicon, sentences, context=context)
    return tagger.batch(encoded, np.arange(len(encoded)))


def some_tags(lengths: Tensor, seed: int = 0) -> Tensor:
    drawn = torch.randint(len(TAGS), (int(lengths.max()), len(lengths)), generator=torch.Generator().manual_seed(seed))
    return torch.where(torch.arange(len(drawn))[:, None] < lengths, drawn, -100)


def paired(site: str, coefficients: Tensor, lengths: Tensor, **options: Any) -> Pairs:
    layer = 0 if site == "through_time" else None
    return Pairs.of(coefficients, lengths=lengths, site=site, layer=layer, dtype=torch.float64, **options)


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, head="softmax", bidirectional=False, characters=0, projection=False),
        replace(SMALL, cell="gru", layers=2, noise="gaussian", gamma=0.3),
    ],
)
def test_every_tag_has_a_score_at_every_step(config: TaggerConfig) -> None:
    tagger = build(config)
    batch = whole(tagger)
    assert tagger(batch).shape == (5, 4, 3)
    assert tagger.states(batch).shape == (5, 4, 5 * (1 + config.bidirectional))
    assert tagger.decode(batch).shape == (5, 4)
    assert tagger.nll(batch, some_tags(batch.lengths)).shape == (4,)
    shares = tagger.eval().probabilities(batch)
    for sequence, length in enumerate(batch.lengths.tolist()):
        torch.testing.assert_close(shares[:length, sequence].sum(-1), torch.ones(length).double())


@EVERY_HEAD
@few_examples
@given(seed=st.integers(0, 2**31), order=st.permutations(range(4)))
def test_a_sentence_is_scored_as_if_it_were_alone(head: str, seed: int, order: list[int]) -> None:
    tagger = build(replace(SMALL, head=head), seed=seed)
    sentences = [SENTENCES[place] for place in order]
    together, tags = whole(tagger, sentences), some_tags(torch.tensor([len(one) for one in sentences]), seed)
    scores, nll, shares = tagger(together), tagger.nll(together, tags), tagger.probabilities(together)
    for at, sentence in enumerate(sentences):
        alone, length = whole(tagger, [sentence]), len(sentence)
        torch.testing.assert_close(scores[:length, at : at + 1], tagger(alone), **CLOSE)
        torch.testing.assert_close(nll[at : at + 1], tagger.nll(alone, tags[:length, at : at + 1]), **CLOSE)
        torch.testing.assert_close(shares[:length, at : at + 1], tagger.probabilities(alone), **CLOSE)


def test_each_distinct_word_is_spelt_once() -> None:
    tagger = build()
    batch = whole(tagger)
    distinct = {word for sentence in SENTENCES for word in sentence}
    assert batch.characters is not None
    assert int(batch.characters.batch_sizes[0]) == len(batch.rows) == len(distinct)
    assert len(batch.characters.data) == sum(map(len, distinct))
    features = tagger._features(batch)
    torch.testing.assert_close(features[0, 0], features[2, 2])  # Anna
    assert not torch.allclose(features[0, 0], features[0, 1])


def test_unknown_words_and_characters_are_read_as_such() -> None:
    tagger = build()
    rows = [tagger.lexicon.row(word) for word in ("Anna", "ANNA", "Zürich", "007")]
    assert rows[0] == rows[1] != 0
    assert rows[2:] == [0, 0]
    assert not tagger.words.weight[0].any()
    # Signs that were never seen are all alike.
    batch = whole(tagger, [("Ж", "Ω", "ЖΩ")])
    features = tagger._features(batch)[:, 0]
    torch.testing.assert_close(features[0], features[1])
    assert not torch.allclose(features[0], features[2])
    assert len(tagger.tag([("Ж", "Ω", "日本")])[0]) == 3


def test_what_lies_beyond_an_end_is_never_looked_at() -> None:
    tagger = build(context=2)
    tokens = sum(map(len, SENTENCES))
    vectors = np.random.default_rng(0).normal(size=(tokens, 2)).astype(np.float32)
    clean = whole(tagger, context=vectors)
    assert clean.context is not None
    beyond = torch.arange(5)[:, None, None] >= clean.lengths[:, None]
    spoilt = replace(clean, context=torch.where(beyond, torch.nan, clean.context))
    tags = some_tags(clean.lengths)
    for pairs in (
        None,
        *(paired(site, torch.rand(5, 4), clean.lengths, second=torch.arange(3, -1, -1)) for site in SITES),
    ):
        losses = []
        for batch in (clean, spoilt):
            tagger.zero_grad()
            loss = tagger.loss(batch, tags, pairs=pairs)
            loss.backward()
            losses.append(loss.item())
            assert all(one.grad is None or bool(one.grad.isfinite().all()) for one in tagger.parameters())
        assert losses[0] == losses[1]


@EVERY_HEAD
def test_every_parameter_has_a_gradient_and_given_vectors_have_none(head: str) -> None:
    config = replace(SMALL, head=head)
    lexicon = Lexicon.of(SENTENCES[:1], tags=TAGS)
    given_ones = config.build(lexicon, vectors=torch.randn(len(lexicon.words), 4))
    for tagger in (config.build(lexicon), given_ones):
        batch = whole(tagger)
        tagger.loss(batch, some_tags(batch.lengths)).backward()
        for name, parameter in tagger.named_parameters():
            if tagger is given_ones and name == "words.weight":
                assert parameter.grad is None
            else:
                assert parameter.grad is not None, name
                assert parameter.grad.any(), name
    tuned = replace(config, finetune=True).build(lexicon, vectors=torch.randn(len(lexicon.words), 4))
    assert tuned.words.weight.requires_grad


def test_dropout_drops_whole_words_and_whole_units(generator: torch.Generator) -> None:
    tagger = build(replace(SMALL, word_dropout=0.2, dropout=0.0, projection=False))
    ones = torch.ones(40, 50, 6, dtype=torch.float64)
    words = tagger._entering(ones, generator)
    assert set(words.unique().tolist()) == {0.0, 1.0}  # not scaled
    assert bool((words == words[..., :1]).all())
    assert words.mean().item() == pytest.approx(0.8, abs=0.05)
    locked = build(replace(SMALL, dropout=0.5))._dropped(ones, generator)
    assert set(locked.unique().tolist()) == {0.0, 2.0}
    assert bool((locked == locked[:1]).all())
    assert locked.mean().item() == pytest.approx(1.0, abs=0.25)


def test_at_rest_nothing_is_drawn_and_no_mixing_is_left(generator: torch.Generator) -> None:
    noisy = build(replace(SMALL, dropout=0.5, word_dropout=0.3, noise="gaussian", gamma=1.0)).eval()
    plain = build(SMALL).eval()
    plain.load_state_dict(noisy.state_dict())
    batch, before = whole(noisy), generator.get_state()
    torch.testing.assert_close(noisy(batch, generator=generator), plain(batch))
    assert torch.equal(generator.get_state(), before)


@EVERY_SITE
def test_mixed_with_coefficient_one_a_pair_is_its_first_member(site: str) -> None:
    tagger = build()
    batch = whole(tagger)
    # Second members are no longer than the first: else the pair would go on with them.
    first, second = torch.tensor([0, 0, 1]), torch.tensor([1, 3, 2])
    pairs = paired(site, torch.ones(5, 3), batch.lengths, first=first, second=second)
    mixed, plain = tagger(batch, pairs=pairs), tagger(batch)
    for pair, member in enumerate(first.tolist()):
        length = int(batch.lengths[member])
        torch.testing.assert_close(mixed[:length, pair], plain[:length, member], **CLOSE)
    alone = Pairs.alone(batch.lengths, site=site, layer=0 if site == "through_time" else None, dtype=torch.float64)
    tags = some_tags(batch.lengths)
    torch.testing.assert_close(tagger.loss(batch, tags, pairs=alone), tagger.nll(batch, tags).mean(), **CLOSE)


@EVERY_HEAD
@EVERY_SITE
@few_examples
@given(seed=st.integers(0, 2**31), policy=st.sampled_from(["handover", "zero", "truncate"]))
def test_it_does_not_matter_who_is_first(site: str, head: str, seed: int, policy: str) -> None:
    tagger = build(replace(SMALL, head=head), seed=seed)
    batch = whole(tagger)
    drawn = torch.rand(1, 4, generator=torch.Generator().manual_seed(seed)).expand(5, 4)
    pairs = paired(site, drawn, batch.lengths, second=torch.tensor([2, 3, 1, 0]), policy=policy)
    tags = some_tags(batch.lengths, seed)
    one, other = (tagger.loss(batch, tags, pairs=each) for each in (pairs, pairs.exchanged()))
    torch.testing.assert_close(one, other, **CLOSE)


def test_a_chain_without_scores_of_its_own_is_a_softmax_at_each_step() -> None:
    chained = build(SMALL)
    free = build(replace(SMALL, head="softmax"))
    assert chained.crf is not None
    state = {name: value for name, value in chained.state_dict().items() if not name.startswith("crf")}
    free.load_state_dict(state)
    with torch.no_grad():
        for parameter in chained.crf.parameters():
            parameter.zero_()
    batch = whole(free)
    tags = some_tags(batch.lengths)
    torch.testing.assert_close(chained.nll(batch, tags), free.nll(batch, tags), **CLOSE)
    for sequence, length in enumerate(batch.lengths.tolist()):
        one, other = (each.decode(batch)[:length, sequence] for each in (chained, free))
        assert torch.equal(one, other)
        one, other = (each.probabilities(batch)[:length, sequence] for each in (chained, free))
        torch.testing.assert_close(one, other, **CLOSE)


def test_tags_come_in_the_order_of_the_sentences_and_the_mode_is_left_as_it_was() -> None:
    tagger = build(replace(SMALL, dropout=0.5))
    sentences = SENTENCES * 3
    found = tagger.tag(sentences, batch=2)
    assert tagger.training
    assert [len(tags) for tags in found] == [len(sentence) for sentence in sentences]
    assert found == [tagger.tag([sentence])[0] for sentence in sentences]
    assert tagger.tag([]) == []


def test_more_words_are_known_by_their_vectors_and_nothing_else_changes() -> None:
    lexicon, rows = Lexicon.of(SENTENCES[:1], tags=TAGS), torch.randn(5, 4)
    tagger = SMALL.build(lexicon, vectors=rows).eval()
    before = torch.get_rng_state()
    more = tagger.extended(("Zürich", "saw"), torch.stack((torch.ones(4), torch.zeros(4))))
    assert torch.equal(torch.get_rng_state(), before)
    assert more.lexicon.words == (*lexicon.words, "Zürich")
    torch.testing.assert_close(more.words.weight[lexicon.row("saw")], tagger.words.weight[lexicon.row("saw")])
    torch.testing.assert_close(more.words.weight[-1], torch.ones(4))
    assert not more.training
    assert not more.words.weight.requires_grad
    assert torch.equal(more(whole(more, SENTENCES[:1])), tagger(whole(tagger, SENTENCES[:1])))
    assert not torch.allclose(more(whole(more))[:, 1], tagger(whole(tagger))[:, 1])
    with pytest.raises(ShapeError, match=r"got \(1, 3\), wanted \(1, 4\)"):
        tagger.extended(("x",), torch.zeros(1, 3))
    with pytest.raises(ArgumentError, match="whose word vectors are its own"):
        SMALL.build(lexicon).extended(("x",), torch.zeros(1, 4))


def test_vectors_of_another_shape_are_refused() -> None:
    vectors = np.zeros((13, 3), dtype=np.float32)
    with pytest.raises(ShapeError, match="got vectors of width 3, wanted vectors of width 2"):
        whole(build(context=2), context=vectors)
    with pytest.raises(ShapeError, match="got none, wanted vectors of width 2"):
        whole(build(context=2))
    with pytest.raises(ShapeError, match="wanted none"):
        whole(build(), context=vectors)
    with pytest.raises(ShapeError, match=r"wanted \(13, width\), one row a token"):
        whole(build(context=3), context=vectors[:5])
    with pytest.raises(ShapeError, match="a row for each word of the lexicon"):
        SMALL.build(Lexicon.of(SENTENCES, tags=TAGS), vectors=torch.zeros(2, 4))


def test_a_wrong_tag_and_an_empty_sentence_are_named() -> None:
    lexicon = build().lexicon
    assert lexicon.numbers(["I-PER", "O"]) == [2, 0]
    with pytest.raises(ArgumentError, match="valid: got the tag 'B-LOC', wanted one of O, B-PER, I-PER"):
        lexicon.numbers(["O", "B-LOC"], where="valid")
    with pytest.raises(LengthError, match=r"test\[1\]: got an empty sentence"):
        Encoded(lexicon, [("a",), ()], where="test")
    with pytest.raises(ArgumentError, match=r"sentences\[1\]: got an empty word"):
        Encoded(lexicon, [("a",), ("b", "")])


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ({"tags": ("O",)}, "at least two tags"),
        ({"tags": ("O", "O")}, "'O' more than once"),
        ({"tags": TAGS, "words": ("a", "")}, "not empty"),
    ],
)
def test_a_lexicon_has_each_entry_once(entries: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        Lexicon(**entries)


@pytest.mark.parametrize(
    ("field", "value"),
    [("cell", "tree"), ("head", "hmm"), ("hidden", 0), ("characters", -1), ("dropout", 1.5), ("noise", "gaussian")],
)
def test_a_config_outside_its_domain_is_named(field: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=r"TaggerConfig\."):
        replace(SMALL, **{field: value})  # type: ignore[arg-type]


@EVERY_SITE
def test_nothing_is_mixed_at_rest(site: str) -> None:
    tagger = build().eval()
    batch = whole(tagger)
    pairs = paired(site, torch.full((5, 4), 0.5).double(), batch.lengths, second=torch.arange(4).flip(0))
    with pytest.raises(ArgumentError, match=r"pairs in eval mode.*call \.train\(\) first"):
        tagger(batch, pairs=pairs)


class TestWhereSentencesAreMixed:
    """Features before words are dropped and projected; states after units are dropped; those that end are projected."""

    COEFFICIENTS = torch.full((5, 4), 0.3, dtype=torch.float64)
    PARTNERS = torch.tensor([3, 2, 1, 0])

    def pairs(self, site: str, batch: TokenBatch) -> Pairs:
        return paired(site, self.COEFFICIENTS, batch.lengths, second=self.PARTNERS, policy="zero")

    def projecting(self, **options: Any) -> Tagger:
        tagger = build(replace(SMALL, head="softmax", **options)).train()
        assert tagger.projection is not None
        torch.nn.init.normal_(tagger.projection.bias, generator=torch.Generator().manual_seed(0))
        return tagger

    def test_of_states_before_the_output_those_of_each_sentence_are_dropped(self) -> None:
        tagger = build(replace(SMALL, dropout=0.5)).train()
        batch = whole(tagger)
        pairs = self.pairs("pre_output", batch)
        mixed, alone = (
            tagger.states(batch, pairs=each, generator=torch.Generator().manual_seed(1)) for each in (pairs, None)
        )
        torch.testing.assert_close(mixed, pairs.mix(alone), **CLOSE)

    def test_mixed_words_are_dropped_whole(self) -> None:
        tagger = build(replace(SMALL, word_dropout=0.5, projection=False)).train()
        batch, read = whole(tagger), []
        tagger.layer.register_forward_pre_hook(lambda layer, given: read.append(given[0].data))
        pairs = self.pairs("input", batch)
        tagger.states(batch, pairs=pairs, generator=torch.Generator().manual_seed(1))
        whole_words = Packing.of(pairs.lengths, device="cpu").rows(pairs.mix(tagger._features(batch)))
        dropped = (read[0] == 0).all(1)
        assert 0 < int(dropped.sum()) < len(dropped)
        torch.testing.assert_close(read[0], torch.where(dropped[:, None], 0.0, whole_words), **CLOSE)

    def test_mixed_words_are_projected_not_projections_mixed(self) -> None:
        tagger = self.projecting()
        batch = whole(tagger)
        pairs = self.pairs("input", batch)
        projected = tagger.projection(pairs.mix(tagger._features(batch)))  # type: ignore[misc]
        packing = Packing.of(pairs.lengths, device="cpu")
        expected = pad(tagger.layer(packing.pack(projected))[0])
        torch.testing.assert_close(tagger.states(batch, pairs=pairs), expected, **CLOSE)

    def test_through_time_nothing_is_projected_too(self) -> None:
        tagger = self.projecting(bidirectional=False)
        batch = whole(tagger)
        projected = tagger.projection(tagger._features(batch))  # type: ignore[misc]
        states, _ = tagger.layer(projected, pairing=Pairing(self.PARTNERS, self.COEFFICIENTS, layer=0))
        found = tagger.states(batch, pairs=self.pairs("through_time", batch))
        for pair, (own, other) in enumerate(zip(batch.lengths, batch.lengths[self.PARTNERS], strict=True)):
            length = max(int(own), int(other))
            torch.testing.assert_close(found[:length, pair], states[:length, pair], **CLOSE)


@pytest.mark.parametrize("policy", ["handover", "zero"])
@pytest.mark.parametrize("layer", [0, 1])
def test_a_pair_that_is_mixed_in_any_layer_does_not_depend_on_the_others(layer: int, policy: str) -> None:
    tagger = build(replace(SMALL, layers=2, bidirectional=True, head="softmax")).train()
    options: dict[str, Any] = {"site": "through_time", "layer": layer, "policy": policy, "dtype": torch.float64}
    batch = whole(tagger)  # the second sentence is also in a pair with the first, which is longer
    coefficients = torch.rand(5, 4, generator=torch.Generator().manual_seed(0)).double()
    pairs = Pairs.of(coefficients, second=torch.tensor([1, 2, 1, 0]), lengths=batch.lengths, **options)
    few = whole(tagger, SENTENCES[1:3])
    alone = Pairs.of(coefficients[:, 1:3], second=torch.tensor([1, 0]), lengths=few.lengths, **options)
    one, other = tagger(batch, pairs=pairs)[:4, 1:3], tagger(few, pairs=alone)
    torch.testing.assert_close(one, other, **CLOSE)


def test_a_step_without_a_tag_is_refused_by_a_chain() -> None:
    tagger = build()
    batch = whole(tagger)
    tags = some_tags(batch.lengths)
    tags[1, 0] = -100
    with pytest.raises(ArgumentError):
        tagger.nll(batch, tags)


def test_a_chain_that_is_constrained_gives_tags_of_its_scheme() -> None:
    lexicon = Lexicon.of(SENTENCES, tags=TAGS, scheme="iob2")
    tagger = replace(SMALL, constrained=True).build(lexicon, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        tagger.head.bias.copy_(torch.tensor([0.0, 0.0, 9.0]))  # it would say I-PER everywhere
    for tags in tagger.tag(SENTENCES):
        before = ("O", *tags)
        assert all(own != "I-PER" or last != "O" for last, own in zip(before, tags, strict=False))


def test_texts_are_not_taken_for_sentences() -> None:
    for wrong in ("Anna saw", ["Anna saw"]):
        with pytest.raises(ArgumentError, match=r"text\.split\(\)"):
            build().tag(wrong)


@EVERY_HEAD
def test_logarithms_of_probabilities_are_numbers_where_probabilities_are_zero(head: str) -> None:
    tagger = build(replace(SMALL, head=head)).float().eval()
    with torch.no_grad():
        tagger.head.bias.copy_(torch.tensor([0.0, 200.0, 0.0]))
    batch = whole(tagger)
    assert bool(tagger.log_probabilities(batch)[0].isfinite().all())
    assert not bool(tagger.probabilities(batch)[0].all())


def test_vectors_from_outside_that_are_not_finite_are_named() -> None:
    context = np.zeros((13, 2))
    context[3, 1] = np.nan
    with pytest.raises(NonFiniteError, match=r"context\[3\]"):
        Encoded(build(context=2).lexicon, SENTENCES, context=context)


def test_sentences_are_read_as_a_batch_with_or_without_vectors_from_outside() -> None:
    tagger = build()
    torch.testing.assert_close(tagger(tagger.read(SENTENCES)), tagger(whole(tagger)), rtol=0, atol=0)
    vectors = np.ones((sum(map(len, SENTENCES)), 2), dtype=np.float32)
    wide = build(context=2)
    assert wide(wide.read(SENTENCES, context=vectors)).shape == (5, 4, 3)
    with pytest.raises(ShapeError, match="got none, wanted vectors of width 2"):
        wide.read(SENTENCES)


@pytest.mark.usefixtures("as_users_have_it")
def test_what_is_no_word_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"sentences\[1\]: got None, wanted words of some characters"):
        build().tag([["Anna"], ["Anna", None]])  # type: ignore[list-item]


def test_pairs_of_another_batch_are_refused() -> None:
    lexicon = Lexicon.of([["a", "b", "c"]], tags=("O", "X"))
    tagger = TaggerConfig(hidden=4, characters=0).build(lexicon).train()
    batch = tagger.batch(Encoded(lexicon, [["a", "b"], ["c"], ["a", "b", "c"]]), np.arange(3))
    for mixup in (InputMixup(), PreOutputMixup(), ThroughTimeMixup()):
        assert tagger(batch, pairs=mixup.draw(batch.lengths)).shape[:2] == (3, 3)
        for others in ([2, 1], [2, 1, 2]):
            with pytest.raises(ShapeError, match="wanted pairs that were drawn for this batch"):
                tagger(batch, pairs=mixup.draw(others))
