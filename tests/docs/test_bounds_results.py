"""What the page of the results of bounds says is what the files of the runs say."""

from __future__ import annotations

from typing import Any

from contracts.study_pages import StudyPageContract, made


class TestBoundsPage(StudyPageContract):
    page = "generalization-bounds"
    recipes = {  # noqa: RUF012
        f"generalization-bounds/{name}"
        for name in ("table1", "scaling", "vacuous", "trained", "row-mnist", "coverage", "automata")
    }


def test_what_was_asked_was_reached() -> None:
    found = made("generalization-bounds")
    trained: dict[str, list[dict[str, Any]]] = {}
    for run in found["generalization-bounds/trained"]["runs"]:
        trained.setdefault(run["row"], []).append(run)
    assert max(run["certificate"] for run in trained["dh4-m100000"]) <= 0.006
    assert max(run["certificate"] for run in trained["dh8-m100000"]) <= 0.02
    assert min(run["certificate"] for run in trained["random-labels"]) >= 0.5
    rows = found["generalization-bounds/row-mnist"]["runs"]
    assert any(run["certificate"] <= 0.30 and run["test_error"] <= 0.08 for run in rows)
    for run in found["generalization-bounds/coverage"]["runs"]:
        for delta in ("0.05", "0.5"):
            assert run[delta]["fails"] <= float(delta)
    assert all(run["true_error"] <= run["certificate"] < 0.5 for run in found["generalization-bounds/automata"]["runs"])
