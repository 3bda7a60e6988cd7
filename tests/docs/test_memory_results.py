"""What the page of the results on depth and memory says is what the files of the runs say."""

from __future__ import annotations

from contracts.study_pages import StudyPageContract, finished, made
from statewise.recipes import memory_capacity, memory_depth
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
    assert all(holds for _, holds in memory_capacity.order(finished(found["depth-memory/figure3.1-bits"])))
    page = TestMemoryPage()
    for name in ("depth-memory/figure3.1-delay", "depth-memory/tableC1"):
        said = page.section(name)
        assert ("DOES NOT HOLD" in said) == ("**Missed:**" in said)
