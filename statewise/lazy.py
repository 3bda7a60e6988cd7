"""Packages whose names are imported when they are first asked for, so that a program loads only what it uses.

An ``__init__.py`` keeps its imports where type checkers, editors and import-linter look for them, and ends with one
call::

    if TYPE_CHECKING:
        from statewise.heads.crf import CRF

    __all__ = ["CRF"]

    lazy_imports(__name__)

The same imports say where a name is at run time: there is no second list that could differ from the first.
"""

from __future__ import annotations

import dis
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazy_imports(package: str) -> None:
    """Import the public names of a package when they are asked for.

    Args:
        package: its ``__name__``. Its names are those of its ``__all__``, and are where the imports of its block
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
        if not name.startswith("__"):
            home, original = _homes(self.__name__).get(name, (self.__name__, name))
            if home != self.__name__:
                value = getattr(import_module(home), original)
                vars(self)[name] = value  # asked for once
                return value
            if find_spec(f"{home}.{original}") is not None:  # a module below the package
                return import_module(f"{home}.{original}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its name, as cloudpickle has it for modules of the plain class, and so Ray, joblib and Dask."""
        return import_module, (self.__name__,)

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
    """Of each name that a package imports, the module that has it and its name there.

    They are read from the compiled code, which a frozen program has, too, and which does not run the block.
    """
    loader: Any = sys.modules[package].__loader__
    homes: dict[str, tuple[str, str]] = {}
    home = original = ""
    for line in dis.get_instructions(loader.get_code(package)):
        if line.opname == "IMPORT_NAME":
            home, original = line.argval, ""
        elif line.opname == "IMPORT_FROM":
            original = line.argval
        elif line.opname == "STORE_NAME" and original:
            homes[line.argval], original = (home, original), ""
    return homes
