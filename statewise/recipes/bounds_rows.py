"""Certificates of networks that read MNIST row by row: by norms, by few bits, and of a randomised network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from statewise.bounds import Certificate, certify, margins
from statewise.bounds.certificate import NETWORK, sentence_of
from statewise.bounds.observed import observe
from statewise.bounds.pac_bayes_kl import certify_gibbs
from statewise.bounds.quantised import occam_certificate
from statewise.bounds.randomised import RandomisedNetwork
from statewise.data import Images, image_sets
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig
from statewise.recipes.bounds_trained import CERTIFICATE
from statewise.recipes.lines import Line, Mean, Sheet, group
from statewise.recipes.published_bounds import ROWS_AT_MOST, ROWS_ERROR
from statewise.recipes.request import Request
from statewise.recipes.rows_shared import SharedRows, SharedTraining, shared_nats, train_shared
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, StudyMaker, verdicts
from statewise.train import (
    Callback,
    ClassifierSettings,
    RoundedWeights,
    SpectralProjection,
    load_classifier,
    promises,
    train_classifier,
)

#: Norms that the projected networks have at most, besides that of the recurrent matrix.
INPUT, HEAD = 3.0, 3.0
#: Bins of the histograms of margins.
BINS = 40
#: Among how many networks and settings each was chosen, at most; it is paid for.
CHOICES = 16
RANDOMISED = "the randomised network"
_BATCH = 1000


@dataclass(frozen=True, kw_only=True)
class RowsSettings:
    """How a network is trained and certified.

    Args:
        cell: of the recurrent layer; "shared" for the network of shared weights.
        hidden: units, or channels.
        recurrent: the most of the recurrent norm; 0 for no projection.
        orthogonal: whether recurrent matrices start orthogonal.
        levels: of rounded weights; 0 for none.
        epochs: passes over the pictures.
        batch: pictures of an update.
        lr: the learning rate.
        draws: networks that are drawn to certify a randomised one; 0 for a deterministic one.
        delta: the probability that the certificate is wrong.
        seed: of weights and order.
    """

    cell: str = "rnn"
    hidden: int = 16
    recurrent: float = 0.0
    orthogonal: bool = True
    levels: int = 0
    epochs: int = 20
    batch: int = 100
    lr: float = 0.01
    draws: int = 0
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("hidden", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"RowsSettings.{name}", got=getattr(self, name), wanted=">= 1")


#: The networks; those with norms have about as many weights each.
NETWORKS: Mapping[str, RowsSettings] = {
    "rnn-0.9": RowsSettings(recurrent=0.9),
    "rnn-1": RowsSettings(recurrent=1.0),
    "rnn-1.5": RowsSettings(recurrent=1.5),
    "mgu-1": RowsSettings(cell="mgu", hidden=10, recurrent=1.0),
    "lstm-1": RowsSettings(cell="lstm", hidden=6, recurrent=1.0),
    "gru-ternary": RowsSettings(cell="gru", hidden=16, levels=3, epochs=30, lr=0.01),
    "shared": RowsSettings(cell="shared", hidden=12, levels=9, epochs=40, batch=250, lr=0.03),
    "randomised": RowsSettings(cell="gru", hidden=64, epochs=14, batch=200, lr=0.008, draws=4000),
}


class Pictures(NamedTuple):
    """The pictures to train on, and those to test on, rows as steps; where to compute, and where runs go."""

    train: Images
    test: Images
    device: torch.device
    folder: Path = Path()


class RowCertificates(Study):
    """What can be proved of networks that read digits row by row."""

    name = "generalization-bounds/row-mnist"
    title = "Certificates of networks that read MNIST row by row"
    data = "mnist"
    rows = tuple(NETWORKS)
    usual_rows = tuple(row for row in rows if row not in ("shared", "randomised"))
    sizes = ("digits",)
    seconds = 150.0

    def settings(self, line: Line, *, smoke: bool) -> RowsSettings:
        usual = NETWORKS[line.row]
        return replace(usual, epochs=2, hidden=4, batch=30, draws=min(usual.draws, 50)) if smoke else usual

    def load(self, request: Request, *, data: Path | str | None, device: torch.device) -> Pictures:
        if request.smoke:
            return Pictures(tiny(300, 0), tiny(60, 1), device)
        sets = image_sets("mnist", data=data, valid=0, by="rows")
        return Pictures(sets.train, sets.tests["test"], device)

    def maker(
        self, request: Request, folder: Path, *, data: Path | str | None, device: torch.device, console: Console | None
    ) -> StudyMaker:
        made = super().maker(request, folder, data=data, device=device, console=console)
        made.data = made.data._replace(folder=folder)  # runs that are killed go on
        return made

    def compute(self, case: StudyCase, data: Pictures) -> Computed:
        settings: RowsSettings = case.settings
        if settings.cell == "shared":
            return _shared(settings, data)
        if settings.draws:
            return _randomised(settings, data)
        return _recurrent(settings, data, data.folder / case.name / "run")

    def describe(self, data: Pictures) -> dict[str, Any]:
        return {"name": self.data, "train": len(data.train), "test": len(data.test)}

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["network", "weights", "certificate", "by", "of", "train error", "test error", "nats", "sequences"]
        rows = []
        for line, runs in group(measured).items():
            first = runs[0].found

            def mean(name: str, digits: int, runs: Sequence[Studied] = runs) -> str:
                return Mean.of([float(run.found[name]) for run in runs]).text(digits)

            told = [mean("certificate", 4), first["best"], first["about"], mean("error", 4), mean("test_error", 4)]
            sizes = [
                mean("nats", 0),
                f"{first['sequences']:,}",
                str(len(runs)),
                f"{sum(run.seconds for run in runs):.0f}",
            ]
            rows.append([line.row, f"{runs[0].parameters:,}", *told, *sizes])
        return Sheet([*columns, "runs", "seconds"], rows, 1)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "28 steps of 28 grey values; the inputs' length is at most √28 by the format of the files. All 60,000 "
            'pictures train and certify the network, but of "randomised", whose prior was trained on one half and '
            "which is certified on the other: there the bound speaks of a network whose weights are drawn anew for "
            "each answer. Test pictures decide nothing. rnn, mgu, lstm: matrices projected while training, recurrent "
            f"ones to the number in the name, inputs to {INPUT:g}, heads to {HEAD:g}; about as many weights each. "
            "gru-ternary: weights of three levels. shared: a gated recurrence whose weights are the same at every "
            "place of a row, on 5 to 9 levels, with the length of their description in the loss; its sizes are paid "
            "for. How weights were found does not matter to these bounds, which hold for all weights at once. The "
            f"others pay for having been one of {CHOICES}: sizes, promised norms and settings of the prior together.",
            *(f"{one.name}: {one.found['sentence']}" for one in measured if one.seed == 0),
            *(
                f"{one.name}: the network of the prior, without noise, has the bound {one.found['held_out']:.4f} by "
                "the half that it was not trained on as a held-out set: the simplest bound is the better one here."
                for one in measured
                if one.found.get("held_out", 2.0) < one.found["certificate"]
            ),
            *verdicts(claims(measured)),
        ]


def _recurrent(settings: RowsSettings, data: Pictures, place: Path) -> Computed:
    """A layer and a head, projected or rounded while they are trained."""
    callbacks: list[Callback] = []
    if settings.recurrent:
        callbacks.append(SpectralProjection(recurrent=settings.recurrent, input=INPUT, head=HEAD))
    if settings.levels:
        callbacks.append(RoundedWeights(levels=settings.levels))
    training = ClassifierSettings(
        epochs=settings.epochs,
        batch=settings.batch,
        lr=settings.lr,
        schedule="cosine",
        patience=None,
        seed=settings.seed,
    )
    config = ClassifierConfig(cell=settings.cell, hidden=settings.hidden, readout="h", orthogonal=settings.orthogonal)
    # The best epoch is chosen by pictures that it was trained on: the certificate holds for all networks at once.
    some = data.train.select(slice(0, 5000))
    train_classifier(
        config, training, data.train, some, {}, place, device=data.device, callbacks=callbacks, resume=True
    )
    model, _ = load_classifier(place)
    found = certify(
        model,
        data.train,
        delta=settings.delta,
        iid=True,
        input_bound=math.sqrt(data.train.features),
        longest=data.train.steps,
        promised=promises(callbacks, model),
        architectures=CHOICES,
    )
    with torch.no_grad():
        test, seen = observe(model, data.test).error, observe(model, data.train)
    kl = found.claim("kl")
    return Computed(
        found={
            **_common(found, test),
            "kl": kl.value,
            "gamma": kl.gamma,
            "margins": _histogram(seen.margins, math.exp(_log_output(found))),
        },
        network=model,
        files={CERTIFICATE: found.json_text()},
    )


def _shared(settings: RowsSettings, data: Pictures) -> Computed:
    rows, labels = (part.to(data.device) for part in _tensors(data.train))
    generator = torch.Generator().manual_seed(settings.seed)
    classes = len(data.train.classes)
    network = SharedRows(settings.hidden, bins=min(4, settings.hidden), classes=classes, generator=generator)
    network.to(data.device)
    training = SharedTraining(epochs=settings.epochs, batch=settings.batch, lr=settings.lr)
    best: dict[str, Any] = {"certificate": 2.0}
    for epoch, weights in train_shared(network, rows, labels, training, generator=generator):
        if epoch < settings.epochs and epoch <= 0.85 * settings.epochs:
            continue
        # Any of these may be taken: the description pays for whichever it is.
        errors, nats = _wrong(network, weights, rows, labels), shared_nats(network, weights)
        value = occam_certificate(errors=errors, m=len(rows), nats=nats, delta=settings.delta)
        if value < best["certificate"]:
            best = {"certificate": value, "errors": errors, "nats": nats, "weights": weights}
    network.load_state_dict(best["weights"])
    test_rows, test_labels = (part.to(data.device) for part in _tensors(data.test))
    error = best["errors"] / len(rows)
    return Computed(
        found={
            "certificate": best["certificate"],
            "best": "bits",
            "about": NETWORK,
            "error": error,
            "test_error": _wrong(network, best["weights"], test_rows, test_labels) / len(test_rows),
            "nats": best["nats"] - math.log(settings.delta),
            "sequences": len(rows),
            "sentence": sentence_of(best["certificate"], delta=settings.delta, sequences=len(rows)),
        },
        network=network.cpu(),
    )


class _GRU(nn.Module):
    """A GRU and a linear head on its last state."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layer, self.head = nn.GRU(features, hidden, batch_first=True), nn.Linear(hidden, classes)

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(rows)[0][:, -1])
        return logits


