"""The sections of a page about a run, each a small function from a run to a section."""

from statewise.report.run_sections.registry import SECTIONS, SectionKind, sections_of
from statewise.report.run_sections.run import Run, Sources, read_run

__all__ = ["SECTIONS", "Run", "SectionKind", "Sources", "read_run", "sections_of"]
