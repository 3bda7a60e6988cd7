"""Running a layer for a test: a case, the pass it gives with ALL gradients, and how two passes are compared."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from checked import Limit
from statewise import Collected, Pairing, RecurrentLayer
from statewise.engine import Recurrence, Unrolled, plan
from statewise.engine.device import Form, forms
from statewise.engine.operands import Facts
from statewise.kernels import load_triton
from statewise.layers import base
from statewise.native import NativeStatus, load_native
from support import tolerance

FORMS = ("loop", "native")
KERNELS = ("step", "solo", "team")
COMPILED = ("native", *KERNELS)
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
EVERY_DTYPE = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)

# A contract is asked of a dozen members, so each gets a share of a profile's examples.
some_examples = settings(max_examples=max(2, settings().max_examples // 4))
few_examples = settings(max_examples=max(2, settings().max_examples // 8))

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The sizes and the seed of one call of a layer; every tensor of a test is a function of it.

    Args:
        lengths: the length of each sequence, the longest of ``steps``; the batch is then packed.
        given_state: whether the call gives an initial state.
        amplitude: the size of inputs and initial states.
    """

    steps: int = 4
    batch: int = 3
    inputs: int = 2
    hidden: int = 5
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    batch_first: bool = False
    batched: bool = True
    lengths: tuple[int, ...] | None = None
    given_state: bool = True
    amplitude: float = 1.0
    dtype: torch.dtype = torch.float64
    seed: int = 0

    def __post_init__(self) -> None:
        Limit.test += 1  # what a quick run checks of a test, it checks of each of its cases

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def true_lengths(self) -> tuple[int, ...]:
        return self.lengths or (self.steps,) * self.batch

    @property
    def padding(self) -> Tensor:
        """Where a sequence has ended, shape (steps, batch)."""
        return torch.arange(self.steps).unsqueeze(1) >= torch.tensor(self.true_lengths)

    def generator(self, name: str) -> torch.Generator:
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))

    def tensor(self, name: str, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator(name), dtype=self.dtype)

    def leaves(self, *, has_memory: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The inputs (steps, batch, input), and the initial states if the case has them; all want gradients."""
        x = self.tensor("inputs", self.steps, self.batch, self.inputs).mul_(self.amplitude).requires_grad_()
        shape = (self.layers * self.directions, self.batch, self.hidden)
        names = ("initial state", "initial memory")[: (1 + has_memory) * self.given_state]
        return x, tuple(self.tensor(name, *shape).mul_(self.amplitude).requires_grad_() for name in names)

    def arrange(self, x: Tensor) -> Tensor | PackedSequence:
        """Inputs (steps, batch, input) in the form in which the case gives them to a layer."""
        if not self.batched:
            return x.squeeze(1)
        x = x.transpose(0, 1) if self.batch_first else x
        if self.lengths is None:
            return x
        return pack_padded_sequence(x, torch.tensor(self.lengths), self.batch_first, enforce_sorted=False)

    def pairing(self) -> Pairing:
        """A partner for every sequence, of any length, with coefficients for each step."""
        source = self.generator("partners")
        partner = torch.randint(self.batch, (self.batch,), generator=source)
        return Pairing(partner, torch.rand(self.steps, self.batch, generator=source, dtype=self.dtype))


@st.composite
def cases(draw: st.DrawFn, /, *, packed: bool | None = None, **fixed: Any) -> Case:
    """Cases of all kinds; what is named in ``fixed`` stays as it is."""
    one = st.booleans()
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "batched": st.integers(0, 5).map(bool) if packed is None else st.just(True),
        "steps": st.integers(1, 6),
        "batch": st.integers(1, 5),
        "inputs": st.integers(1, 4),
        "hidden": st.integers(1, 20),
        "layers": st.integers(1, 3),
        "bidirectional": one,
        "bias": one,
        "batch_first": one,
        "given_state": one,
        "dtype": st.sampled_from([torch.float64, torch.float32]),
        "seed": seeds,
    }
    case = Case(**{name: fixed[name] if name in fixed else draw(kind) for name, kind in kinds.items()})
    if not case.batched:
        return replace(case, batch=1)
    if "lengths" in fixed or packed is False or (packed is None and draw(one)):
        return replace(case, lengths=fixed.get("lengths"))
    lengths = draw(st.lists(st.integers(1, case.steps), min_size=case.batch, max_size=case.batch))
    return replace(case, lengths=tuple(lengths), steps=max(lengths))


@dataclass(frozen=True)
class Pass:
    """What one call gave, in one form for all cases: outputs (steps, batch, ...), states, and every gradient."""

    values: dict[str, Tensor]
    gradients: dict[str, Tensor]
    collected: Collected = field(default_factory=Collected)


@contextmanager
def only(form: str) -> Iterator[None]:
    """Within, a layer on a CPU has no form but this one; skips where a form cannot be had."""
    if form == "native" and not load_native().available:
        pytest.skip(load_native().reason)
    if form in KERNELS and not load_triton().interpreted:
        pytest.skip(load_triton().reason or "the kernels run on the device here, see the tests marked gpu")
    with pytest.MonkeyPatch.context() as patch:
        if form in KERNELS:
            patch.setattr(forms, "choose_form", _insisting(form))
        if form == "loop":
            patch.setattr(plan, "load_native", lambda: NativeStatus(available=False, reason="left out by a test"))
        yield


def _insisting(form: str) -> Callable[..., Form]:
    """A choice of tiles that has the kernel that is wanted, wherever that kernel can run at all."""

    def choose(facts: Facts, **_: object) -> Form:
        wide = 1 << (facts.hidden - 1).bit_length()
        if form == "solo":
            return Form("solo", max(16, wide), 2, 4, "a test wants it")
        if form == "team":
            return Form("team", 16, 2, 4, "a test wants it")
        return forms.step_form(facts, "a test wants it")

    return choose


def run(module: nn.Module, case: Case, *, form: str | None = None, dirt: float = 0.0, **options: Any) -> Pass:
    """Call a layer of torch.nn or of the library, and differentiate a random combination of all it returns.

    Args:
        module: the layer.
        case: what to call it on.
        form: the form of the engine that must run; None leaves the choice to the layer.
        dirt: what is added to the padding before it is packed away.
        **options: keyword arguments of ``forward``.
    """
    has_memory = isinstance(module, nn.LSTM) or (isinstance(module, RecurrentLayer) and module.cell.has_memory)
    x, states = case.leaves(has_memory=has_memory)
    soiled = torch.where(case.padding.unsqueeze(2), x + dirt, x) if dirt else x
    if isinstance(module, RecurrentLayer):
        # The initial state of some layers is drawn; one seed for all passes of a case.
        options.setdefault("generator", case.generator("layer"))
    with nullcontext() if form is None else insist(module, form):
        output, final, *collected = module(case.arrange(soiled), as_argument(states, batched=case.batched), **options)
        finals = final if isinstance(final, tuple) else (final,)
        return differentiate(module, case, x, states, tidy(output, case), with_batch(finals, case), *collected)


@contextmanager
def insist(module: nn.Module, form: str) -> Iterator[None]:
    """Make a layer run on one form, and fail if any part of it has run on another."""
    assert isinstance(module, RecurrentLayer)
    ran: set[str] = set()
    unroll_all = plan.unroll_all

    def watched(calls: list[Recurrence], plans: list[plan.Plan], *, chained: bool) -> list[Unrolled]:
        ran.update(one.form for one in plans)
        return unroll_all(calls, plans, chained=chained)

    with only(form), pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "unroll_all", watched)
        module.engine = {"loop": "reference", "native": "cpu"}.get(form, "triton")
        yield
        assert ran == {form}


def as_argument(states: tuple[Tensor, ...], *, batched: bool = True) -> Any:
    """Initial states as a layer takes them: none, one, or a pair."""
    parts = tuple(state if batched else state.squeeze(1) for state in states)
    return parts if len(parts) == 2 else parts[0] if parts else None


def tidy(output: Any, case: Case) -> Tensor:
    """An output in whatever form as (steps, batch, hidden), zero in the padding."""
    if isinstance(output, PackedSequence):
        return pad_packed_sequence(output, total_length=case.steps)[0]
    assert isinstance(output, Tensor)
    return output.unsqueeze(1) if not case.batched else output.transpose(0, 1) if case.batch_first else output


def with_batch(finals: tuple[Tensor, ...], case: Case) -> tuple[Tensor, ...]:
    return finals if case.batched else tuple(final.unsqueeze(1) for final in finals)


def differentiate(
    module: nn.Module,
    case: Case,
    x: Tensor,
    states: tuple[Tensor, ...],
    output: Tensor,
    finals: tuple[Tensor, ...],
    collected: Collected | None = None,
) -> Pass:
    """The pass of these results, with the gradients of a random combination of them."""
    values = dict(zip(("output", "final state", "final memory"), (output, *finals), strict=False))
    loss = sum(((value * case.tensor(name, *value.shape)).sum() for name, value in values.items()), torch.zeros(()))
    wanted: dict[str, Tensor] = {"inputs": x}
    wanted |= dict(zip(("initial state", "initial memory"), states, strict=False))
    wanted |= {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    found = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    gradients = {
        name: torch.zeros_like(leaf) if grad is None else grad
        for (name, leaf), grad in zip(wanted.items(), found, strict=True)
    }
    return Pass({name: value.detach() for name, value in values.items()}, gradients, collected or Collected())


def assert_same(actual: Pass, expected: Pass, *, exactly: bool = False) -> None:
    """Two passes give the same values and the same gradients, and have gradients of the same tensors."""
    for kind, left, right in (
        ("", actual.values, expected.values),
        ("gradient of ", actual.gradients, expected.gradients),
    ):
        assert list(left) == list(right)
        scale = max(float(value.abs().max()) for value in right.values() if value.numel())
        for name, value in right.items():
            assert_close(left[name], value, kind + name, scale=scale, exactly=exactly)


def assert_close(actual: Tensor, expected: Tensor, name: str, *, scale: float = 1.0, exactly: bool = False) -> None:
    """Two tensors are the same up to rounding: in float64 to 1e-10, in float32 relative to what was added up.

    Args:
        actual, expected: the tensors.
        name: what they are, for the message.
        scale: the size of the numbers that went into them.
        exactly: whether every bit counts.
    """
    close = tolerance(expected.dtype)
    if expected.dtype == torch.float32:
        close["atol"] *= max(1.0, scale)
    if exactly:
        close = {"rtol": 0.0, "atol": 0.0}
    torch.testing.assert_close(actual, expected, **close, msg=lambda text: f"{name}: {text}")


class FreshInputs:
    """Tests whose inputs differ in each slow run, and whose failures can be repeated."""

    @pytest.fixture
    def seed(self, request: pytest.FixtureRequest) -> int:
        """A fresh seed; with ``--hypothesis-seed=N`` it is N, and in a quick run a function of the test's name."""
        chosen = request.config.getoption("--hypothesis-seed", default=None)
        if isinstance(chosen, str) and chosen.isdigit():
            seed = int(chosen)
        elif settings.get_current_profile_name() == "quick":
            seed = zlib.crc32(request.node.nodeid.encode())
        else:
            seed = secrets.randbits(32)
        request.node.add_report_section("setup", "seed", f"repeat this test with --hypothesis-seed={seed}")
        return seed
