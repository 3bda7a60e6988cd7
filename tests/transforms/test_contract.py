"""Every transform keeps the contract of transforms."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.passes import Case, as_argument, assert_close, assert_same, cases, few_examples, run, some_examples
from contracts.transforms import LAYERS, StrengthContract, TransformContract, build, draw, sizes_of
from statewise import (
    Centroids,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    Pairing,
    RecurrentDropout,
    ThroughTimeMix,
    Transform,
    Zoneout,
)
from statewise.transforms import Place, Sizes
from statewise.transforms.centroids import SIMILARITIES, TRANSITIONS
from statewise.transforms.laws import LAWS
from statewise.transforms.noise import MODES

Settings = st.SearchStrategy[dict[str, Any]]
shares = st.floats(0.2, 0.7)


def some(**settings: st.SearchStrategy[Any]) -> Settings:
    return st.fixed_dictionaries(settings)


class TestNoise(StrengthContract):
    kind = Noise

    def settings(self) -> Settings:
        modes, placements = st.sampled_from(MODES), st.sampled_from(["recurrent", "outputs", "last"])
        return some(law=st.sampled_from(list(LAWS)), gamma=shares, mode=modes, placement=placements)

    def silent(self) -> list[dict[str, Any]]:
        none = {law: 1.0 if law == "bernoulli" else 0.0 for law in LAWS}
        return [{"law": law, "gamma": gamma, "mode": mode} for law, gamma in none.items() for mode in MODES]

    def shapes(self, transform: Noise, sizes: Sizes) -> list[tuple[int, ...]]:
        return [(sizes.steps, sizes.batch, sizes.hidden)]

    @some_examples
    @given(case=cases(layers=2), placement=st.sampled_from(["outputs", "last"]), mode=st.sampled_from(MODES))
    def test_noise_on_the_outputs_leaves_the_returned_state_clean(self, case: Case, placement: str, mode: str) -> None:
        """What is fed back and returned as the state is the plain layer's; only what leaves the layer is disturbed."""
        noise = Noise("gaussian", 0.5, placement=placement, mode=mode)
        single = dataclasses.replace(case, layers=1)
        layer, plain = build("LSTM", single, (noise,)), build("LSTM", single)
        draws = layer.draw(single.arrange(single.leaves(has_memory=True)[0]), generator=case.generator("draws"))
        disturbed, clean = run(layer, single, draws=draws), run(plain, single)
        assert torch.equal(disturbed.values["final state"], clean.values["final state"])
        assert torch.equal(disturbed.values["final memory"], clean.values["final memory"])
        eps = draws.tensors[0, 0, 0][0]
        output = clean.values["output"]
        expected = output * eps if mode == "multiplicative" else output + eps
        assert_close(disturbed.values["output"], expected.masked_fill(case.padding.unsqueeze(2), 0.0), "output")

    def test_noise_on_the_last_output_leaves_the_layers_below_clean(self, seed: int) -> None:
        case = Case(layers=3, seed=seed)
        noise = Noise("gaussian", 0.5, placement="last")
        disturbed, clean = run(build("LSTM", case, (noise,)), case), run(build("LSTM", case), case)
        assert torch.equal(disturbed.values["final state"], clean.values["final state"])
        assert not torch.equal(disturbed.values["output"], clean.values["output"])

    def test_recurrent_noise_is_in_the_returned_state_too(self, seed: int) -> None:
        case = Case(seed=seed)
        noise = Noise("gaussian", 0.5, placement="recurrent")
        layer = build("LSTM", case, (noise,))
        disturbed = run(layer, case, collect=("states",))
        assert torch.equal(disturbed.values["final state"][0], disturbed.values["output"][-1])
        assert torch.equal(disturbed.collected.states[0], disturbed.values["output"])
        assert not torch.equal(disturbed.values["final state"], run(build("LSTM", case), case).values["final state"])

    @pytest.mark.parametrize(("name", "place"), [("LSTM", Place.STATE), ("GRU", Place.OUTPUT), ("tanh", Place.STATE)])
    def test_its_own_placement_spares_cells_that_pass_their_state_on(self, name: str, place: Place) -> None:
        assert build(name, Case(), (Noise("gaussian", 0.5),)).transforms[0].place is place


