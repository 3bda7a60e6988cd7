"""Slips of a person who types ``statewise memory capacity``: each is refused by the names that were typed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from statewise.commands import memory_capacity
from statewise.commands.capacity_asked import options_of, search_of, search_that_goes_on
from statewise.commands.capacity_options import OF_THE_SEARCH, PLACES
from statewise.commands.shared import find_device
from statewise.errors import ArgumentError, RunFolderError
from statewise.sweep.capacity_search import CapacitySearch, Network

BITS = "--task copying-bits"
ALIKE = "--task similarity"


def chosen(words: str) -> Any:
    return memory_capacity.parser().parse_args(words.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--m 0", "--m: got 0, wanted an integer >= 1"),
        (f"{ALIKE} --m 0", "--m: got 0, wanted an integer >= 1. Leave it out for 30."),
        (f"{ALIKE} --m 40", "--m: got 40, wanted 1 to 30, half of the length. Show fewer symbols, or take longer"),
        ("--m 9999999999999", "--m: got 9999999999999, wanted at most 1,000,000,000,000"),
        ("--n 1", "--n: got 1, wanted an integer >= 2"),
        (f"{ALIKE} --n 1", "--n: got 1, wanted an integer >= 2"),
        (f"{BITS} --n 6", "--n: got 6, wanted a power of two with --task copying-bits"),
        (f"{BITS} --n 4", "--values: got 175 bits, wanted a multiple of 2, the bits of one of 4 symbols. Name values"),
        (f"{BITS} --delay -1", "--delay: got -1, wanted an integer >= 0. Leave it out for 0."),
        ("--values -1 5", "--values: got -1, wanted an integer >= 0. Leave it out for those of the thesis."),
        ("--values 5 0", "--values: got 5 0, wanted increasing values"),
        ("--values 5 5", "--values: got 5 5, wanted at least one, none of them twice"),
        (f"{BITS} --values 7", "--values: got 7 bits, wanted a multiple of 5"),
        (f"{ALIKE} --values 61", "--values: got 61, wanted an even integer >= 2"),
        ("--depths 0", "--depths: got 0, wanted "),
        ("--depths 0 --widths 5", "--depths: got 0, wanted an integer >= 1"),
        ("--depths 5000 --widths 5", "--depths: got 5000, wanted at most 1,000 layers. Leave it out for 1 2 3."),
        ("--depths 1 1", "--depths: got 1 1, wanted each once"),
        ("--sizes 0", "--sizes: got 0, wanted "),
        ("--sizes 10", "--sizes: got 10, wanted at least 103 for depth 1 with one channel. Allow more"),
        ("--sizes 8192 8193", "--sizes: got 8192 and 8193, both of which give depth 1 76 channels, wanted other"),
        ("--sizes 999999999999", "parameters, wanted at most 10,000,000,000. Take less (--sizes), fewer layers"),
        ("--widths 0", "--widths: got 0, wanted an integer >= 1"),
        ("--method ascending --misses 0", "--misses: got 0, wanted an integer >= 1"),
        ("--verify-above -1", "--verify-above: got -1, wanted an integer >= 0"),
        ("--at-once 0", "--at-once: got 0, wanted an integer >= 1"),
        ("--rates 0", "--rates: got 0, wanted a number above 0. Leave it out for 0.0001 0.0003 0.001."),
        ("--rates 1e-3 1e-3", "--rates: got 0.001 0.001, wanted at least one, none of them twice"),
        ("--rates 1e300", "--rates: got 1e+300, wanted at most"),
        ("--seeds 0", "--seeds: got 0, wanted an integer >= 1. Leave it out for 3."),
        ("--seeds 1000000", "--seeds: got 1000000, wanted at most 10,000 runs of a value"),
        ("--enough 0", "--enough: got 0, wanted an integer >= 1"),
        ("--enough 10", "--enough: got 10, wanted at most 9, the runs of a value"),
        ("--above 1", "--above: got 1, wanted an accuracy between 0 and 1. Leave it out for 0.99."),
        ("--above 0.999", "--goal: got 0.995, wanted at least 0.999, what counts as solved. Runs would end before"),
        ("--network-seconds 0", "--network-seconds: got 0, wanted a number above 0. Leave it out for no limit."),
        ("--seconds -1", "--seconds: got -1, wanted a number above 0. Leave it out for no limit."),
        ("--seconds 1e400", "--seconds: got inf, wanted a number above 0"),
        ("--tune 0", "--tune: got 0, wanted an integer >= 1. Leave it out for --rates."),
        ("--tune 2 --tune-iterations 0", "--tune-iterations: got 0, wanted an integer >= 1"),
        ("--iterations 0", "--iterations: got 0, wanted an integer >= 1. Leave it out for 200000."),
        ("--check-every 0", "--check-every: got 0, wanted an integer >= 1"),
        ("--patience -1", "--patience: got -1, wanted an integer >= 0"),
        ("--goal 2", "--goal: got 2, wanted an accuracy in (0, 1]. Leave it out for 0.995."),
        ("--batch 0", "--batch: got 0, wanted an integer >= 1"),
        ("--validate 0", "--validate: got 0, wanted an integer >= 1"),
        ("--test 0", "--test: got 0, wanted an integer >= 1"),
        ("--lr-recurrent 0", "--lr-recurrent: got 0, wanted a number above 0. Leave it out for a tenth of the rate"),
        ("--seed -1", "--seed: got -1, wanted an integer >= 0"),
        # What has no effect beside something else.
        (f"{BITS} --m 30", "--m: got 30 with --task copying-bits, wanted another task. Leave it out: the bits"),
        ("--delay 5", "--delay: got 5 with --task copying-delay, wanted --task copying-bits"),
        (f"{ALIKE} --delay 0", "--delay: got 0 with --task similarity, wanted --task copying-bits"),
        ("--misses 2", "--misses: got 2 with --method bisection, wanted --method ascending"),
        ("--method galloping --misses 2", "--misses: got 2 with --method galloping, wanted --method ascending"),
        ("--method ascending --verify-above 1", "--verify-above: got 1 with --method ascending, wanted another"),
        ("--rates 1e-3 --tune 4", "--rates: got 0.001 with --tune, wanted one of the two"),
        ("--lr-recurrent 1e-4 --tune 4", "--lr-recurrent: got 0.0001 with --tune, wanted one of the two"),
        ("--tune-iterations 5", "--tune-iterations: got 5 with no --tune, wanted --tune with it"),
        ("--count true --widths 5", "--count: got true with --widths, wanted --sizes"),
        ("--sizes 8192 --widths 5", "--sizes: got 8192 with --widths, wanted one of the two"),
    ],
)
def test_a_slip_is_told_by_the_name_of_the_option(words: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        search_of(chosen(words))
    assert said in str(caught.value)
    assert caught.value.where.startswith("--")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--workers 2", "--workers: got 2 with --executor replicas, wanted --executor processes with it"),
        ("--ray auto --workers 2", "--workers: got 2 with --ray, wanted one of the two"),
        ("--ray auto --executor processes", "--executor: got processes with --ray, wanted one of the two"),
        ("--gpus-per-task 0.5", "--gpus-per-task: got 0.5 with no --ray, wanted --ray with it"),
        ("--cpus-per-task 1", "--cpus-per-task: got 1 with no --ray, wanted --ray with it"),
        ("--ray auto --gpus-per-task 1e400", "--gpus-per-task: got inf, wanted a number >= 0"),
    ],
)
def test_places_that_exclude_one_another(words: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        memory_capacity.executor_of(chosen(words), find_device("cpu"))
    assert said in str(caught.value)


def test_every_option_says_what_it_is_if_it_is_not_typed() -> None:
    """What is not typed is None, which the help must not leave at that."""
    made, told = chosen(""), memory_capacity.parser().format_help()
    for option in (*OF_THE_SEARCH, *PLACES):
        assert made[option.key] is None
        assert f"(default: {option.default})" in " ".join(told.split())


SEARCHES = [
    "",
    f"{BITS} --delay 7 --sizes 8192 --count thesis --method ascending --misses 3",
    f"{ALIKE} --m 4 --values 8 10 --widths 5 6 --tune 4 --tune-iterations 50 --goal 0 --seconds 5",
    "--lr-recurrent 1e-5 --enough 2 --network-seconds 60 --update full-capacity --above 0.9 --at-once 2 --seed 4",
]


def begun(folder: Path, words: str) -> CapacitySearch:
    """As a search leaves its folder."""
    search = search_of(chosen(words))
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(search.describe()))
    return search


@pytest.mark.parametrize("words", SEARCHES)
def test_a_folder_alone_says_which_search_goes_on(tmp_path: Path, words: str) -> None:
    search = begun(tmp_path / "s", words)
    assert search_that_goes_on(chosen(f"--resume --out {tmp_path / 's'}")) == search
    assert search_that_goes_on(chosen(f"{words} --resume --out {tmp_path / 's'}")) == search
    told = options_of(search)
    assert set(told) == {option.key for option in OF_THE_SEARCH}
    typed = chosen(words)
    for option in OF_THE_SEARCH:
        if typed[option.key] is not None:
            assert told[option.key] == (tuple(typed[option.key]) if option.many else typed[option.key]), option.name


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("", "--seeds 5", "--seeds: got 5, wanted 3, as the search in "),
        ("", "--values 0 10", "--values: got 0 10, wanted 0 50 100 150 ... 1500 (26 of them), as the search in "),
        ("", "--task similarity", "--task: got similarity, wanted copying-delay"),
        ("", "--depths 1 2", "--depths: got 1 2, wanted 1 2 3"),
        ("", "--widths 76", "--widths: got 76, wanted none"),
        ("", "--sizes 8192", "--sizes: got 8192, wanted 8192 16384"),
        ("", "--count thesis", "--count: got thesis, wanted true"),
        ("--widths 9", "--count true", "--count: got true, wanted none"),
        ("", "--tune 4", "--tune: got 4, wanted none"),
        ("", "--goal 0", "--goal: got 0, wanted 0.995"),
        ("", "--misses 2", "--misses: got 2, wanted none"),
        (BITS, "--m 30", "--m: got 30, wanted none"),
    ],
)
def test_what_is_typed_again_must_agree(tmp_path: Path, before: str, now: str, said: str) -> None:
    begun(tmp_path / "s", before)
    with pytest.raises(ArgumentError) as caught:
        search_that_goes_on(chosen(f"{now} --resume --out {tmp_path / 's'}"))
    assert said in str(caught.value)
    assert "Leave it out to go on" in str(caught.value)
    assert len(str(caught.value)) < 200 + 2 * len(str(tmp_path))


def test_what_may_be_another_and_what_comes_to_the_same(tmp_path: Path) -> None:
    search = begun(tmp_path / "s", "--depths 1 2 --seconds 5")
    there = f"--resume --out {tmp_path / 's'}"
    more = search_that_goes_on(chosen(f"--seconds 9 --network-seconds 3 {there}"))
    assert more == replace(search, seconds=9.0, network_seconds=3.0)
    assert search_that_goes_on(chosen(f"--depths 2 1 --rates 1e-3 3e-4 1e-4 {there}")) == search
    with pytest.raises(ArgumentError, match=r"^--seconds: got 0, wanted a number above 0\. Leave it out for that of"):
        search_that_goes_on(chosen(f"--seconds 0 {there}"))
    begun(tmp_path / "one", "--depths 1 --sizes 8192")  # one layer is counted the same both ways
    search_that_goes_on(chosen(f"--count thesis --resume --out {tmp_path / 'one'}"))


def test_a_search_of_a_script_goes_on_too(tmp_path: Path) -> None:
    """Its networks need not be all depths of all widths, nor its sizes those of the command."""
    search = search_of(chosen("--widths 5"))
    search = replace(search, networks=(Network(depth=1, width=5), Network(depth=2, width=9, size=3)))
    (tmp_path / "config.json").write_text(json.dumps(search.describe()))
    assert search_that_goes_on(chosen(f"--depths 1 2 --widths 5 --sizes 3 --resume --out {tmp_path}")) == search


def test_without_a_search_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    for folder, said in ((tmp_path / "nowhere", "no such folder"), (tmp_path, "a folder without a search")):
        with pytest.raises(RunFolderError, match="Leave --resume out to begin one there") as caught:
            memory_capacity.run(chosen(f"--widths 5 --resume --out {folder}"), Console(quiet=True))
        assert said in str(caught.value)
    (tmp_path / "config.json").write_text('{"task": "language model"}')
    with pytest.raises(RunFolderError, match=r"a run of another kind.*Name the folder of a search \(--out\)\.$"):
        search_that_goes_on(chosen(f"--resume --out {tmp_path}"))
    with pytest.raises(RunFolderError, match=r"a folder with another run.*Name another folder \(--out\)\.$"):
        memory_capacity.refuse_taken(tmp_path, chosen(f"--out {tmp_path}"))
    document = search_of(chosen("")).describe()
    (tmp_path / "config.json").write_text(json.dumps({**document, "strategy": {"method": "guessing"}}))
    with pytest.raises(RunFolderError, match="what this version cannot read"):
        search_that_goes_on(chosen(f"--resume --out {tmp_path}"))
