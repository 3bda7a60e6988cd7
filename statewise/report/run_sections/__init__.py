"""The sections of a page about a run, each a small function from a run to a section."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.report.run_sections.registry import SECTIONS, SectionKind, sections_of
    from statewise.report.run_sections.run import Run, Sources, read_run

__all__ = ["SECTIONS", "Run", "SectionKind", "Sources", "read_run", "sections_of"]

lazy_imports(__name__)