class TestZoneout(StrengthContract):
    kind = Zoneout

    def settings(self) -> Settings:
        return some(p=shares, memory=st.just(0.0) | shares)

    def silent(self) -> list[dict[str, Any]]:
        return [{"p": 0.0}]

    def shapes(self, transform: Zoneout, sizes: Sizes) -> list[tuple[int, ...]]:
        return [(sizes.steps, sizes.batch, sizes.hidden)] * 2

    def off_in_eval(self, transform: Zoneout) -> bool:
        return False

    def varies(self, transform: Zoneout) -> bool:
        return transform.memory > 0

    def test_in_eval_mode_the_mask_is_its_mean(self, seed: int) -> None:
        """``h_t = p h_{t-1} + (1 - p) u_t``, and the same for the memory."""
        case = Case(seed=seed)
        layer = build("LSTM", case, (Zoneout(0.3, memory=0.6),)).eval()
        x, (h, c) = case.leaves(has_memory=True)
        expected = []
        h, c = h[0], c[0]
        for step in x:
            z = step @ layer.weight_ih_l0.T + layer.bias_ih_l0 + h @ layer.weight_hh_l0.T + layer.bias_hh_l0
            i, f, g, o = z.chunk(4, dim=1)
            new = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = 0.3 * h + 0.7 * o.sigmoid() * new.tanh()
            c = 0.6 * c + 0.4 * new
            expected.append(h)
        done = run(layer, case)
        assert_close(done.values["output"], torch.stack(expected), "output")
        assert_close(done.values["final memory"][0], c, "memory")


class TestCentroids(TransformContract):
    kind = Centroids

    def settings(self) -> Settings:
        return some(
            k=st.integers(2, 6),
            temperature=st.floats(0.3, 2.0),
            similarity=st.sampled_from(SIMILARITIES),
            transition=st.sampled_from(TRANSITIONS),
            noise=st.floats(0.3, 2.0),
            relaxation=st.floats(0.3, 2.0),
        )

    def shapes(self, transform: Centroids, sizes: Sizes) -> list[tuple[int, ...]]:
        random = transform.transition in ("sample", "gumbel_hard", "noisy")
        return [(sizes.steps, sizes.batch, transform.k)] if random else []

    def off_in_eval(self, transform: Centroids) -> bool:
        return False

    def random_in_eval(self, transform: Centroids) -> bool:
        return transform.transition == "sample"

    @pytest.mark.parametrize("similarity", SIMILARITIES)
    @few_examples
    @given(case=cases(), name=st.sampled_from(LAYERS), k=st.integers(1, 6))
    def test_as_the_temperature_falls_the_mixture_becomes_the_argmax(
        self, similarity: str, case: Case, name: str, k: int
    ) -> None:
        settings: list[dict[str, Any]] = [{"temperature": 1e-12}, {"transition": "argmax"}, {"transition": "st_argmax"}]
        done = [
            run(build(name, case, (Centroids(k, similarity=similarity, **options),)), case).values
            for options in settings
        ]
        for value in ("output", "final state"):
            assert_close(done[0][value], done[1][value], value)
            assert torch.equal(done[1][value], done[2][value])

    @pytest.mark.parametrize("transition", TRANSITIONS)
    @few_examples
    @given(case=cases(), name=st.sampled_from(LAYERS))
    def test_a_single_centroid_is_the_only_state(self, transition: str, case: Case, name: str) -> None:
        layer = build(name, case, (Centroids(1, transition=transition),))
        done = run(layer, case, collect=("states", "probabilities"))
        only = torch.cat([getattr(layer, f"centroids_l0{end}") for end in ("", "_reverse")[: case.directions]], dim=1)
        states = done.collected.states[0].reshape(-1, only.shape[1])
        running = states[states.any(1)]
        assert_close(running, only.expand_as(running), "state")

    @pytest.mark.parametrize("similarity", SIMILARITIES)
    def test_noisy_without_noise_is_the_mixture(self, similarity: str, seed: int) -> None:
        case = Case(layers=2, lengths=(4, 2, 3), seed=seed)
        without = Centroids(3, similarity=similarity, transition="noisy", noise=0.0)
        noisy, mixture = (
            run(build("GRU", case, (transform,)), case) for transform in (without, Centroids(3, similarity=similarity))
        )
        assert_same(noisy, mixture, exactly=True)

    @pytest.mark.parametrize("transition", ["noisy", "gumbel_hard"])
    def test_in_eval_mode_the_noisy_transitions_run_without_noise(self, transition: str, seed: int) -> None:
        case = Case(layers=2, lengths=(4, 2, 3), seed=seed)
        calm = {"noisy": "mixture", "gumbel_hard": "argmax"}[transition]
        first, second = (
            run(build("LSTM", case, (Centroids(3, transition=word),)).eval(), case) for word in (transition, calm)
        )
        assert torch.equal(first.values["output"], second.values["output"])

    def test_hard_transitions_give_centroids_themselves(self, seed: int) -> None:
        case = Case(seed=seed)
        for transition in ("sample", "argmax", "st_argmax", "gumbel_hard"):
            layer: Any = build("GRU", case, (Centroids(4, transition=transition),))
            output = run(layer, case).values["output"].flatten(0, 1)
            assert (output.unsqueeze(1) == layer.centroids_l0).all(2).any(1).all()


