"""The demonstration: what acting on the state does for a network, what can be read off it, and a page about it."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.demo.show import Shown, run

__all__ = ["Shown", "run"]

lazy_imports(__name__)
