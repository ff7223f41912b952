"""Rows of a result in the terminal."""

from collections.abc import Sequence

__all__ = ["print_table"]


def print_table(rows: Sequence[dict[str, str]]) -> None:
    """A table; its first column to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row.values())
    Console(soft_wrap=True).print(table)