class DropoutContract(StrengthContract):
    locked, before = False, False

    def settings(self) -> Settings:
        return some(p=shares)

    def silent(self) -> list[dict[str, Any]]:
        return [{"p": 0.0}]

    def shapes(self, transform: Any, sizes: Sizes) -> list[tuple[int, ...]]:
        return [(1 if self.locked else sizes.steps, sizes.batch, sizes.input if self.before else sizes.hidden)]

    @some_examples
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def test_masks_are_zero_or_the_inverse_of_what_is_kept(self, data: st.DataObject, seed: int) -> None:
        transform = self.make(data)
        sizes = sizes_of(Case(steps=30, batch=20, inputs=20, hidden=20))
        for mask in (mask for mask in draw(transform, sizes, seed) or () if mask.numel()):
            share = (mask == 0).double().mean()
            kept = 1 / mask.max()
            assert set(mask.unique().tolist()) == {0.0, float(mask.max())}
            # Five standard errors of a share of at least 400 numbers.
            assert abs(float(share) - (1 - float(kept))) < 5 * (0.25 / mask.numel()) ** 0.5


class OutputDropoutContract(DropoutContract):
    def test_the_returned_state_is_not_dropped(self, seed: int) -> None:
        """What is dropped on its way out is not fed back."""
        case = Case(seed=seed, hidden=12)
        dropped, clean = run(build("LSTM", case, (self.kind(0.5),)), case), run(build("LSTM", case), case)
        assert torch.equal(dropped.values["final state"], clean.values["final state"])
        assert not torch.equal(dropped.values["output"], clean.values["output"])


class TestInputDropout(DropoutContract):
    kind, before = InputDropout, True


class TestLockedInputDropout(DropoutContract):
    kind, before, locked = LockedInputDropout, True, True


class TestOutputDropout(OutputDropoutContract):
    kind = OutputDropout


class TestLockedDropout(OutputDropoutContract):
    kind, locked = LockedDropout, True


class TestRecurrentDropout(DropoutContract):
    kind = RecurrentDropout

    def settings(self) -> Settings:
        words, either = st.sampled_from(["input", "projection"]), st.booleans()
        return some(p=shares, input_p=st.just(0.0) | shares, mask_on=words, share_gates=either, locked=either)

    def shapes(self, transform: RecurrentDropout, sizes: Sizes) -> list[tuple[int, ...]]:
        steps, gates = 1 if transform.locked else sizes.steps, 1 if transform.share_gates else sizes.blocks
        width = sizes.input if transform.mask_on == "input" else sizes.hidden
        return [
            (steps, sizes.batch, gates * width * (transform.input_p > 0)),
            (steps, sizes.batch, gates * sizes.hidden),
        ]

    def test_the_mask_of_one_term_does_not_move_when_the_other_is_switched_on(self, seed: int) -> None:
        sizes = sizes_of(Case(hidden=9))
        alone, both = (draw(RecurrentDropout(0.3, input_p=p), sizes, seed) for p in (0.0, 0.4))
        assert alone is not None
        assert both is not None
        assert torch.equal(alone[1], both[1])

    def test_the_masks_of_the_two_terms_are_independent(self, seed: int) -> None:
        masks = draw(RecurrentDropout(0.5, input_p=0.5), sizes_of(Case(inputs=20, hidden=20)), seed)
        assert masks is not None
        assert not torch.equal(*masks)


