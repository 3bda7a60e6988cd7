"""Annotations that are checked at run time in every test: shapes by jaxtyping, all others by beartype alone.

jaxtyping's own import hook checks every call as if it had shapes, which took half of the time of the engines' tests;
nine calls in ten have none. So this hook asks of each function, when it is defined, whether a shape is among its
annotations.

A loop calls one function thousands of times with the same kinds of arguments; so in a quick run each test has only the
first calls of each function checked. `make test-all` checks every call.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import re
import sys
import typing
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import jaxtyping
import torch
from beartype import BeartypeConf, beartype

# As for mypy, an int is good where a float is asked for.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError))
_made: dict[Any, Callable[..., Any]] = {}
_DECORATOR = "_checked_at_run_time"
#: Names that are not attributes of others, such as ``torch`` of ``torch.device``.
_NAMES = re.compile(r"(?<![\w.])[^\W\d]\w*")


class Limit:
    """How many calls of each function a test has checked, and which test it is."""

    calls: float = math.inf
    test: int = 0


def check_imports(modules: Sequence[str]) -> None:
    """Check the annotations of modules that are imported from now on.

    Args:
        modules: their names, each with all that is below it.
    """
    sys.meta_path.insert(0, _Finder(tuple(modules)))


def checked(made: Any) -> Any:
    """A function or a class whose annotations are checked, unless jaxtyping is told to check nothing."""
    if inspect.isclass(made):
        return jaxtyping.jaxtyped(typechecker=_check_stand_in)(made)
    watched: Callable[..., Any] | None = None  # made when it is first called: most functions are not, in most tests
    test, calls = 0, 0

    @functools.wraps(made)
    def either(*args: Any, **kwargs: Any) -> Any:
        nonlocal watched, test, calls
        # What is traced must not depend on how often something was called.
        if jaxtyping.config.jaxtyping_disable or torch.compiler.is_compiling():
            return made(*args, **kwargs)
        if test != Limit.test:
            test, calls = Limit.test, 0
        calls += 1
        if calls > Limit.calls:
            return made(*args, **kwargs)
        if watched is None:
            watched = _watched(made)
        return watched(*args, **kwargs)

    return either


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    known = {**vars(builtins), **function.__globals__}
    plain = all(_is_plain(annotation, known) for annotation in function.__annotations__.values())
    # A function within a function is made again and again, which `_check_stand_in` knows how to bear.
    if plain and "<locals>" not in function.__qualname__:
        return _check(function)
    return jaxtyping.jaxtyped(typechecker=_check_stand_in)(function)


def _is_plain(annotation: Any, known: dict[str, Any]) -> bool:
    """Whether an annotation is for beartype alone: a text whose names are known by now, and none of them a shape.

    What only type checkers import is not known; jaxtyping leaves such annotations unchecked.
    """
    if not isinstance(annotation, str):
        return False
    return all(name in known and not _is_shape(known[name]) for name in _NAMES.findall(annotation))


def _is_shape(value: Any) -> bool:
    """Whether a name stands for a shape, one of jaxtyping's makers of shapes, or a type with shapes in it."""
    if isinstance(value, ModuleType):
        return value is jaxtyping
    return getattr(value, "__module__", "").startswith("jaxtyping") or any(map(_is_shape, typing.get_args(value)))


def _check_stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    """What checks a function's annotations; jaxtyping gives it a stand-in that has these and does nothing.

    A function within a function is given anew at each call of the outer one, and code that checks it would be compiled
    each time. Stand-ins of one place with the same annotations do the same, so the first is kept.
    """
    if "<locals>" not in function.__qualname__:
        return _check(function)
    names = function.__code__.co_varnames
    key = (function.__module__, function.__qualname__, names, tuple(function.__annotations__.items()))
    try:
        if key not in _made:
            _made[key] = _check(function)
    except TypeError:  # annotations that have no hash
        return _check(function)
    return _made[key]


def _decorate(node: ast.AST) -> None:
    """Put the check below all decorators of a function, and above all of a class, which may make it a dataclass.

    No definition is within an expression, so these are not looked into: that takes most of the time.
    """
    for within in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, within, ()):
            _decorate(child)
            if isinstance(child, ast.FunctionDef):
                child.decorator_list.append(_decorator(child))
            elif isinstance(child, ast.ClassDef):
                child.decorator_list.insert(0, _decorator(child))


def _must_be_first(statement: ast.stmt) -> bool:
    """Whether it is the docstring, or an import of ``__future__``."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr)


def _decorator(node: ast.FunctionDef | ast.ClassDef) -> ast.expr:
    # Where the definition begins, so that tracebacks and coverage point there.
    return ast.copy_location(ast.Name(id=_DECORATOR, ctx=ast.Load()), node)


class _Loader(SourceFileLoader):
    """Compiles a module with its checks, and keeps what is compiled beside what users have, under another name."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(data, filename=path)
        _decorate(tree)
        place = next((place for place, each in enumerate(tree.body) if not _must_be_first(each)), len(tree.body))
        alias = ast.alias(name="checked", asname=_DECORATOR, lineno=1, col_offset=0)
        tree.body.insert(place, ast.ImportFrom(module=__name__, names=[alias], level=0, lineno=1, col_offset=0))
        code: CodeType = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
        return code

    def get_data(self, path: str) -> bytes:
        return super().get_data(_renamed(path))

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        super().set_data(_renamed(path), data, _mode=_mode)


def _renamed(path: str) -> str:
    return f"{path.removesuffix('.pyc')}.checked-1.pyc" if path.endswith(".pyc") else path


class _Finder(MetaPathFinder):
    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules = modules

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not any(fullname == module or fullname.startswith(f"{module}.") for module in self.modules):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
            return spec
        return None
