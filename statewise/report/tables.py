"""A table, for a terminal and for a Markdown file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich import table as rich_table
from rich.console import Console, JustifyMethod
from rich.text import Text

from statewise.errors import ShapeError


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of text, the first ones aligned at the left and the others at the right.

    Args:
        columns: their headings.
        rows: a text for each column.
        left: how many columns are aligned at the left.
        title: over the table.
        notes: under it, a sentence each.

    >>> print(Table(columns=("row", "test"), rows=[("none", "109.0")]).markdown())
    | row | test |
    | :--- | ---: |
    | none | 109.0 |
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    title: str = ""
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ShapeError(
                    where=f"Table.rows[{index}]", got=f"{len(row)} cells", wanted=f"{len(self.columns)}, one a column"
                )

    def markdown(self) -> str:
        """The table in Markdown, with its title and notes."""
        marks = [":---" if index < self.left else "---:" for index in range(len(self.columns))]
        lines = [_line(self.columns), _line(marks), *map(_line, self.rows)]
        head = [f"# {self.title}", ""] if self.title else []
        foot = [part for note in self.notes for part in ("", note)]
        return "\n".join([*head, *lines, *foot])

    def print(self, console: Console) -> None:
        """Write it to a terminal, a file or whatever the console stands for.

        Args:
            console: where.
        """
        if self.title:
            console.print(Text(self.title, style="bold"))
        shown = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for index, heading in enumerate(self.columns):
            justify: JustifyMethod = "left" if index < self.left else "right"
            # Nothing is cut off: a narrow terminal folds.
            shown.add_column(Text(heading), justify=justify, overflow="fold")
        for row in self.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
        for note in self.notes:
            console.print(Text(note))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
