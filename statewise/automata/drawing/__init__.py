"""Machines drawn so that a person can follow them: where states and arrows stand, and the SVG made of it."""
