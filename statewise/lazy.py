"""Packages whose names are imported when they are first asked for, so that a program loads only what it uses.

An ``__init__.py`` keeps its imports where type checkers, editors and import-linter look for them, and ends with one
call::

    if TYPE_CHECKING:
        from statewise.heads.crf import CRF

    __all__ = ["CRF"]

    lazy_imports(__name__)

The same imports tell where a name is found at run time: there is no second list that could differ from the first.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_imports(package: str) -> None:
    """Import the public names of a package when they are asked for.

    Args:
        package: its ``__name__``. Its names are those of its ``__all__``, and are found where the imports of its block
            ``if TYPE_CHECKING:`` say; so the call comes after both.
    """
    sys.modules[package].__class__ = _LazyPackage


class _LazyPackage(ModuleType):
    """A package that imports its names late, as by PEP 562; they win over submodules of the same name.

    ``statewise.bounds.certify`` is a function, defined in a module of that name. Python sets the attribute of a
    package to a submodule as soon as that is imported, and nobody would ask for the function any more. So such a
    submodule is not set, in whatever order the two are imported.
    """

    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        # Names with two underscores are asked for by Python itself, and no package has such an import.
        home, original = ("", "") if name.startswith("__") else _homes(self.__name__).get(name, ("", ""))
        if not home:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        if home == self.__name__:
            return import_module(f"{home}.{original}")
        found = getattr(import_module(home), original)
        vars(self)[name] = found  # asked for once
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        submodule = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        # The home of a public submodule, such as `statewise.layers`, is the package itself.
        if submodule and name in self.__all__ and _homes(self.__name__)[name][0] != self.__name__:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__all__, *(name for name in vars(self) if name.startswith("__"))})


@cache
def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Of each name that a package imports for type checkers, the module that has it and its name there."""
    loader: Any = sys.modules[package].__loader__
    source = loader.get_source(package)
    if source is None:
        raise ImportError(
            f"{package}: got no source code, wanted its __init__.py, which says where its names are. "
            "Install statewise with its .py files.",
            name=package,
        )
    return {
        alias.asname or alias.name: (line.module or "", alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
