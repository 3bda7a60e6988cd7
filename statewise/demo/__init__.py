"""The demonstration: what acting on the state does for a network, what can be read off it, and a page about it."""

from statewise.demo.show import Shown, run

__all__ = ["Shown", "run"]
