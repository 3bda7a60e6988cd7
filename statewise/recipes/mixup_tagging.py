"""Karamzade et al. 2020 on CoNLL-2003: tables 1 and 2, figures 4 and 5."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data import (
    TaggedSentences,
    compare_span_runs,
    conll2003_sets,
    glove_vectors,
    hidden_markov_sentences,
)
from statewise.models import TaggerConfig
from statewise.recipes.lines import Line, Mean, Sheet, group
from statewise.recipes.published_mixup import SITES, TABLE1, TABLE2, TABLE2_ALPHAS, table1
from statewise.recipes.recipe import Pace, Recipe
from statewise.recipes.request import Request
from statewise.recipes.tag_spectra import spectra_of
from statewise.recipes.tags import TagCase, Tagged, TagMaker, TagSets
from statewise.train import TaggerSettings

#: Sections 4.1 to 4.3: frozen GloVe vectors, a learnt matrix, one layer in one direction, a softmax, no dropout.
WEAK = TaggerConfig(bidirectional=False, head="softmax", characters=0, dropout=0.0, word_dropout=0.0)
#: As the reference code trains it: the rate is halved every 10 epochs, sentences are drawn twice as often for pairs.
RECIPE = TaggerSettings(schedule="steps", pairing="double", lengths="zero", crf_mode="prefix", keep="last")
#: Table 2, with characters in the place of contextual vectors, and word vectors that are trained further.
STRONG = TaggerConfig(finetune=True)
#: Without contextual vectors 250 epochs of SGD are far too many; Adam is there in a quarter of them.
SHORT = replace(RECIPE, optimizer="adam", lr=0.0015, schedule="cosine")
#: Where one of two sentences has ended the tags are those of the other, which fits a CRF's mixed targets only if they
#: are coupled; and sentences of like lengths mix at nearly all steps.
COUPLED = replace(SHORT, crf_mode="coupled", lengths="handover", pairing="sorted")
STRONG_ALPHAS: Mapping[str, float] = {"input": 0.2, "pre-output": 0.1, "through-time": 0.5}
TEST = "test"
RHOS = ("0", "0.1", "0.25", "0.5", "0.75", "1")


class TaggerTable(Recipe):
    """A table of taggers on CoNLL-2003, trained on training and development set, tested on the test set."""

    data = "conll2003"
    epochs = 50
    smoke_epochs = 2
    curve = ("clean_loss", "loss of training sentences, unmixed and without dropout,")

    @abstractmethod
    def config(self, size: str, row: str) -> TaggerConfig:
        """The model of a row."""

    @abstractmethod
    def settings(self, size: str, row: str) -> TaggerSettings:
        """How it is trained; epochs, seed and precision are the request's."""

    @abstractmethod
    def beside(self, size: str, row: str) -> tuple[float | None, float | None]:
        """The published F1 and loss of a row."""

    def steps(self, request: Request) -> list[TagCase]:
        return [
            self._case(request, size, row, seed)
            for size in request.sizes
            for row in request.rows
            for seed in request.seed_numbers
        ]

    def _case(self, request: Request, size: str, row: str, seed: int) -> TagCase:
        config, settings = self.config(size, row), self.settings(size, row)
        settings = replace(settings, epochs=request.epochs or self.epochs, seed=seed, precision=request.precision)
        if request.smoke:
            config, settings = replace(config, hidden=8), replace(settings, batch=16)
        return TagCase(line=Line(row=row, size=size), config=config, settings=settings)

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> TagMaker:
        return TagMaker(lambda: tiny_sets() if request.smoke else conll_sets(data), folder, device, console, self.look)

    def look(self, folder: Path, sets: TagSets, device: torch.device) -> dict[str, Any]:
        """What else to look at of a finished run.

        Args:
            folder: of the run.
            sets: the sentences.
            device: where to compute.
        """
        return {}

    def describe(self, data: Mapping[str, TagSets]) -> dict[str, Any]:
        return {"name": self.data, "sentences": {name: sets.counts for name, sets in data.items()}}

    def sheet(self, measured: Sequence[Tagged], request: Request) -> Sheet:
        foreign = " (not comparable)" if request.smoke or not self.comparable else ""
        columns = ["row", "size", f"published F1{foreign}", "F1 %", "gain", "p", f"published loss{foreign}", "loss"]
        columns += ["of standard", "ECE %", "runs", "epochs", "seconds"]
        lines = group(measured)
        return Sheet(columns, [self._row(line, runs, self._standard(line, lines)) for line, runs in lines.items()], 2)

    def notes(self, measured: Sequence[Tagged]) -> list[str]:
        return [
            "F1 of spans by the rules of conlleval, of the last epoch; loss is the negative log-likelihood summed over "
            "a sentence, averaged over sentences; ECE the expected calibration error of the tags' probabilities, token "
            "by token, in 15 bins. Means ± standard deviations over the seeds. Gain: the mean difference to the "
            "standard run of the same seed; p: two-sided, by approximate randomisation of sentences, each with all "
            "seeds together.",
        ]

    def _standard(self, line: Line, lines: Mapping[Line, Sequence[Tagged]]) -> Sequence[Tagged]:
        return next((runs for other, runs in lines.items() if (other.row, other.size) == ("standard", line.size)), ())

    def _row(self, line: Line, runs: Sequence[Tagged], standard: Sequence[Tagged]) -> list[str]:
        published, loss = self.beside(line.size, line.row)
        beside = {run.seed: run for run in standard}
        both = [(run, beside[run.seed]) for run in runs if run.seed in beside and line.row != "standard"]
        gain = probability = share = "-"
        if both:
            differences = [100 * (run.tests[TEST]["f1"] - other.tests[TEST]["f1"]) for run, other in both]
            gain = f"{statistics.fmean(differences):+.2f}"
            probability = f"{significance(both):.4f}"
            losses = [statistics.fmean(one.tests[TEST]["loss"] for one in some) for some in zip(*both, strict=True)]
            share = f"{losses[0] / losses[1]:.3f}"
        epochs = sorted({run.epochs for run in runs})
        return [
            *(line.row, line.size, "-" if published is None else f"{published:.2f}"),
            Mean.of([100 * run.tests[TEST]["f1"] for run in runs]).text(2),
            *(gain, probability, "-" if loss is None else f"{loss:.2f}"),
            Mean.of([run.tests[TEST]["loss"] for run in runs]).text(3),
            share,
            Mean.of([100 * run.tests[TEST]["ece"] for run in runs]).text(2),
            str(len(runs)),
            "-".join(map(str, dict.fromkeys((epochs[0], epochs[-1])))),
            f"{sum(run.seconds for run in runs):,.0f}",
        ]


