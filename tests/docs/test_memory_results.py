"""What the page of the results on depth and memory says is what the files of the runs say."""

from __future__ import annotations

from contracts.study_pages import StudyPageContract, finished, made
from statewise.recipes import memory_depth, memory_pixels
from statewise.recipes.capacity_order import order
from statewise.recipes.memory_capacity import network_of
from statewise.recipes.published_memory import VIOLATIONS


class TestMemoryPage(StudyPageContract):
    page = "depth-memory"
    recipes = {  # noqa: RUF012
        f"depth-memory/{name}"
        for name in ("theorem1", "conjecture", "figure1.2", "reduced", "figure3.1-bits", "figure3.1-delay", "tableC1")
    }


def test_every_known_violation_is_there_and_the_repair_holds() -> None:
    runs = made("depth-memory")["depth-memory/conjecture"]["runs"]
    assert sum(run["repaired_violated"] for run in runs) == 0
    three = [run for run in runs if run["row"] == "L3" and run["size"] in ("small", "medium", "large")]
    assert [sum(run[name] for run in three) for name in ("shapes", "equal", "larger", "violated")] == [248, 97, 137, 14]
    columns = three[0]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for run in three for row in run["rows"]]
    violated = {(row["inputs"], row["width"], row["steps"]) for row in rows if row["rank"] < row["conjecture"]}
    assert violated == set(VIOLATIONS)
    assert sum(run["shapes"] for run in runs if run["row"] == "L4") > 133


def test_depths_come_apart_and_the_page_says_where_they_do_not() -> None:
    found = made("depth-memory")
    assert all(holds for _, holds in memory_depth.claims(finished(found["depth-memory/reduced"])))
    page = TestMemoryPage()
    for result in found.values():
        said = page.section(result)
        assert ("DOES NOT HOLD" in said) == ("**Missed:**" in said)


def test_no_deeper_network_has_less_at_either_size() -> None:
    found = made("depth-memory")
    bits, delay = ([*capacities(name).items()] for name in ("figure3.1-bits", "figure3.1-delay"))
    further = capacities("figure3.1-delay: 16,384 parameters, up to 600")
    assert bits == [("8192", [None, 200, 200]), ("16384", [200, 300, 375])]
    assert delay == [("8192", [None, 150, 150]), ("16384", [300, 300, 300])]
    assert further == {"16384": [300, 450, 600]}
    for name in ("figure3.1-bits", "figure3.1-delay: 16,384 parameters, up to 600"):
        runs = [network_of(one) for one in finished(found[f"depth-memory/{name}"])]
        for size in {run.size for run in runs}:
            ((_, holds),) = order([run for run in runs if run.size == size])
            assert holds


def capacities(name: str) -> dict[str, list[int | None]]:
    """By size, those of one, two and three layers."""
    sizes: dict[str, list[int | None]] = {}
    for run in made("depth-memory")[f"depth-memory/{name}"]["runs"]:
        sizes.setdefault(run["size"], []).append(run["capacity"])
    return sizes


def test_accuracies_of_pixels_are_within_half_a_point() -> None:
    parts = [result for name, result in made("depth-memory").items() if "tableC1" in name]
    answers = [claim for result in parts for claim in memory_pixels.claims(finished(result))]
    assert len(answers) == 3
    assert all(holds for _, holds in answers)
