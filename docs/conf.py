"""Sphinx configuration: MyST pages, an API page from the docstrings, the furo theme."""

from __future__ import annotations

import statewise

project = "statewise"
author = "the statewise authors"
copyright = "2026, the statewise authors"
version = release = statewise.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
# Hundreds of names in the tree of every page would take most of the time of a build.
toc_object_entries = False
autodoc_default_options = {"members": True, "show-inheritance": True}
# Types stay in the signature: jaxtyping's shapes say there what a tensor must look like.
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
# An attribute that its class describes is described once, there.
napoleon_use_ivar = True
napoleon_attr_annotations = False  # the stars in jaxtyping's shapes would begin emphasis

html_theme = "furo"
html_title = f"statewise {release}"