def _randomised(settings: RowsSettings, data: Pictures) -> Computed:
    """A prior trained on one half of the pictures, whose noise is certified on the other."""
    rows, labels = (part.to(data.device) for part in _tensors(data.train))
    half = len(rows) // 2
    torch.manual_seed(settings.seed)
    network = _GRU(data.train.features, settings.hidden, len(data.train.classes)).to(data.device)
    adam = torch.optim.Adam(network.parameters(), lr=settings.lr)
    batches = half // settings.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, settings.lr, total_steps=settings.epochs * batches)
    generator = torch.Generator().manual_seed(settings.seed)
    for _ in range(settings.epochs):
        for chosen in torch.randperm(half, generator=generator).to(rows.device).tensor_split(batches):
            adam.zero_grad()
            F.cross_entropy(network(rows[chosen]), labels[chosen]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            adam.step()
            schedule.step()
    drawn = RandomisedNetwork(network, centre="start", deviation=0.02, prior_deviation=0.02)
    found = certify_gibbs(
        drawn,
        rows[half:],
        labels[half:],
        generator=torch.Generator().manual_seed(settings.seed + 1),
        draws=settings.draws,
        batch=50,
        delta=settings.delta,
        nats=math.log(CHOICES),
    )
    noise = torch.Generator(device=data.device).manual_seed(settings.seed + 2)
    with torch.no_grad():
        test_rows, test_labels = (part.to(data.device) for part in _tensors(data.test))
        wrong = [
            int((drawn(test_rows[at : at + _BATCH], generator=noise).argmax(1) != test_labels[at : at + _BATCH]).sum())
            for at in range(0, len(test_rows), _BATCH)
        ]
    return Computed(
        found={
            "certificate": found.bound,
            "best": "PAC-Bayes-kl",
            "about": RANDOMISED,
            "error": found.observed,
            "test_error": sum(wrong) / len(test_rows),
            "nats": found.divergence + found.nats,
            "sequences": found.m,
            "held_out": _held_out(network, rows[half:], labels[half:], settings.delta),
            "sentence": sentence_of(found.bound, delta=settings.delta, sequences=found.m, about=RANDOMISED),
        },
        network=network.cpu(),
    )


def _held_out(network: nn.Module, rows: Tensor, labels: Tensor, delta: float) -> float:
    """What the half that the network was not trained on says of it without noise."""
    errors = _wrong(network, dict(network.named_parameters()), rows, labels)
    return occam_certificate(errors=errors, m=len(rows), nats=math.log(CHOICES), delta=delta)


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known of these certificates, and whether it is so; not of a smoke run.

    Args:
        measured: finished cases.
    """
    real = [one for one in measured if not one.smoke]
    if not real:
        return []
    good = [one.found for one in real if one.found["test_error"] <= ROWS_ERROR]
    best = min(real, key=lambda one: float(one.found["certificate"]))
    below = all(one.found["test_error"] <= one.found["certificate"] for one in real)
    told = f"A network with a test error of at most {ROWS_ERROR:.0%} has a certificate of at most {ROWS_AT_MOST:g}"
    return [
        (told, any(found["certificate"] <= ROWS_AT_MOST for found in good)),
        (
            f"No test error is above its certificate (the lowest: {best.found['certificate']:.4f}, {best.line.row})",
            below,
        ),
    ]


def tiny(count: int, seed: int) -> Images:
    """Pictures of 8 x 8 pixels with a bright upper or lower half.

    Args:
        count: of the pictures.
        seed: of their noise.
    """
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    values = generator.integers(0, 60, size=(count, 8, 8))
    values[labels == 0, :4] += 150
    values[labels == 1, 4:] += 150
    flat = values.reshape(count, 64)
    return Images(values=flat, labels=labels, classes=("up", "down"), height=8, width=8).by_rows()


def _common(found: Certificate, test: float) -> dict[str, Any]:
    return {
        "certificate": found.value,
        "best": found.best.name,
        "about": found.best.about,
        "error": found.error,
        "test_error": test,
        "nats": found.best.total_nats,
        "sequences": found.sequences,
        "sentence": found.sentence,
        "claims": {claim.name: claim.value for claim in found.claims if claim.guarantee},
    }


def _log_output(found: Certificate) -> float:
    """The logarithm of the longest logits that the class has: what V makes of the longest state."""
    head = next(matrix for matrix in found.matrices if matrix.name == "V")
    return math.log(head.norm) + head.log_lipschitz


def _histogram(values: Any, longest: float) -> dict[str, list[float]]:
    """Margins as shares of the longest logits: counts of bins, and their edges."""
    counts, edges = np.histogram(values / longest, bins=BINS)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _tensors(images: Images) -> tuple[Tensor, Tensor]:
    rows, _, labels = images.padded(range(len(images)))
    return rows, labels


@torch.no_grad()
def _wrong(network: nn.Module, weights: Mapping[str, Tensor], rows: Tensor, labels: Tensor) -> int:
    """Errors, ties among them."""
    wrong = 0
    for at in range(0, len(rows), _BATCH):
        logits = functional_call(network, dict(weights), (rows[at : at + _BATCH],))
        wrong += int((margins(logits, labels[at : at + _BATCH]) <= 0).sum())
    return wrong


RECIPES = (RowCertificates(),)
