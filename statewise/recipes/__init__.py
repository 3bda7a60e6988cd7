"""Published tables and figures, and how to make them."""

from statewise.recipes.cases import Measured
from statewise.recipes.driving import Outcome, reproduce
from statewise.recipes.registry import RECIPES, find_recipe
from statewise.recipes.request import Request

__all__ = ["RECIPES", "Measured", "Outcome", "Request", "find_recipe", "reproduce"]
