"""What every test run shares: checked shapes, hypothesis profiles, and a seeded generator."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings

from checked import Limit, check_imports

# Networks of a few units gain nothing from threads, and where several test processes share the cores they lose much; so
# do the programs that tests start. Tests of what threads do ask for them by `support.threads`.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

# A script that starts the tests in the background has Ctrl-C ignored, by all programs that they start, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Contract classes and helpers are no test files, so pytest must be told to explain their assertions too.
pytest.register_assert_rewrite("contracts", "support")

# Without a device the accelerator's kernels run in Triton's interpreter, which must be told before it is imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Before the first import of the package, doctests' included: from here on each annotation is checked at run time. The
# kernels are left out: Triton reads their source and must find them as they are written.
_ROOMS = sorted(entry.name for entry in (Path(__file__).parent / "statewise").iterdir() if entry.suffix in ("", ".py"))
check_imports(
    [
        f"statewise.{room.removesuffix('.py')}"
        for room in _ROOMS
        if room not in ("kernels", "__init__.py", "__pycache__")
    ]
)

_EVERYWHERE = settings(
    deadline=None,  # the first call may compile a kernel, and machines differ: no test is timed
    suppress_health_check=[
        HealthCheck.too_slow,  # a loaded machine is no reason to fail
        HealthCheck.differing_executors,  # a contract's test is one function run by every subclass
    ],
)
# The same examples in every run: a search with new ones belongs to `make test-all`.
settings.register_profile("quick", _EVERYWHERE, max_examples=25, derandomize=True)
settings.register_profile("slow", _EVERYWHERE, max_examples=200, print_blob=True)
# `--hypothesis-profile` on the command line still wins.
settings.load_profile("quick")
#: How many calls of each function have their annotations checked in a test of a quick run.
CHECKED_CALLS = 20
#: Files with long tests go first, so that no process has one left while the others have nothing more to do.
LONGEST = (
    "engine/test_operators.py",
    "docs/test_examples.py",
    "docs/test_code_blocks.py",
    "docs/test_commands.py",
    "commands/test_json.py",
    "engine/test_kernels.py",
    "kernels/test_fill.py",
    "explorer/",
    "train/test_resume.py",
    "lineup/test_line_up.py",
    "recipes/",
    "sharing/test_onnx.py",
)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """After hypothesis has loaded the profile that the command line names."""
    if settings.get_current_profile_name() == "quick":
        Limit.calls = CHECKED_CALLS


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The examples of kernels need a Triton that runs here; to import one without any is an error already."""
    from statewise.kernels import load_triton

    room = Path(__file__).parent / "statewise" / "kernels"
    kernels = collection_path.parent == room and collection_path.stem not in ("__init__", "codes", "launch", "status")
    return True if kernels and not load_triton().available else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the combinations of a class that has ``quick``, names or parts of them, a quick run has those alone."""
    for item in items:
        quick = getattr(getattr(item, "cls", None), "quick", None)
        if quick is not None and not any(name in item.name for name in quick):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not any(f"tests/{name}" in item.nodeid for name in LONGEST))


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end they are cleared up all the same: libraries in C++ print a list of what is left."""
    gc.unfreeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs an accelerator")
    Limit.test += 1
    # A contract's test is one function run by every subclass: without this each would get the same examples.
    given = getattr(getattr(item, "obj", None), "hypothesis", None)
    if given is not None:
        given.inner_test._hypothesis_internal_add_digest = item.nodeid.encode()
    # What a test draws without a generator, such as weights, depends on no other test and not on their order.
    torch.manual_seed(seed_of(item))


def seed_of(item: pytest.Item) -> int:
    """The checksum of a test's own name: tests differ, runs of a test do not."""
    return zlib.crc32(item.nodeid.encode())


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> torch.Generator:
    """A CPU generator with a seed of the test's own: inputs differ between tests, not between runs.

    Not for tests under ``@given``, whose examples would share its state: draw a seed there instead.
    """
    return torch.Generator().manual_seed(seed_of(request.node))


@pytest.fixture
def as_users_have_it() -> Iterator[None]:
    """Without the run-time check of annotations, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