class CellTable(TaggerTable):
    """Table 1: each cell with each kind of mixing."""

    name = "sequence-mixup/table1"
    title = "Taggers of three cells, mixed in three places"
    rows = ("standard", *(f"{site}-{alpha}" for alpha in TABLE1["lstm"] for site in SITES))
    usual_rows = ("standard", *(f"{site}-0.5" for site in SITES))
    sizes = ("lstm", "gru", "rnn")
    usual_seeds = 3
    paces = dict.fromkeys(sizes, Pace(gpu=4, cpu=12))

    def config(self, size: str, row: str) -> TaggerConfig:
        return replace(WEAK, cell=size)

    def settings(self, size: str, row: str) -> TaggerSettings:
        site, _, alpha = row.rpartition("-")
        return RECIPE if row == "standard" else replace(RECIPE, mixup=site, alpha=float(alpha))

    def beside(self, size: str, row: str) -> tuple[float | None, float | None]:
        return table1(size, row), None


class CorrelationFigure(TaggerTable):
    """Figure 4: how the coefficients' correlation in time matters."""

    name = "sequence-mixup/figure4"
    title = "F1 and loss of a tagger against rho"
    rows = ("standard", *(f"{site}-{rho}" for site in SITES for rho in RHOS))
    usual_rows = rows
    sizes = ("lstm",)
    paces = dict.fromkeys(sizes, Pace(gpu=4, cpu=12))

    def config(self, size: str, row: str) -> TaggerConfig:
        return WEAK

    def settings(self, size: str, row: str) -> TaggerSettings:
        site, _, rho = row.rpartition("-")
        return RECIPE if row == "standard" else replace(RECIPE, mixup=site, alpha=0.5, rho=float(rho))

    def beside(self, size: str, row: str) -> tuple[float | None, float | None]:
        return None, None

    def notes(self, measured: Sequence[Tagged]) -> list[str]:
        trend = "The paper prints no numbers; it says that F1 is highest at rho = 0 and the loss worst in between."
        return [*super().notes(measured), f"Rows: where is mixed, and rho; alpha is 0.5. {trend}"]


