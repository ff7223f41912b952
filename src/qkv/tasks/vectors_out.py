"""Vectors of lines as a numpy array or as JSON, and lines found by them."""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np

from qkv.data.lines import Line
from qkv.store import json_text, new_file
from qkv.tasks.text_encoder import TextEncoder

__all__ = ["near_lines", "summary", "write_array", "write_json_lines"]


def write_array(
    encoder: TextEncoder, lines: Iterable[str | Line], path: Path | None, pool: str, normalise: bool | None
) -> None:
    """Write float32[line, dim] as ``.npy`` to a file or to standard output.

    Rows wait on the disk, since the array's header says how many there are: memory does not grow with them.
    """
    with tempfile.TemporaryFile() as waiting:
        count = 0
        for vector in encoder.embed(lines, pool=pool, normalise=normalise):
            waiting.write(vector.astype("<f4").tobytes())
            count += 1
        waiting.seek(0)
        if path is None:
            _copy(waiting, sys.stdout.buffer, (count, encoder.dim))
            return
        with new_file(path, waiting.seek(0, 2)) as partial, open(partial, "wb") as file:
            waiting.seek(0)
            _copy(waiting, file, (count, encoder.dim))


def _copy(rows: BinaryIO, to: BinaryIO, shape: tuple[int, int]) -> None:
    np.lib.format.write_array_header_1_0(to, {"descr": "<f4", "fortran_order": False, "shape": shape})
    shutil.copyfileobj(rows, to)
    to.flush()


def write_json_lines(
    encoder: TextEncoder, lines: Iterable[str | Line], out: TextIO, pool: str, normalise: bool | None
) -> None:
    """Write a line of JSON for each line: its text and its vector."""
    lines, texts = tee(lines)
    for line, vector in zip(texts, encoder.embed(lines, pool=pool, normalise=normalise), strict=True):
        numbers = [round(number, 7) for number in vector.tolist()]
        text = line.text if isinstance(line, Line) else line
        print(json_text({"text": text, "vector": numbers}), file=out)


def near_lines(
    encoder: TextEncoder, texts: Sequence[str | Line], corpus: Iterable[Line], top: int, pool: str, as_json: bool
) -> Iterator[str]:
    """What was found for each text, a line for each; several texts are told apart by their own line before."""
    plain = [text.text if isinstance(text, Line) else text for text in texts]
    for text, found in zip(plain, encoder.nearest(plain, corpus, top, pool), strict=True):
        if as_json:
            yield json_text({"text": text, "nearest": [asdict(near) for near in found]})
            continue
        if len(plain) > 1:
            yield f"# {text}"
        yield from map(str, found)


def summary(counts: Counter) -> str:
    """One line for the user: how many lines came in, and what was wrong with some."""
    marks = {"blank": "blank", "undecodable": "not UTF-8", "over-long": "over-long", "cut": "cut at the model's length"}
    odd = [f"{counts[key]} {words}" for key, words in marks.items() if counts[key]]
    return f"{counts['lines']} line{'s' * (counts['lines'] != 1)}" + (f" ({', '.join(odd)})" if odd else "")
