"""The web page that lets a person play with a trained network."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.explorer.app import build_app
    from statewise.explorer.disturbance import Setting
    from statewise.explorer.explorer import Explored, Explorer
    from statewise.explorer.loading import load_subject
    from statewise.explorer.serving import Address, serve
    from statewise.explorer.subjects import Example, Subject

__all__ = ["Address", "Example", "Explored", "Explorer", "Setting", "Subject", "build_app", "load_subject", "serve"]

lazy_imports(__name__)
