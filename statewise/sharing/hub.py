"""Models on the Hugging Face hub: put there with a page of their own, and taken from there without trust."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from statewise.errors import ArgumentError, MissingExtraError, ModelFolderError
from statewise.files import write_atomically
from statewise.models import Saved
from statewise.models.loading import load_model
from statewise.models.saving import CONFIG, WEIGHTS
from statewise.sharing.card import model_card

CARD = "README.md"
#: All that is ever fetched: weights, which are no code, and settings.
FETCHED = (WEIGHTS, CONFIG)


def push_to_hub(
    model: Saved,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    branch: str | None = None,
    create_pr: bool = False,
    message: str = "A model made with statewise",
    licence: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Put a model on the Hugging Face hub, with a page that says what it is; gives the address of the commit.

    Args:
        model: made from a config.
        repo_id: the owner and the name, such as ``"me/words"``; it is made if it is not there.
        private: whether others may not see it; None for the owner's usual setting.
        token: of the hub; None for the one that ``hf auth login`` has stored.
        branch: that gets the commit; None for main.
        create_pr: whether to open a pull request rather than commit.
        message: of the commit.
        licence: of the weights, as the hub spells it, such as ``"mit"``.
        endpoint: the address of another hub than the usual one.
    """
    hub = _hub("push_to_hub")
    api = hub.HfApi(endpoint=endpoint, token=token, library_name="statewise")
    with tempfile.TemporaryDirectory() as place:
        folder = model.save(Path(place) / "model")
        write_atomically(folder / CARD, model_card(model, repo_id=repo_id, licence=licence))
        with _hub_errors(repo_id):
            api.create_repo(repo_id, private=private, exist_ok=True, repo_type="model")
            if branch is not None and not create_pr:
                api.create_branch(repo_id, branch=branch, exist_ok=True)
            done = api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                allow_patterns=[*FETCHED, CARD],
                commit_message=message,
                revision=branch,
                create_pr=create_pr,
            )
    return str(done.commit_url)


def from_pretrained(
    name: Path | str,
    *,
    revision: str | None = None,
    device: torch.device | str = "cpu",
    token: str | bool | None = None,
    cache_dir: Path | str | None = None,
    local_files_only: bool = False,
    check_finite: bool = False,
    endpoint: str | None = None,
) -> Saved:
    """A model from a local folder or, if there is none of the name, from the Hugging Face hub, in eval mode.

    Only the weights and the settings are fetched; neither is code, and both are checked before they are used.

    Args:
        name: a folder that ``model.save`` has made, or the owner and the name of a model on the hub.
        revision: a branch, a tag or a commit of the hub; None for main.
        device: where the model goes.
        token: of the hub, for private models; None for the one that ``hf auth login`` has stored.
        cache_dir: where fetched files are kept; None for the hub's usual place.
        local_files_only: take what was fetched before, and ask nobody.
        check_finite: refuse weights that hold NaN or infinity.
        endpoint: the address of another hub than the usual one.

    >>> from statewise.models import StepConfig
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     from_pretrained(StepConfig(hidden=4).build(tokens=3, classes=2).save(folder)).classes
    2
    """
    folder = Path(name)
    if not folder.is_dir():
        options = {"revision": revision, "token": token, "cache_dir": cache_dir, "endpoint": endpoint}
        folder = _fetched(str(name), local_files_only=local_files_only, **options)
    elif revision is not None:
        raise ArgumentError(where="from_pretrained.revision", got=revision, wanted="None for a folder")
    return load_model(folder, device=device, check_finite=check_finite)


def _fetched(name: str, **options: Any) -> Path:
    hub = _hub("from_pretrained")
    with _hub_errors(name):
        return Path(hub.snapshot_download(name, allow_patterns=list(FETCHED), library_name="statewise", **options))


def _hub(where: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError.of(where, package="huggingface_hub", extra="hub") from None
    return huggingface_hub


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """A region in which what the hub or the network refuses becomes an error of ours, with what to do about it."""
    try:
        yield
    except Exception as error:
        # The hub's library has changed what it asks the network by, and with it the errors of the network.
        modules = {each.__module__.partition(".")[0] for each in type(error).__mro__}
        if not isinstance(error, OSError) and not modules & {"huggingface_hub", "httpx", "httpx2", "requests"}:
            raise
        raise ModelFolderError(
            where=name,
            got=f'"{(str(error).strip().splitlines() or [type(error).__name__])[0][:200]}"',
            wanted="a folder, or a model on the Hugging Face hub",
            remedy="Look at the spelling, at the network, and whether `hf auth login` is needed.",
        ) from error
