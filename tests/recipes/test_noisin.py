"""The recipes ask for what the paper did."""

from __future__ import annotations

import pytest

from statewise.errors import ArgumentError
from statewise.recipes import RECIPES, Request, find_recipe
from statewise.recipes.cases import Adaptation, Case, Step
from statewise.recipes.running import parameters


def steps_of(name: str, **asked: object) -> list[Step]:
    recipe = find_recipe(name)
    return list(recipe.steps(recipe.complete(Request(**asked))))  # type: ignore[arg-type]


def case_of(name: str, **asked: object) -> Case:
    case = steps_of(name, **asked)[0]
    assert isinstance(case, Case)
    return case


@pytest.mark.parametrize(("size", "count"), [("medium", 13_280_400), ("large", 51_034_000)])
def test_the_lstms_of_table_3_have_the_parameters_of_the_paper(size: str, count: int) -> None:
    assert parameters(case_of("noisin/table3", rows=("gaussian",), sizes=(size,)).config, 10_000) == count


def test_a_row_has_the_noise_the_dropout_and_the_training_of_the_paper() -> None:
    case = case_of("noisin/table3", rows=("dropout+beta",))
    config, settings = case.config, case.settings
    assert (config.noise, config.gamma, config.alpha, config.placement) == ("beta", 0.20, 2.0, "recurrent")
    rates = (config.input_dropout, config.hidden_dropout, config.recurrent_dropout, config.output_dropout)
    assert rates == (0.5, 0.5, 0.4, 0.5)
    assert not config.locked
    assert config.tied
    assert config.zero_biases
    assert (settings.lr, settings.batch, settings.bptt, settings.clip, settings.divide) == (30.0, 80, 35, 0.25, 1.2)
    assert (settings.epochs, settings.averaging, settings.random_bptt, settings.seed) == (
        200,
        "non-monotone",
        False,
        1111,
    )
    plain = case_of("noisin/table3", rows=("none",)).config
    assert plain.noise is None
    assert plain.input_dropout == 0.0


def test_gamma_depends_on_table_and_size() -> None:
    found = [
        case_of(name, rows=("bernoulli",), sizes=(size,)).config.gamma
        for name in ("noisin/table3", "noisin/table4")
        for size in ("medium", "large")
    ]
    assert found == [0.41, 0.33, 0.54, 0.41]


def test_the_mixture_of_table_5_has_the_parameters_and_the_settings_of_its_code() -> None:
    trained, tuned, adapted = steps_of("noisin/table5")
    assert isinstance(trained, Case)
    assert isinstance(tuned, Case)
    assert isinstance(adapted, Adaptation)
    assert parameters(trained.config, 10_000) == 21_500_620
    config, settings = trained.config, trained.settings
    assert (config.noise, config.gamma, config.alpha, config.placement) == ("gamma", 0.4, 2.0, "outputs")
    assert (config.weight_drop, config.embedding_dropout, config.latent_dropout) == (0.5, 0.1, 0.29)
    assert (settings.lr, settings.batch, settings.bptt, settings.random_bptt) == (20.0, 12, 70, True)
    assert (settings.weight_decay, settings.divide, settings.epochs) == (1.2e-6, None, 400)
    assert (tuned.settings.lr, tuned.settings.averaging, tuned.after) == (25.0, "always", trained)
    assert (tuned.settings.stop_non_monotone, tuned.settings.non_monotone, tuned.settings.patience) == (True, 5, None)
    assert not settings.stop_non_monotone
    assert (adapted.lr, adapted.decay, adapted.epsilon, adapted.convention) == (0.002, 0.075, 0.001, "old")
    assert adapted.after is tuned


def test_fine_tuning_can_be_left_out() -> None:
    trained, adapted = steps_of("noisin/table5", finetune=0, convention="new")
    assert isinstance(adapted, Adaptation)
    assert adapted.after is trained
    assert adapted.lr == pytest.approx(0.002 / 1859**0.5, rel=0.01)
    assert adapted.decay == pytest.approx(0.075 / 17, rel=0.01)
    assert adapted.epsilon == pytest.approx(0.001 / 1859**0.5, rel=0.01)


def test_the_networks_of_figure_1_differ_in_their_noise_only() -> None:
    clean, noisy = steps_of("noisin/figure1")
    assert isinstance(clean, Case)
    assert isinstance(noisy, Case)
    assert clean.settings == noisy.settings
    assert (clean.config.cell, clean.config.nonlinearity, clean.config.hidden) == ("rnn", "sigmoid", (256,))
    assert (noisy.config.noise_mode, noisy.config.gamma) == ("additive", 0.5)
    assert clean.config.noise is None


def test_names_of_runs_are_names_of_their_own() -> None:
    for name, recipe in RECIPES.items():
        asked = Request(rows=("all",), sizes=("all",), placements=("recurrent", "outputs"), seeds=2)
        names = [step.name for step in recipe.steps(recipe.complete(asked))]
        assert len(names) == len(set(names)), name


def test_the_cost_grows_with_rows_epochs_and_seeds() -> None:
    recipe = find_recipe("noisin/table3")
    one = recipe.cost(Request(rows=("gaussian",), epochs=10))
    more = recipe.cost(Request(rows=("gaussian", "none"), epochs=20, seeds=3))
    assert (one.runs, one.epochs) == (1, 10)
    assert (more.runs, more.epochs) == (6, 120)
    assert more.gpu == pytest.approx(12 * one.gpu)


@pytest.mark.parametrize("wrong", [{"rows": ("cauchy",)}, {"sizes": ("tiny",)}])
def test_an_unknown_choice_lists_the_known(wrong: dict[str, tuple[str, ...]]) -> None:
    recipe = find_recipe("noisin/table3")
    with pytest.raises(ArgumentError, match=r"gumbel|medium"):
        recipe.complete(Request(**wrong))  # type: ignore[arg-type]