class TestThroughTimeMix(StrengthContract):
    kind = ThroughTimeMix

    def settings(self) -> Settings:
        return st.just({})

    def shapes(self, transform: ThroughTimeMix, sizes: Sizes) -> None:
        return None

    def options(self, case: Case) -> dict[str, Any]:
        """Everybody with the next one."""
        partner = (torch.arange(case.batch) + 1) % case.batch
        return {"pairing": Pairing(partner, torch.full((case.batch,), 0.6, dtype=case.dtype))}

    def legal(self, chain: list[Transform]) -> list[Transform]:
        return sorted(chain, key=lambda transform: not isinstance(transform, ThroughTimeMix))

    def silent(self) -> list[dict[str, Any]]:
        """Without a pairing nothing is mixed."""
        return [{}]

    @few_examples
    @given(case=cases(), name=st.sampled_from(LAYERS))
    def test_a_coefficient_of_one_mixes_nothing(self, case: Case, name: str) -> None:
        pairing, lengths = case.pairing(), torch.tensor(case.true_lengths)
        pairing = Pairing(pairing.partner, torch.ones_like(pairing.coefficients), lengths=lengths)
        self._equals_plain(case, name, pairing, exactly=True)

    @few_examples
    @given(case=cases(), name=st.sampled_from(LAYERS))
    def test_a_row_paired_with_itself_mixes_nothing(self, case: Case, name: str) -> None:
        self._equals_plain(case, name, Pairing(torch.arange(case.batch), case.pairing().coefficients), exactly=False)

    @staticmethod
    def _equals_plain(case: Case, name: str, pairing: Pairing, *, exactly: bool) -> None:
        mixed, plain = build(name, case, (ThroughTimeMix(),)), build(name, case)
        assert_same(run(mixed, case, form="loop", pairing=pairing), run(plain, case, form="loop"), exactly=exactly)

    @few_examples
    @given(case=cases(layers=1, bidirectional=False, batched=True, batch_first=False), name=st.sampled_from(LAYERS))
    def test_the_mixed_state_is_the_formula_of_the_paper(self, case: Case, name: str) -> None:
        """``s_t = lambda f(x_t, s_{t-1}) + (1 - lambda) f(x'_t, s_{t-1})``, by single steps of the plain layer.

        A sequence that has ended is zero, a pair lasts as long as its longer member, and it starts from the mixture of
        the members' states.
        """
        case = dataclasses.replace(case, given_state=True)
        plain, pairing = build(name, case), case.pairing()
        x, state = case.leaves(has_memory=plain.cell.has_memory)
        x, weight = x.masked_fill(case.padding.unsqueeze(2), 0.0), pairing.coefficients[0].unsqueeze(1)
        state = tuple(weight * part + (1 - weight) * part[:, pairing.partner] for part in state)
        seen = []
        for now, weight in zip(x, pairing.coefficients.unsqueeze(2), strict=True):
            ends = [plain(member.unsqueeze(0), as_argument(state))[1] for member in (now, now[pairing.partner])]
            both = zip(*(end if isinstance(end, tuple) else (end,) for end in ends), strict=True)
            state = tuple(weight * one + (1 - weight) * other for one, other in both)
            seen.append(state)
        done = run(build(name, case, (ThroughTimeMix(),)), case, pairing=pairing).values
        lengths = torch.tensor(case.true_lengths)
        for row, length in enumerate(torch.maximum(lengths, lengths[pairing.partner]).tolist()):
            expected = torch.stack([states[0][0, row] for states in seen[:length]])
            assert_close(done["output"][:length, row], expected, "output")
            for part, key in zip(seen[length - 1], ("final state", "final memory"), strict=False):
                assert_close(done[key][0, row], part[0, row], key)
