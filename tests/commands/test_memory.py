"""``statewise memory`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.commands.whole_numbers import whole_numbers
from statewise.errors import ArgumentError
from statewise.memory.telling import rank_text

SHAPE = ("--inputs", "6", "--width", "5", "--steps", "4", "--depth", "3")


class TestRank:
    def test_the_counterexample_takes_one_command(self, typed: Typed) -> None:
        said = typed("memory", "rank", *SHAPE)
        assert "has separation rank 30: proved." in said
        assert "conjecture   35 as printed: FALSE here" in said
        assert "repaired     30: met with equality" in said

    def test_it_can_be_read_by_programs(self, typed: Typed) -> None:
        told = json.loads(typed("memory", "rank", *SHAPE, "--format", "json"))
        assert told["rank"] == told["upper"] == told["bounds"]["end_cap"] == 30
        assert told["proved"]
        assert told["bounds"]["printed"] == 35

    def test_one_layer_needs_no_table_of_words(self, typed: Typed) -> None:
        said = typed("memory", "rank", "--inputs", "2", "--width", "3", "--steps", "100", "--depth", "1")
        assert "separation rank 3: proved" in said
        assert "Theorem 1    3: met with equality" in said

    def test_two_layers_exceed_their_theorem(self, typed: Typed) -> None:
        said = typed("memory", "rank", "--inputs", "3", "--width", "3", "--steps", "6", "--depth", "2")
        assert "Theorem 1    10: exceeded" in said

    def test_a_rank_below_the_state_bound_is_proved_by_the_sharper_one(self, typed: Typed) -> None:
        said = typed("memory", "rank", "--inputs", "7", "--width", "2", "--steps", "6", "--depth", "3")
        assert "U1, sharper  52" in said

    def test_every_split_of_a_shape(self, typed: Typed) -> None:
        options = ("--inputs", "2", "--width", "2", "--steps", "10", "--depth", "2", "--split", "all")
        ranks = [one["rank"] for one in json.loads(typed("memory", "rank", *options, "--format", "json"))]
        assert ranks == [2, 4, 8, 14, 12, 10, 8, 4, 2]
        assert "M = 2, R = 2, T = 10, L = 2" in typed("memory", "rank", *options)

    @pytest.mark.parametrize("depth", ["1", "2"])
    def test_steps_that_are_no_start(self, typed: Typed, depth: str) -> None:
        options = ("--inputs", "2", "--width", "2", "--steps", "6", "--depth", depth, "--split", "0,2,4")
        said = typed("memory", "rank", *options)
        assert "steps 0, 2 and 4 against all others (counted from 0) has separation rank 8: proved" in said
        assert "conjecture" not in said  # which is about halves
        assert json.loads(typed("memory", "rank", *options, "--format", "json"))["split"] == [0, 2, 4]

    def test_at_an_uneven_split_the_conjecture_is_not_called_the_printed_one(self, typed: Typed) -> None:
        options = ("--inputs", "6", "--width", "5", "--steps", "5", "--depth", "3")
        assert "as printed, carried over to this split" in typed("memory", "rank", *options, "--split", "3")

    def test_another_split(self, typed: Typed) -> None:
        options = ("--inputs", "2", "--width", "2", "--steps", "7", "--depth", "2")
        assert "Start of 3 steps" in typed("memory", "rank", *options, "--split", "3")

    def test_continuous_inputs_have_no_counterexample(self, typed: Typed) -> None:
        said = typed("memory", "rank", *SHAPE, "--samples", "60")
        assert "continuous inputs has separation rank at least 60" in said
        assert "conjecture" not in said

    def test_lists_are_a_table_that_goes_on(self, typed: Typed) -> None:
        options = ("--inputs", "6,7", "--width", "5", "--steps", "2,4", "--depth", "3", "--out", "kept/ranks.jsonl")
        said = typed("memory", "rank", *options)
        assert "3 equal, 0 larger, 1 violated; against the repaired one: 0 violated" in said
        assert "violated" in next(line for line in said.splitlines() if line.split()[:3] == ["6", "5", "4"])
        before = Path("kept/ranks.jsonl").stat().st_mtime_ns
        told = json.loads(typed("memory", "rank", *options, "--format", "json"))
        assert Path("kept/ranks.jsonl").stat().st_mtime_ns == before
        assert [row["verdict"] for row in told["rows"]] == ["equal", "violated", "equal", "equal"]

    def test_one_layer_has_any_number_of_steps_and_no_bounds_of_millions_of_digits(self, typed: Typed) -> None:
        options = (*SHAPE[:4], "--steps", "10000000", "--depth", "1")
        said = typed("memory", "rank", *options)
        assert "separation rank 5: proved" in said
        assert "U2" not in said
        assert json.loads(typed("memory", "rank", *options, "--format", "json"))["bounds"] is None

    def test_the_network_is_drawn(self, typed: Typed) -> None:
        assert "Tensor network: it.svg" in typed("memory", "rank", *SHAPE, "--draw", "it.svg")
        assert Path("it.svg").read_text(encoding="utf-8").startswith("<svg")
        typed("memory", "rank", *SHAPE, "--draw", "deep/it.dot")
        assert Path("deep/it.dot").read_text(encoding="utf-8").startswith("graph network {")

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--depth", "3"), "--inputs: got nothing"),
            (SHAPE[:6], "--depth: got nothing"),
            (("--batch", "small"), "--depth: got nothing"),
            (("--batch", ",", "--depth", "3"), "--batch: got nothing"),
            (
                (*SHAPE, "--split", "half"),
                "--split: got half, wanted how many steps are the Start, such as 3, all for",
            ),
            ((*SHAPE, "--split", "1,2,"), "steps counted from 0, such as 0,2,4; without it half of an even T"),
            ((*SHAPE, "--split", "1,1"), "--split: got (1, 1), wanted every step at most once"),
            ((*SHAPE, "--split", "1,3", "--samples", "9"), "--split: got 1,3, wanted one number with --samples"),
            ((*SHAPE, "--split", "5"), "--split: got 5, wanted a whole number from 0 to 4"),
            ((*SHAPE[:4], "--steps", "1", "--depth", "2", "--split", "all"), "at least 2 steps for --split all"),
            ((*SHAPE[:4], "--steps", "0", "--depth", "2"), "--steps: got 0"),
            ((*SHAPE, "--jobs", "2"), "--jobs: got one shape"),
            ((*SHAPE, "--split", "all", "--jobs", "2"), "--jobs: got one shape"),
            ((*SHAPE, "--split", "all", "--out", "x"), "--out: got one shape"),
            ((*SHAPE, "--split", "all", "--draw", "x.svg"), "--draw: got --split all"),
            ((*SHAPE[:6], "--depth", "1", "--backend", "numpy"), "--backend: got numpy with one layer"),
            ((*SHAPE[:2], "--width", "100000", "--steps", "4", "--depth", "2"), "--width: got 100,000 channels"),
            (("--inputs", "0,2", *SHAPE[2:]), "--inputs: got 0"),
            (("--inputs", "1-9999", "--width", "1-9999", *SHAPE[4:]), "shapes in all, wanted at most 10,000"),
            (("--inputs", "2,3", *SHAPE[2:], "--out", "."), "got a folder, wanted a file"),
            ((*SHAPE, "--batch", "small"), "--batch: got --inputs and --width and --steps with it"),
            (("--depth", "3", "--batch", "huge"), "--batch: got huge"),
            ((*SHAPE, "--out", "x"), "--out: got one shape"),
            ((*SHAPE, "--draw", "x.png"), "--draw: got x.png"),
            ((*SHAPE, "--runs", "0"), "--runs: got 0"),
            ((*SHAPE[:6], "--depth", "0"), "--depth: got 0"),
            (("--inputs", "2", "--width", "2", "--steps", "5", "--depth", "2"), "--split: got none for 5 steps"),
            (
                ("--inputs", "2", "--width", "2", "--steps", "40", "--depth", "2"),
                "--samples 1000 needs no such table, but answers another question",
            ),
            (("--inputs", "2", "--width", "2", "--steps", "1000000", "--depth", "2"), "2^500000 x 2^500000 entries"),
            (("--inputs", "2,3", "--width", "2", "--steps", "40", "--depth", "1"), "Ask for one shape at a time"),
            (("--inputs", "2,3", "--width", "2", "--steps", "40", "--depth", "2"), "For one shape alone, --samples"),
            (("--inputs", "2", "--width", "2,3", "--steps", "5", "--depth", "2"), "--steps: got 5"),
            (("--inputs", "2", "--width", "2,3", "--steps", "4", "--depth", "2", "--split", "1"), "--split: got 1"),
            (("--inputs", "2", "--width", "2,3", "--steps", "4", "--depth", "2", "--draw", "x.svg"), "--draw: got sev"),
            (("--inputs", "2", "--width", "2,3", "--steps", "4", "--depth", "2", "--jobs", "0"), "--jobs: got 0"),
            (("--inputs", "two", "--width", "2", "--steps", "4", "--depth", "2"), "--inputs: got two"),
        ],
    )
    def test_slips_are_told(self, refused: Typed, options: tuple[str, ...], told: str) -> None:
        assert told in refused("memory", "rank", *options)

    def test_one_symbol_or_one_number_a_step_has_rank_one(self, typed: Typed) -> None:
        shape = ("--inputs", "1", "--width", "3", "--steps", "4", "--depth", "2")
        assert "Start of 2 steps has separation rank 1: proved" in typed("memory", "rank", *shape)
        assert "continuous inputs has separation rank 1: proved" in typed("memory", "rank", *shape, "--samples", "9")

    def test_programs_are_told_what_people_are(self, typed: Typed) -> None:
        said, told = (
            typed("memory", "rank", *SHAPE, "--draw", "it.svg"),
            json.loads(typed("memory", "rank", *SHAPE, "--draw", "it.svg", "--format", "json")),
        )
        bounds = told["bounds"]
        assert told["sentence"] in said
        assert f"Tensor network: {told['drawing']}" in said
        for name, number in (
            ("U1          ", bounds["state_bound"]),
            ("U1, sharper ", bounds["sharper"]),
            ("U2          ", bounds["end_cap"]),
            ("upper bound ", bounds["most"]),
        ):
            assert f"{name} {number:,}" in said
        assert f"conjecture   {bounds['printed']} as printed: {bounds['printed_is']}" in said
        assert f"repaired     {bounds['least']}: {bounds['least_is']}" in said
        assert "parameters" not in bounds

    def test_bounds_on_symbols_are_not_told_of_continuous_inputs(self, typed: Typed) -> None:
        told = json.loads(typed("memory", "rank", *SHAPE, "--samples", "20", "--format", "json"))
        assert told["samples"] == 20
        assert told["bounds"] is None

    def test_a_folder_is_no_drawing(self, refused: Typed) -> None:
        Path("it.svg").mkdir()
        assert "--draw: got it.svg, a folder" in refused("memory", "rank", *SHAPE, "--draw", "it.svg")

    def test_a_network_too_large_is_not_drawn(self, refused: Typed) -> None:
        options = ("--inputs", "2", "--width", "2", "--steps", "20", "--depth", "3", "--draw", "it.svg")
        assert "--draw: got 6" in refused("memory", "rank", *options)
        assert not Path("it.svg").exists()


class TestAdvise:
    def test_widths_bounds_and_advice(self, typed: Typed) -> None:
        options = ("--budget", "8192", "--steps", "60", "--inputs", "34", "--classes", "34", "--depths", "1-4")
        said = typed("memory", "advise", *options)
        rows = [line.split() for line in said.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
        assert [row[:3] for row in rows] == [
            ["1", "76", "8,128"],
            ["2", "48", "7,954"],
            ["3", "39", "8,068"],
            ["4", "33", "7,789"],
        ]
        assert rows[0][3] == "76"
        assert rows[2][3].endswith("*")
        assert "Depth 4: R = 33 < M = 34" in said
        assert "depth 3 with 39 channels has the largest bound from below" in said

    def test_the_thesis_counts_otherwise(self, typed: Typed) -> None:
        options = ("--budget", "8192", "--steps", "60", "--inputs", "34", "--classes", "34", "--count", "thesis")
        told = json.loads(typed("memory", "advise", *options, "--format", "json"))
        assert [pair["width"] for pair in told["pairs"][:3]] == [76, 54, 45]
        assert told["count"] == "thesis"

    @pytest.mark.parametrize(
        "options",
        [
            ("--budget", "8192", "--steps", "100", "--inputs", "34", "--classes", "34"),
            ("--budget", "40", "--steps", "4", "--inputs", "30", "--depths", "1,30"),
            ("--budget", "1000", "--steps", "100000", "--inputs", "4"),
        ],
    )
    def test_programs_are_told_what_people_are(self, typed: Typed, options: tuple[str, ...]) -> None:
        said = typed("memory", "advise", *options)
        told = json.loads(typed("memory", "advise", *options, "--format", "json"))
        rows = [line.split() for line in said.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
        for row, pair in zip(rows, told["pairs"], strict=True):
            numbers = [
                pair[name] for name in ("depth", "width", "parameters", "least", "most", "state_bound", "end_cap")
            ]
            shown = [number if isinstance(number, str) else rank_text(number) for number in numbers]
            shown[3] += "" if pair["proved"] else "*"
            assert row == shown
            assert not pair["warning"] or pair["warning"] in " ".join(said.split())
        assert told["sentence"] in " ".join(said.split())
        for depth in told["left_out"]:
            assert f"Depth {depth}: the budget has not one channel" in said
        more = [pair["depth"] for pair in told["pairs"] if pair["depth"] in told["may_have_more"]]
        assert (f"for more at depth {' and '.join(map(str, more))}." in " ".join(said.split())) == bool(more)

    def test_numbers_longer_than_python_reads_are_text(self, typed: Typed) -> None:
        options = ("--budget", "1000", "--steps", "100000", "--inputs", "4", "--depths", "1", "--format", "json")
        pair = json.loads(typed("memory", "advise", *options))["pairs"][0]
        assert (pair["most"], pair["end_cap"]) == (39, "9.99e30102")  # 4^50000, by its logarithm 30102.9996

    def test_depths_that_do_not_fit_are_told(self, typed: Typed) -> None:
        options = ("--budget", "40", "--steps", "4", "--inputs", "30", "--depths", "1,30")
        assert "Depth 30: the budget has not one channel" in typed("memory", "advise", *options)

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--budget", "10", "--steps", "4", "--inputs", "100"), "--budget: got 10"),
            (("--budget", "1000", "--steps", "5", "--inputs", "4"), "--split: got none for 5 steps"),
            (("--budget", "1000", "--steps", "4", "--inputs", "4", "--depths", "x"), "--depths: got x"),
            (("--budget", "1000", "--steps", "4", "--inputs", "0"), "--inputs: got 0"),
            (("--budget", "1000", "--steps", "0", "--inputs", "4"), "--steps: got 0, wanted a whole number from 2"),
            (("--budget", "1000", "--steps", "4", "--inputs", "4", "--split", "0"), "--split: got 0"),
            (("--budget", "0", "--steps", "4", "--inputs", "4"), "--budget: got 0"),
            (("--budget", "1000", "--steps", "4", "--inputs", "4", "--classes", "0"), "--classes: got 0"),
        ],
    )
    def test_slips_are_told(self, refused: Typed, options: tuple[str, ...], told: str) -> None:
        assert told in refused("memory", "advise", *options)


@pytest.mark.parametrize("text", ["", "a", "3-", "-3", "5-2", "1-99999999", "1.5"])
def test_lists_of_other_things_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="--width"):
        whole_numbers(text, where="--width")
