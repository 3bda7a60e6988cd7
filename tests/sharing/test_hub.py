"""Models on a hub: a real exchange with a hub that listens on this machine."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import statewise
from sharing.local_hub import LocalHub, local_hub
from statewise.errors import ArgumentError, MissingExtraError, ModelFolderError
from statewise.models import ClassifierConfig, LanguageModel, Reading, Saved, StepConfig
from statewise.sharing import from_pretrained, model_card, push_to_hub


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    pytest.importorskip("huggingface_hub")
    with local_hub() as listening:
        yield listening


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No token of anybody, and a store of its own."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def model() -> Saved:
    made = ClassifierConfig(hidden=8, centroids=(4,)).build(tokens=2, classes=2, symbols="01")
    made.reading = Reading(unit="characters", symbols=("0", "1"), classes=("reject", "accept"))
    made.metrics = {"valid error": 0.125}
    return made


@pytest.fixture(scope="module")
def pushed(hub: LocalHub) -> tuple[Saved, str]:
    made = model()
    address = push_to_hub(made, "me/words", token="hf_test", licence="mit", endpoint=hub.endpoint)
    return made, address


def fetch(hub: LocalHub, name: str, place: Path, **options: Any) -> Saved:
    return from_pretrained(name, endpoint=hub.endpoint, cache_dir=place, token=False, **options)


class TestExchange:
    def test_what_was_pushed_is_fetched_bit_by_bit(
        self, hub: LocalHub, pushed: tuple[Saved, str], tmp_path: Path
    ) -> None:
        made, address = pushed
        same = fetch(hub, "me/words", tmp_path)
        assert address == f"{hub.endpoint}/me/words/commit/{hub.commit_of('me/words')}"
        assert all(
            torch.equal(a, b) for a, b in zip(made.state_dict().values(), same.state_dict().values(), strict=True)
        )
        assert (same.config, same.reading, same.metrics) == (made.config, made.reading, made.metrics)

    def test_a_commit_can_be_asked_for(self, hub: LocalHub, pushed: tuple[Saved, str], tmp_path: Path) -> None:
        assert fetch(hub, "me/words", tmp_path, revision=hub.commit_of("me/words")).config == pushed[0].config

    def test_the_repository_has_the_two_files_and_the_page(self, hub: LocalHub, pushed: tuple[Saved, str]) -> None:
        assert sorted(hub.files["me/words"]) == ["README.md", "config.json", "model.safetensors"]
        page = hub.files["me/words"]["README.md"].decode()
        assert page == model_card(pushed[0], repo_id="me/words", licence="mit")

    def test_nothing_but_the_two_files_is_ever_fetched(
        self, hub: LocalHub, pushed: tuple[Saved, str], tmp_path: Path
    ) -> None:
        hub.files["evil/words"] = {**hub.files["me/words"], "modeling.py": b"raise SystemExit", "x.pkl": b"\x80"}
        hub.asked.clear()
        fetch(hub, "evil/words", tmp_path)
        fetched = {line.rpartition("/")[2] for line in hub.asked if "/resolve/" in line}
        assert fetched <= {"config.json", "model.safetensors"}
        assert {path.name for path in tmp_path.rglob("*") if path.suffix in (".py", ".pkl")} == set()

    def test_a_damaged_model_is_a_named_error(self, hub: LocalHub, pushed: tuple[Saved, str], tmp_path: Path) -> None:
        hub.files["evil/cut"] = {**hub.files["me/words"]}
        hub.files["evil/cut"]["model.safetensors"] = hub.files["me/words"]["model.safetensors"][:-3]
        with pytest.raises(ModelFolderError, match=r"model\.safetensors"):
            fetch(hub, "evil/cut", tmp_path)

    def test_a_name_that_is_nowhere_is_a_named_error(self, hub: LocalHub, tmp_path: Path) -> None:
        with pytest.raises(ModelFolderError, match="nobody/nothing"):
            fetch(hub, "nobody/nothing", tmp_path)

    def test_a_name_that_no_hub_could_have_is_a_named_error(self, hub: LocalHub, tmp_path: Path) -> None:
        with pytest.raises(ModelFolderError, match="a/b/c"):
            fetch(hub, "a/b/c", tmp_path)


class TestFolders:
    def test_a_local_folder_needs_no_hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = StepConfig(hidden=4).build(tokens=3, classes=2)
        made.save(tmp_path / "kept")
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        assert from_pretrained(tmp_path / "kept").config == made.config
        with pytest.raises(ArgumentError, match="revision"):
            from_pretrained(tmp_path / "kept", revision="main")

    def test_the_extra_is_named_where_it_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def without(name: str, *others: Any) -> Any:
            if name == "huggingface_hub":
                raise ImportError(name)
            return real(name, *others)

        monkeypatch.setattr(builtins, "__import__", without)
        for call in (lambda: from_pretrained("me/words"), lambda: push_to_hub(model(), "me/words")):
            with pytest.raises(MissingExtraError, match=r"statewise\[hub\]"):
                call()


class TestCard:
    def test_it_says_what_the_model_is_and_how_to_use_it(self) -> None:
        page = model_card(model(), repo_id="me/words", licence="mit")
        assert page.startswith("---\nlibrary_name: statewise\n")
        for part in (
            'license: "mit"',
            "pipeline_tag: text-classification",
            "# words",
            "a recurrent classifier of texts into 2 classes",
            "from_pretrained('me/words')",
            "| centroids | (4,) |",
            "| valid error | 0.125 |",
            "@inproceedings{wang2019state,",
        ):
            assert part in page

    def test_its_three_lines_run(self, tmp_path: Path) -> None:
        folder = model().save(tmp_path / "words")
        page = model_card(model(), repo_id=str(folder)).replace('"a text"', '"01"')
        lines = page.partition("```python\n")[2].partition("```")[0]
        space: dict[str, Any] = {}
        exec(lines, space)
        assert space["classes"].shape == (1,)

    def test_a_model_without_a_config_has_none(self) -> None:
        with pytest.raises(ArgumentError, match="without a config"):
            model_card(LanguageModel(5, statewise.LSTM(4, 4)))
