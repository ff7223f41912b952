"""Rows of a result in the terminal."""

import sys
from collections.abc import Sequence

__all__ = ["print_table"]

WIDE = 200  # columns where no terminal says how many there are


def print_table(rows: Sequence[dict[str, str]]) -> None:
    """A table; its first column to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row.values())
    Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDE).print(table)
