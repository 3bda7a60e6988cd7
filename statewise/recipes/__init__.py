"""Published tables and figures, and how to make them."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.recipes.cases import Measured
    from statewise.recipes.driving import Outcome, reproduce
    from statewise.recipes.registry import RECIPES, find_recipe
    from statewise.recipes.request import Request

__all__ = ["RECIPES", "Measured", "Outcome", "Request", "find_recipe", "reproduce"]

lazy_imports(__name__)
