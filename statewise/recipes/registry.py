"""All recipes, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from statewise.errors import ArgumentError
from statewise.recipes import (
    bounds_automata,
    bounds_coverage,
    bounds_rows,
    bounds_scaling,
    bounds_table1,
    bounds_trained,
    bounds_vacuous,
    memory_capacity,
    memory_conjecture,
    memory_depth,
    memory_figure1_2,
    memory_pixels,
    memory_theorem1,
    noisin_figure1,
    noisin_table3,
    noisin_table4,
    noisin_table5,
)
from statewise.recipes import mixup_halfmoons as halfmoons
from statewise.recipes import mixup_surrogate as surrogate
from statewise.recipes import mixup_tagging as tagging
from statewise.recipes import state_copying as copying
from statewise.recipes import state_lm as lm
from statewise.recipes import state_palindromes as palindromes
from statewise.recipes import state_parentheses as parentheses
from statewise.recipes import state_pixels as pixels
from statewise.recipes import state_reviews as reviews
from statewise.recipes import state_tomita as tomita
from statewise.recipes.recipe import Recipe

_NOISIN = tuple(module.RECIPE for module in (noisin_table3, noisin_table4, noisin_table5, noisin_figure1))
_STATES = tuple(
    recipe for module in (tomita, parentheses, palindromes, reviews, pixels, copying, lm) for recipe in module.RECIPES
)
_MIXUP = tuple(recipe for module in (halfmoons, tagging, surrogate) for recipe in module.RECIPES)
_BOUNDS = tuple(
    recipe
    for module in (
        bounds_table1,
        bounds_scaling,
        bounds_vacuous,
        bounds_trained,
        bounds_rows,
        bounds_coverage,
        bounds_automata,
    )
    for recipe in module.RECIPES
)
_MEMORY = tuple(
    recipe
    for module in (
        memory_theorem1,
        memory_conjecture,
        memory_figure1_2,
        memory_depth,
        memory_capacity,
        memory_pixels,
    )
    for recipe in module.RECIPES
)
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in (*_NOISIN, *_STATES, *_MIXUP, *_BOUNDS, *_MEMORY)}


def find_recipe(name: str) -> Recipe:
    """The recipe of this name.

    >>> find_recipe("noisin/table3").data
    'ptb'
    """
    if name in RECIPES:
        return RECIPES[name]
    close = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.5)
    remedy = f"Did you mean {close[0]}?" if close else "statewise reproduce --list shows them all."
    raise ArgumentError(where="reproduce", got=name, wanted=f"one of {', '.join(RECIPES)}", remedy=remedy)
