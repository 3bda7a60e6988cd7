"""Pages about runs of every kind: what is on them, and that a broken run still has a page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from report.html.browsing import browser, visit
from report.html.reading import Node, check_structure
from report.pages import making
from statewise.cli import main
from statewise.commands.report_sources import CommandSources
from statewise.report import report_runs
from statewise.report.html import Section
from statewise.report.run_sections import SectionKind, read_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reported")


@pytest.fixture(scope="module")
def gru(place: Path) -> Path:
    return making.classifier(place / "gru", "--cell", "gru", "--centroids", "4")


@pytest.fixture(scope="module")
def lstm(place: Path) -> Path:
    return making.classifier(place / "lstm", "--cell", "lstm", "--centroids", "4")


@pytest.fixture(scope="module")
def plain(place: Path) -> Path:
    return making.classifier(place / "plain", "--centroids", "0")


@pytest.fixture(scope="module")
def learnt(place: Path) -> Path:
    return making.automaton(place / "learnt")


@pytest.fixture(scope="module")
def language(place: Path) -> Path:
    return making.language_model(place / "lm", "--noise", "gaussian")


@pytest.fixture(scope="module")
def tagger(place: Path) -> Path:
    (place / "tagger").mkdir()
    return making.tagger(place / "tagger" / "run")


def page(*folders: Path, **options: Any) -> Node:
    """The page about some runs, as a parser sees it; its structure holds."""
    out = folders[0].parent / "page.html"
    made = report_runs(folders, out, sources=CommandSources(), **options)
    assert made.failed == {}
    return check_structure(out.read_text(encoding="utf-8"))


def titles(root: Node) -> list[str]:
    return [node.text for node in root.all("h2", "h3")]


def section(root: Node, title: str) -> str:
    """The text of a section."""
    (found,) = [
        node for node in root.all("section") if node.children[0].text == title and node.children[0].name != "h1"
    ]
    return found.whole_text()


def test_a_classifier_has_its_automaton_scores_and_certificate(gru: Path) -> None:
    root = page(gru, iid=True)
    assert titles(root)[:4] == ["What it is", "Scores", "Learning curves", "Calibration"]
    assert "the network is a machine of 4 states" in section(root, "The automaton")
    assert "Moves from centroid to centroid" in titles(root)
    assert "independent draws" in section(root, "What it rests on")
    assert "longer words" in section(root, "Scores")
    assert "reset" in section(root, "Singular values of the recurrent matrices")
    assert "A proxy" in section(root, "How much it can remember")


def test_a_machine_that_the_network_does_not_follow_is_not_passed_off_as_it(tmp_path: Path) -> None:
    root = page(making.untrained(tmp_path / "soft"), quick=True)
    assert "errs more often than the network" in section(root, "Scores")
    assert "otherwise than this machine" in section(root, "The automaton")
    maps = [figure for figure in root.all("figure") if figure.children[0].text.startswith("Moves at ")]
    assert len(maps) == 2
    for figure in maps:  # no row lacks the centroids that a soft step also goes to
        for row in figure.all("tr")[1:]:
            assert sum(float(cell.text) for cell in row.all("td")) > 0.9


def test_runs_that_share_the_best_score_are_both_named(gru: Path, lstm: Path, tmp_path: Path) -> None:
    twin = Path(shutil.copytree(gru, tmp_path / "twin"))
    told = page(gru, twin, quick=True).all("header")[0].whole_text()
    assert "that of gru and twin" in told


def test_without_a_word_for_it_there_is_no_certificate_but_the_command(gru: Path) -> None:
    told = section(page(gru), "The certificate")
    assert "no program can see" in told
    assert f"statewise certify {gru} --iid" in told


def test_a_certificate_that_was_written_is_shown(gru: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(gru, tmp_path / "copied"))
    main(["certify", str(copied), "--iid", "--device", "cpu"])
    written = json.loads((copied / "certificate.json").read_text(encoding="utf-8"))
    assert written["sentence"] in section(page(copied, quick=True), "The certificate")


def test_an_lstm_has_no_automaton_and_the_reason_is_told(lstm: Path) -> None:
    told = section(page(lstm, quick=True), "The automaton")
    assert "memory" in told
    assert "--count" in told


def test_a_network_without_centroids_says_how_to_get_them(plain: Path) -> None:
    assert "--centroids 10" in section(page(plain, quick=True), "The automaton")


def test_hostile_symbols_and_classes_stay_texts(learnt: Path) -> None:
    root = page(learnt)
    assert making.HOSTILE in section(root, "The automaton")
    assert "exact automaton" in root.all("header")[0].whole_text()
    assert any(node.text == "</svg>" for node in root.all("text"))
    assert not root.all("script")


def test_centroids_of_texts_have_their_words(tmp_path: Path) -> None:
    root = page(making.reviews(tmp_path / "reviews"))
    told = section(root, "What the centroids stand for")
    assert "centroid 2" in told
    assert "film (0." in told
    moves = [figure for figure in root.all("figure") if figure.children[0].text.startswith("Moves at ")]
    assert len(moves) == 6
    assert "6 most frequent of" in section(root, "Moves from centroid to centroid")


def test_a_language_model_has_curves_perplexities_and_papers(language: Path) -> None:
    root = page(language)
    assert "perplexity" in section(root, "Scores")
    assert "dieng2018noisin" in section(root, "How to cite")
    assert "The automaton" not in titles(root)
    curve = next(figure for figure in root.all("figure") if figure.children[0].text == "Perplexity")
    assert len(curve.all("details")[0].all("tr")) == 3  # a heading and two epochs


def test_a_tagger_has_f1_with_an_interval(tagger: Path) -> None:
    scores = section(page(tagger), "Scores")
    assert "F1" in scores
    assert "drawn with replacement" in scores
    assert re.search(r"\d\xa0% to \d", scores)


def test_a_step_classifier_has_a_page(tmp_path: Path) -> None:
    root = page(making.step_classifier(tmp_path / "steps"))
    assert "step classifier" in root.all("header")[0].whole_text()


def test_several_runs_begin_with_a_comparison(gru: Path, lstm: Path, plain: Path) -> None:
    root = page(gru, lstm, plain, quick=True)
    assert titles(root)[0] == "The runs beside each other"
    assert [title for title in titles(root) if title.startswith("Run ")] == ["Run gru", "Run lstm", "Run plain"]
    figures = [figure.children[0].text for figure in root.all("figure")]
    assert "Loss of the runs on validation data" in figures


def test_runs_whose_folders_have_one_name_are_told_apart(gru: Path, lstm: Path, tmp_path: Path) -> None:
    for name, run in (("one", gru), ("two", lstm)):
        shutil.copytree(run, tmp_path / name / "run")
    root = page(tmp_path / "one" / "run", tmp_path / "two" / "run", quick=True)
    assert {"Run one/run", "Run two/run"} <= set(titles(root))


def test_a_comparison_of_language_models_is_opened(place: Path) -> None:
    folder = making.language_model(place / "compared", "--noise", "gaussian", "--compare")
    root = page(folder, quick=True)
    assert {"Run none", "Run dropout", "Run gaussian"} <= set(titles(root))
    assert "the best test perplexity is that of" in root.all("header")[0].whole_text()


@pytest.mark.slow
def test_a_comparison_of_taggers_shows_its_gains(tmp_path: Path) -> None:
    folder = making.tagger(tmp_path / "compared", "--compare")
    assert "Gain in F1" in section(page(folder, quick=True), "What mixing gains")


def test_a_search_for_capacities_shows_its_table(tmp_path: Path) -> None:
    out = tmp_path / "search"
    options = "--m 2 --n 2 --depths 1 --widths 6 --iterations 4 --check-every 2 --validate 8 --test 8 --batch 4"
    options += " --seeds 1 --rates 1e-3 --values 0 2 --device cpu --quiet"
    main(["memory", "capacity", *options.split(), "--out", str(out)])
    root = page(out)
    assert "largest solved" in section(root, "Capacities")
    (out / "result.json").unlink()
    assert "has not ended" in section(page(out), "Capacities")


def test_a_line_up_shows_its_verdict(tmp_path: Path) -> None:
    told = section(page(making.lineup(tmp_path / "ended", making.RESULT)), "The verdict")
    assert making.HOSTILE in told
    assert "the loss is not a number" in told
    assert "--resume" in section(page(making.lineup(tmp_path / "begun", None)), "The verdict")


def test_a_section_that_fails_leaves_the_others(gru: Path, tmp_path: Path) -> None:
    def broken(run: object) -> Section:
        raise ZeroDivisionError("a mistake of ours")

    kinds = [SectionKind(title="Broken", build=broken, remedy="Tell us."), SectionKind(title="Fine", build=_fine)]
    made = report_runs([gru], tmp_path / "page.html", sections=kinds)
    root = check_structure((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert made.failed == {"gru": {"Broken": "ZeroDivisionError: a mistake of ours"}}
    assert "a mistake of ours" in section(root, "Broken")
    assert "Tell us." in section(root, "Broken")
    assert "Fine" in titles(root)


def _fine(run: object) -> Section:
    return Section("Fine", [])


def test_a_run_without_its_model_or_its_data_has_a_page_that_says_so(gru: Path, learnt: Path, tmp_path: Path) -> None:
    lost = Path(shutil.copytree(gru, tmp_path / "lost"))
    (lost / "model.safetensors").unlink()
    made = report_runs([lost], tmp_path / "page.html", sources=CommandSources())
    assert "The automaton" in made.failed["lost"]
    assert "Scores" not in made.failed["lost"]
    moved = Path(shutil.copytree(learnt, tmp_path / "moved"))
    told = json.loads((moved / "config.json").read_text(encoding="utf-8"))
    told["source"]["data"] = str(tmp_path / "gone.tsv")
    (moved / "config.json").write_text(json.dumps(told), encoding="utf-8")
    made = report_runs([moved], tmp_path / "page.html", sources=CommandSources())
    assert "gone.tsv, which is no file" in made.failed["moved"]["Calibration"]


def test_examples_that_changed_since_are_not_taken_for_those_of_the_run(learnt: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(learnt, tmp_path / "moved"))
    told = json.loads((moved / "config.json").read_text(encoding="utf-8"))
    lines = Path(told["source"]["data"]).read_text(encoding="utf-8").splitlines()
    told["source"]["data"] = str(tmp_path / "shorter.tsv")
    (tmp_path / "shorter.tsv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    (moved / "config.json").write_text(json.dumps(told), encoding="utf-8")
    made = report_runs([moved], tmp_path / "page.html", sources=CommandSources())
    assert "not those of the run" in made.failed["moved"]["Calibration"]


@pytest.mark.parametrize("name", ["gru", "plain", "language", "tagger"])
def test_the_command_on_the_page_makes_the_same_run(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one difference: where its folder is."""
    folder: Path = request.getfixturevalue(name)
    typed = shlex.split(CommandSources().command(read_run(folder)).replace("\\\n", ""))
    assert typed[:2] == ["statewise", "train"]
    again = tmp_path / "again"
    main([*typed[1:-1], str(again), "--quiet", "--device", "cpu"])
    assert json.loads((again / "config.json").read_text()) == json.loads((folder / "config.json").read_text())


def test_pages_of_runs_read_well_on_a_phone(gru: Path, learnt: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    report_runs([gru, learnt], out, sources=CommandSources())
    with browser() as opened, visit(opened, out, width=360) as seen:
        seen.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert seen.said == []
        assert seen.asked == [out.resolve().as_uri()]
