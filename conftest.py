"""What every test run shares: checked shapes, hypothesis profiles, and a seeded generator."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings

from checked import check_imports

# Networks of a few units gain nothing from threads, and where several test processes share the cores they lose much; so
# do the programs that tests start. Tests of what threads do ask for them by `support.threads`.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

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
settings.register_profile("local", _EVERYWHERE, max_examples=25)
settings.register_profile("reproducible", _EVERYWHERE, max_examples=25, derandomize=True, print_blob=True)
settings.register_profile("slow", _EVERYWHERE, max_examples=200)
# `--hypothesis-profile` on the command line still wins.
settings.load_profile("reproducible" if os.environ.get("CI") == "true" else "local")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A class that says ``one_of = n`` gives a quick run one of n of its combinations, chosen by their names.

    Of the test that every cell equals the reference it gives one of ``one_of_cells``, all if it does not say so.
    """
    for item in items:
        share = "one_of_cells" if "every_cell_equals" in item.name else "one_of"
        if seed_of(item) % getattr(getattr(item, "cls", None), share, 1):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs an accelerator")
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