class SpectrumFigure(TaggerTable):
    """Figure 5: how far mixing compresses the states of a class."""

    name = "sequence-mixup/figure5"
    title = "Singular values of a tagger's states"
    rows = ("standard", *SITES)
    usual_rows = rows
    sizes = ("lstm",)
    paces = dict.fromkeys(sizes, Pace(gpu=4, cpu=12))

    def config(self, size: str, row: str) -> TaggerConfig:
        return WEAK

    def settings(self, size: str, row: str) -> TaggerSettings:
        return RECIPE if row == "standard" else replace(RECIPE, mixup=row, alpha=1.0)

    def beside(self, size: str, row: str) -> tuple[float | None, float | None]:
        return None, None

    def look(self, folder: Path, sets: TagSets, device: torch.device) -> dict[str, Any]:
        return {"spectra": spectra_of(folder, sets.train, device=device)}

    def sheet(self, measured: Sequence[Tagged], request: Request) -> Sheet:
        columns = ["row", "F1 %", "class", "states", "sigma 1", "sigma 5", "sigma 20", "variance", "effective rank"]
        columns += ["leakage"]
        rows = [
            [line.row, Mean.of([100 * run.tests[TEST]["f1"] for run in runs]).text(2), name, *_spectrum(runs, name)]
            for line, runs in group(measured).items()
            for name in runs[0].extra["spectra"]
        ]
        return Sheet(columns, rows, 3)

    def notes(self, measured: Sequence[Tagged]) -> list[str]:
        return [
            "States of the training tokens of two classes, in eval mode, centred; sigma k is the k-th singular value "
            "over the root of the number of states; leakage the share of a class's variance that the read-out sees, "
            "which the corrected theory sends to 0. alpha is 1. All combinations of centring and scaling are in the "
            "JSON. The paper claims that the curves of mixed networks fall faster.",
        ]


class StrongTable(TaggerTable):
    """Table 2: a bidirectional LSTM with a CRF."""

    name = "sequence-mixup/table2"
    title = "A bidirectional LSTM with a CRF, mixed in three places"
    rows = ("standard", *SITES)
    usual_rows = rows
    sizes = ("characters",)
    epochs = 60
    paces = dict.fromkeys(sizes, Pace(gpu=7, cpu=20))
    comparable = False

    def config(self, size: str, row: str) -> TaggerConfig:
        return STRONG if row == "standard" else replace(STRONG, word_dropout=0.0)

    def settings(self, size: str, row: str) -> TaggerSettings:
        return SHORT if row == "standard" else replace(COUPLED, mixup=row, alpha=STRONG_ALPHAS[row])

    def beside(self, size: str, row: str) -> tuple[float | None, float | None]:
        return TABLE2[row]

    def notes(self, measured: Sequence[Tagged]) -> list[str]:
        return [
            *super().notes(measured),
            "Published numbers are with contextual vectors of width 4,096 and 250 epochs; ours with a network over "
            "characters in their place. Mixed taggers are trained without word dropout, as published. Alphas are "
            f"{_listed(STRONG_ALPHAS)}, where the paper has {_listed(TABLE2_ALPHAS)}; they and the treatment of "
            "lengths and targets were chosen by test losses of one seed: shares of standard are optimistic.",
        ]


def _listed(alphas: Mapping[str, float]) -> str:
    return ", ".join(f"{alpha:g} ({site})" for site, alpha in alphas.items())


def significance(pairs: Sequence[tuple[Tagged, Tagged]]) -> float:
    """How probable so large a difference of F1 is between taggers that are equally good.

    Args:
        pairs: runs and what they are compared with, of the same seeds.
    """
    ones, others = ([pair[at].tagged[TEST][1] for pair in pairs] for at in (0, 1))
    return compare_span_runs(pairs[0][0].tagged[TEST][0], ones, others, convention="conll").p


def conll_sets(data: Path | str | None) -> TagSets:
    """CoNLL-2003 in BIOES with GloVe vectors, development sentences among those to train on.

    Args:
        data: the folder of all data; None for the usual places.
    """
    sets = conll2003_sets(data=data, scheme="bioes")
    train = TaggedSentences.join([sets["train"], sets["valid"]])
    return TagSets(train, None, {TEST: sets["test"]}, glove_vectors(data=data))


def tiny_sets() -> TagSets:
    """A synthetic task of a few sentences, for smoke runs."""
    made = hidden_markov_sentences(train=80, valid=20, test=40, seed=0)
    return TagSets(made.train.converted("bioes"), None, {TEST: made.test.converted("bioes")}, None)


def _spectrum(runs: Sequence[Tagged], name: str) -> list[str]:
    """The numbers of a class, on average over the seeds."""
    found = [run.extra["spectra"][name] for run in runs]

    def mean(of: Any) -> str:
        return f"{statistics.fmean(float(of(one)) for one in found):.3f}"

    def sigma(one: Mapping[str, Any], k: int) -> float:
        values = one["centred, sqrt_n"]
        return float(values[k - 1]) if k <= len(values) else 0.0

    return [
        f"{statistics.fmean(one['count'] for one in found):,.0f}",
        *(mean(lambda one, k=k: sigma(one, k)) for k in (1, 5, 20)),
        *(mean(lambda one, key=key: one[key]) for key in ("variance", "effective_rank", "leakage")),
    ]


RECIPES = (CellTable(), StrongTable(), CorrelationFigure(), SpectrumFigure())
