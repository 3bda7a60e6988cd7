"""Published tables and figures, and how to make them."""

from statewise.recipes.cases import Measured, Request
from statewise.recipes.registry import RECIPES, find_recipe
from statewise.recipes.running import Outcome, reproduce

__all__ = ["RECIPES", "Measured", "Outcome", "Request", "find_recipe", "reproduce"]
