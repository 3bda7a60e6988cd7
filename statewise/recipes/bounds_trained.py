"""Certificates of trained Elman networks: not vacuous where there is something to learn, and never too low."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from statewise.bounds import Certificate, bound_named, certify
from statewise.bounds.grid import nats
from statewise.bounds.measured_subject import measure_network
from statewise.bounds.observed import observe
from statewise.bounds.penalties import population_confidence
from statewise.bounds.reading import read_model
from statewise.bounds.search import SortedMargins
from statewise.recipes.bounds_task import INPUT_BOUND, PlainClassifier, TaskSettings, fresh_error, train_plain
from statewise.recipes.bounds_task import training_data as data_of
from statewise.recipes.lines import Line, Mean, Sheet, group
from statewise.recipes.published_bounds import AT_MOST, RANDOM_LABELS, TRAINED
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

RANDOM = "random-labels"
CERTIFICATE = "certificate.json"
#: Margins that are tried for the bounds of the paper, up to 1,024, far above those that occur: 2^(j/2).
_MARGINS = range(-8, 21)
#: What the table shows: heading and digits.
_SHOWN: Mapping[str, tuple[str, int]] = {
    "certificate": ("certificate", 4),
    "error": ("train error", 5),
    "test_error": ("test error", 5),
    "norm_u": ("B_U", 2),
    "norm_v": ("B_V", 2),
    "norm_w": ("B_W", 2),
    "gamma": ("γ", 2),
    "class_nats": ("lnN", 1),
    "choice_nats": ("nats of choices", 1),
    "thm2": ("Theorem 2", 2),
    "dudley": ("Dudley", 2),
    "massart": ("Massart", 3),
}


class TrainedCertificates(Study):
    """What certify proves of networks that learnt to remember the first input, and of some that could learn nothing."""

    name = "generalization-bounds/trained"
    title = "Certificates of trained networks"
    rows = (*TRAINED, RANDOM)
    usual_rows = rows
    sizes = ("memory",)
    usual_seeds = 8
    seconds = 12.0

    def settings(self, line: Line, *, smoke: bool) -> TaskSettings:
        if line.row == RANDOM:
            usual = TaskSettings(sequences=300, random_labels=True)
        else:
            hidden, sequences = line.row.removeprefix("dh").split("-m")
            usual = TaskSettings(hidden=int(hidden), sequences=int(sequences))
        if not smoke:
            return usual
        return replace(usual, sequences=min(usual.sequences, 400), steps=12, length=4, test_sequences=200)

    def compute(self, case: StudyCase, data: Any) -> Computed:
        settings: TaskSettings = case.settings
        network = train_plain(settings)
        certificate = certified(network, settings)
        found = {**numbers(certificate, network, settings), "test_error": fresh_error(network, settings)}
        return Computed(found=found, network=network, files={CERTIFICATE: certificate.json_text()})

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data, "input_bound": INPUT_BOUND}

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["network", "whose", *(heading for heading, _ in _SHOWN.values()), "runs", "seconds"]
        rows = []
        for line, runs in group(measured).items():
            told = [
                Mean.of([float(run.found[name]) for run in runs]).text(digits) for name, (_, digits) in _SHOWN.items()
            ]
            rows.append([line.row, "ours", *told, str(len(runs)), f"{sum(run.seconds for run in runs):.0f}"])
            whose = "reference (not comparable)" if request.smoke else "reference"
            rows.append([line.row, whose, *_reference(line.row), "-", "-"])
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        sentences = [f"{one.name}: {one.found['sentence']}" for one in measured if one.seed == 0]
        return [
            "An Elman network with tanh and no bias learns to say after 20 steps which sign the first input had. "
            "Certificates are made of the very sequences that it was trained on, at δ = 0.05, shared by all methods; "
            "norms and margins were looked up and paid for (nats of choices: norms, margin, and ln(1/δ) of the share). "
            "The test error is that of 100,000 fresh sequences; no certificate knows of them. Theorem 2 and Dudley: "
            "the whole bound, not cut at 1, at the margin up to 1,024 where it is least, which is one so large that "
            "the ramp risk is nearly 1. Means ± standard deviations over the seeds. The reference is one earlier run "
            "(of random labels: the least and the most of eight), whose δ was not shared.",
            *sentences,
            *verdicts(claims(measured)),
        ]


def certified(network: PlainClassifier, settings: TaskSettings) -> Certificate:
    """The certificate of a trained network, from the sequences that it was trained on.

    Args:
        network: trained.
        settings: which.
    """
    return certify(
        network,
        data_of(settings),
        delta=settings.delta,
        iid=True,
        input_bound=INPUT_BOUND,
        longest=settings.length,
    )


def numbers(certificate: Certificate, network: PlainClassifier, settings: TaskSettings) -> dict[str, Any]:
    """What the table and the picture show of a certificate.

    Args:
        certificate: of the network.
        network: trained.
        settings: which.
    """
    kl = certificate.claim("kl")
    norms = {f"norm_{each.name.lower()}": each.norm for each in certificate.matrices}
    return {
        "certificate": certificate.value,
        "error": certificate.error,
        "best": certificate.best.name,
        **{name: norms[name] for name in ("norm_u", "norm_v", "norm_w")},
        "gamma": kl.gamma,
        "class_nats": kl.nats["class"],
        "choice_nats": kl.total_nats - kl.nats["class"],
        "massart": certificate.claim("massart").value,
        **{name: whole_bound(name, network, settings) for name in ("thm2", "dudley")},
        "sentence": certificate.sentence,
        "claims": {claim.name: claim.value for claim in certificate.claims if claim.guarantee},
    }


@torch.no_grad()
def whole_bound(name: str, network: PlainClassifier, settings: TaskSettings) -> float:
    """A bound of the paper that is not cut at 1, at the margin where it is least.

    Args:
        name: of the bound.
        network: trained.
        settings: which.
    """
    matrices = read_model(network).matrices
    assert matrices is not None
    measured = measure_network(matrices, steps=settings.length, input_bound=INPUT_BOUND, promised={})
    margins, bound = SortedMargins(observe(network, data_of(settings)).margins), bound_named(name)
    m, price = len(margins), math.fsum(measured.ledger(name).values()) - math.log(settings.delta)

    def at(gamma: float, paid: float) -> float:
        penalty = bound.penalty(measured.subject, gamma=gamma, m=m)
        return margins.ramp_risk(gamma) + penalty.value + population_confidence(m, price + paid)

    return min(at(2.0 ** (place / 2), nats(place)) for place in _MARGINS)


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known of these certificates, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    real = [one for one in measured if not one.smoke]
    found = {line.row: [run.found for run in runs] for line, runs in group(real).items()}
    learnt = [run for row, runs in found.items() if row != RANDOM for run in runs]
    answers = []
    for row, most in AT_MOST.items():
        if row in found:
            worst = max(run["certificate"] for run in found[row])
            answers.append((f"{row}: every certificate is at most {most} (the largest {worst:.4f})", worst <= most))
    answers += [_faultless(row, runs) for row, runs in found.items() if row != RANDOM]
    if learnt:
        below = all(run["test_error"] <= run["certificate"] for run in learnt)
        answers.append((f"No error on fresh sequences is above its certificate ({len(learnt)} networks)", below))
        least = min(min(run["thm2"], run["dudley"]) for run in learnt)
        answers.append((f"Theorem 2 and Dudley's integral prove nothing of them (least: {least:.2f})", least >= 1))
    if RANDOM in found:
        least = min(run["certificate"] for run in found[RANDOM])
        text = (
            f"Random labels: no certificate of {len(found[RANDOM])} is below the true error, 0.5 (least: {least:.3f})"
        )
        answers.append((text, least >= 0.5))
    return answers


def _faultless(row: str, runs: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    right = sum(run["error"] == run["test_error"] == 0 for run in runs)
    worst = max(run["test_error"] for run in runs)
    text = f"{row}: no error on training and fresh sequences ({right} of {len(runs)} networks, the worst has {worst:g})"
    return text, right == len(runs)


def _reference(row: str) -> list[str]:
    if row == RANDOM:
        return [_range(name, digits) for name, (_, digits) in _SHOWN.items()]
    known = TRAINED[row]
    return [f"{known[name]:.{digits}f}" if name in known else "-" for name, (_, digits) in _SHOWN.items()]


def _range(name: str, digits: int) -> str:
    least, most = RANDOM_LABELS.get(name, (math.nan, math.nan))
    return (
        "0.5 (true)" if name == "test_error" else "-" if math.isnan(least) else f"{least:.{digits}f}-{most:.{digits}f}"
    )


RECIPES = (TrainedCertificates(),)
