"""Automaton certificates of networks that learnt Tomita's grammars from as many words as in Wang & Niepert 2019."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statewise.automata import certified_temperature, random_words, to_json, to_svg
from statewise.bounds import AutomatonCertificate, certify, certify_extraction, disagreement
from statewise.data import Sequences, tomita
from statewise.errors import ArgumentError
from statewise.recipes.lines import Line, Mean, Sheet, group
from statewise.recipes.published_bounds import TOMITA_BOUNDS, TOMITA_WORDS
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts
from statewise.train import Hardening, learn_automaton

MACHINE, PICTURE, CERTIFICATE = "machine.json", "machine.svg", "certificate.json"
ALPHABET = "01"


@dataclass(frozen=True, kw_only=True)
class AutomataSettings:
    """A grammar that is learnt from independent words, of evenly drawn lengths and symbols.

    Args:
        grammar: its number.
        words: m, to learn from and to certify with.
        longest: the most symbols of a word.
        restarts: networks side by side.
        steps: the most of training.
        delta: δ of the certificate.
        seed: of words and weights.
    """

    grammar: int = 1
    words: int = 265
    longest: int = 22
    restarts: int = 10
    steps: int = 1500
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("words", 2), ("longest", 1), ("restarts", 1), ("steps", 1)):
            if getattr(self, name) < least:
                got = getattr(self, name)
                raise ArgumentError(where=f"AutomataSettings.{name}", got=got, wanted=f"a whole number >= {least}")
        if not 0 < self.delta < 1:
            raise ArgumentError(where="AutomataSettings.delta", got=self.delta, wanted="a number between 0 and 1")


class Automata(Study):
    """What the machine of a learnt network proves, beside its true error, which is counted over all words."""

    name = "generalization-bounds/automata"
    title = "Certificates of learnt automata"
    rows = tuple(TOMITA_WORDS)
    usual_rows = rows
    sizes = ("tomita",)
    usual_seeds = 3
    seconds = 10.0

    def settings(self, line: Line, *, smoke: bool) -> AutomataSettings:
        words = TOMITA_WORDS[line.row]
        if smoke:
            return AutomataSettings(grammar=int(line.row), words=min(words, 60), longest=8, restarts=2, steps=20)
        return AutomataSettings(grammar=int(line.row), words=words)

    def compute(self, case: StudyCase, data: Any) -> Computed:
        return learn_and_certify(case.settings)

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data, "words": dict(TOMITA_WORDS)}

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["grammar", "true states", "states n", "words m", "errors on them", "nats of the machine"]
        columns += ["certificate", "of the true machine", "true error", "by certify", "speaks of", "runs", "seconds"]
        return Sheet(columns, [_row(line, runs) for line, runs in group(measured).items()], 1)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        sentences = [f"Grammar {one.line.row}: {one.found['sentence']}" for one in measured if one.seed == 0]
        return [
            "Words of 0 to 22 symbols, lengths and symbols evenly drawn and independent, as many as the networks of "
            "Wang & Niepert 2019 were trained on (Table 9). The certificate, at δ = 0.05, is that of the machine which "
            "was read off the weights, from the words that it was learnt from: kl_inverse(errors / m, (nats of the "
            "machine + ln(1/δ)) / m). Of the true machine: what the true machine would have with no error, the number "
            "to hold ours against. The true error is counted exactly over all words of these lengths. By certify: what "
            "certify says, with δ shared by its methods. Before that each network is cooled down to a temperature at "
            "which its soft transitions provably follow the machine, where there is one. States, nats, certificates "
            "and errors are means ± standard deviations over the seeds.",
            *sentences,
            *verdicts(claims(measured)),
        ]


def learn_and_certify(settings: AutomataSettings) -> Computed:
    """Learn a grammar, read the machine off the network, certify it, and count its true error.

    Args:
        settings: which grammar, and how many words.
    """
    truth = tomita(settings.grammar).minimal
    assert truth is not None
    words = random_words(ALPHABET, settings.words, max_length=settings.longest, seed=settings.seed)
    labels = truth.classify(words)
    sequences = Sequences.from_words(words, labels, symbols=ALPHABET)
    hardening = Hardening(restarts=settings.restarts, steps=settings.steps, seed=settings.seed)
    learnt = learn_automaton(sequences, hardening=hardening)
    # At a temperature where the soft network provably follows its machine, the certificate speaks of that network.
    proved = certified_temperature(learnt.extraction)
    if 0 < proved < learnt.model.config.temperature:
        learnt.model.retune(temperature=proved)
    certificate = certify_extraction(learnt.model, words, labels, delta=settings.delta)
    whole = certify(learnt.model.eval(), sequences, delta=settings.delta, iid=True, methods=("automaton", "bits"))
    found = {
        "certificate": certificate.value,
        "true_error": disagreement(learnt.machine, truth, lengths=range(settings.longest + 1)),
        "states": certificate.states,
        "true_states": len(truth),
        "words": settings.words,
        "errors": certificate.errors,
        "nats": certificate.description.total,
        "by_certify": whole.claim("automaton").value,
        "predictor": certificate.predictor,
        "sentence": certificate.sentence,
        "vacuous": certificate.vacuous,
    }
    files = {
        MACHINE: to_json(learnt.machine),
        PICTURE: to_svg(learnt.machine, title=f"Tomita {settings.grammar}"),
        CERTIFICATE: _text(certificate),
    }
    return Computed(found=found, network=learnt.model, files=files)


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What certificates of automata must be, and whether they are; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    real = [one for one in measured if not one.smoke]
    if not real:
        return []
    worst = max(real, key=lambda one: float(one.found["certificate"]))
    value = f"{worst.found['certificate']:.4f}, grammar {worst.line.row}"
    grammars = len({one.line.row for one in real})
    text = f"{grammars} grammars, {len(real)} networks"
    answers = [
        (f"{text}: every certificate is below 0.5, what guessing has (largest: {value})", not _any(real, "vacuous")),
        (f"{text}: no true error is above its certificate", not any(_fails(one) for one in real)),
    ]
    exact = [one for one in real if one.found["true_error"] == 0]
    if exact:
        apart = max(abs(one.found["certificate"] / TOMITA_BOUNDS[one.line.row] - 1) for one in exact)
        told = f"The {len(exact)} networks that found the true machine have its certificate (farthest: {apart:.1e})"
        answers.append((told, apart < 1e-3))
    return answers


def _any(measured: Sequence[Studied], name: str) -> bool:
    return any(one.found[name] for one in measured)


def _fails(one: Studied) -> bool:
    return bool(one.found["true_error"] > one.found["certificate"])


def _row(line: Line, runs: Sequence[Studied]) -> list[str]:
    def told(name: str, digits: int) -> str:
        return Mean.of([float(run.found[name]) for run in runs]).text(digits)

    first = runs[0].found
    speaks = ", ".join(dict.fromkeys(run.found["predictor"] for run in runs))
    return [
        *(line.row, str(first["true_states"]), told("states", 1), str(first["words"]), told("errors", 1)),
        *(told("nats", 1), told("certificate", 5), f"{TOMITA_BOUNDS[line.row]:.5f}", told("true_error", 5)),
        *(told("by_certify", 5), speaks, str(len(runs)), f"{sum(run.seconds for run in runs):.0f}"),
    ]


def _text(certificate: AutomatonCertificate) -> str:
    return json.dumps(certificate.to_dict(), indent=2, ensure_ascii=False) + "\n"


RECIPES = (Automata(),)
