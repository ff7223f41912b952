"""The record of a look: maps with their axes, kept as safetensors with a JSON header (or JSON alone, for small ones).

Every family of models records in this one format; the page, the pictures and the measures read nothing else.
"""

import fnmatch
import html
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor

from qkv.axis import Axis, Grid, axis_from_json, axis_to_json
from qkv.errors import ConfigError, RunError
from qkv.store import json_text, new_file, write_tensors, write_text

__all__ = ["Map", "Trace"]

FORMAT = "qkv-trace/1"
# What shows a record, by its note ``shows``: the function that makes its page, and the one that draws it.
SHOWN = {
    "texts": ("qkv.look.page:page", "qkv.look.draw:draw"),
    "picture": ("qkv.look.picture_page:picture_page", "qkv.look.picture_draw:draw_picture"),
    "told": ("qkv.look.told_page:page", "qkv.look.told_draw:save_look"),
    "film": ("qkv.look.film_page:film_page", "qkv.look.film_draw:draw_film"),
}


@dataclass(frozen=True)
class Map:
    """What one layer looked at, for one example.

    Attributes:
        name: the module path of the layer, nothing else: ``"encoder.blocks.3.attention"``.
        kind: ``"self"``, ``"cross"``, ``"mixing"``, ``"gradient"`` (see `qkv.look.saliency`), ``"relevance"`` (what an
            answer hangs on, see `qkv.tasks.encoder_look`) or ``"position"``.
        weights: one row of weights over the keys for each head and query, float32; each row sums to one or is all zero
            (but for ``"mixing"`` and ``"position"``, which are no shares of anything). Of a windowed layer, over the
            places of the query's own window.
        query, key: what the rows and columns are (the whole axis, even where only some rows were kept).
        heads: which heads of the layer ``weights`` holds, in order.
        queries: which positions of ``query`` the rows are, in order.
        causal: True where a query may not look past itself.
        where: for windowed layers, the cell of the full grid that each place of each window holds; -1 is padding.
    """

    name: str
    kind: str
    weights: Float[Tensor, "head query key"]
    query: Axis
    key: Axis
    heads: tuple[int, ...]
    queries: tuple[int, ...]
    causal: bool = False
    where: Int[Tensor, "window cell"] | None = None

    def mean(self) -> "Map":
        """The map averaged over its heads, as a map of one head."""
        return replace(self, weights=self.weights.mean(0, keepdim=True), heads=(0,))

    def row(self, position: int) -> Float[Tensor, "head key"]:
        """What the query at ``position`` of the axis looked at, over the whole key axis.

        A windowed row is laid back on the grid, zero outside of its window; what it gave to padding is left out.
        """
        if position not in self.queries:
            raise RunError(
                f"query {position} of {self.name} was not recorded", remedy=f"recorded: {list(self.queries)}"
            )
        weights = self.weights[:, [self.queries.index(position)]]
        return replace(self, weights=weights, queries=(position,)).whole().weights[:, 0]

    def whole(self) -> "Map":
        """A windowed map laid back on the grid: every row over the whole key axis, as `row` gives it."""
        if self.where is None:
            return self
        keys, cells = len(self.key), self.places()
        cells = torch.where(cells < 0, keys, cells).expand_as(self.weights)  # padding is the one past the last
        weights = self.weights.new_zeros(*self.weights.shape[:2], keys + 1).scatter(2, cells, self.weights)
        return replace(self, weights=weights[..., :keys], where=None)

    def places(self) -> Int[Tensor, "query key"]:
        """The cell of the grid that each column of each row of a windowed map is; -1 for padding."""
        window = torch.empty(len(self.key) + 1, dtype=torch.int64)  # of each cell; padding, at -1, falls to the last
        window[self.where] = torch.arange(len(self.where))[:, None].expand_as(self.where)
        return self.where[window[list(self.queries)]]

    def onto_image(self, position: int) -> Float[Tensor, "head row column"]:
        """What the query at ``position`` looked at, as the rows and columns of the image's grid, extra tokens apart."""
        if not isinstance(self.key, Grid):
            raise RunError(f"the keys of {self.name} are {type(self.key).__name__}", expected="the grid of an image")
        return self.row(position)[:, len(self.key.prefix) :].unflatten(-1, (self.key.rows, self.key.columns))


@dataclass(frozen=True)
class Trace(Mapping[str, list[Map]]):
    """Maps by layer name, one for each example of the traced batch, in the order in which the layers ran.

    ``notes`` holds plain data about the look: the run, the texts, scores of the output, the alignment, and as ``shows``
    what is shown, if it is no text (see `SHOWN`).
    """

    maps: dict[str, list[Map]] = field(default_factory=dict)
    notes: dict = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[Map]:
        return self.maps[name]

    def __repr__(self) -> str:
        return f"Trace({len(self.maps)} layers: {', '.join(self.maps)})"

    def __iter__(self) -> Iterator[str]:
        return iter(self.maps)

    def __len__(self) -> int:
        return len(self.maps)

    def select(self, pattern: str = "*", kind: str | None = None) -> list[Map]:
        """All maps whose name matches ``pattern`` (``*`` matches anything), in order; of one kind if asked."""
        return [
            map
            for name, maps in self.maps.items()
            if fnmatch.fnmatchcase(name, pattern)
            for map in maps
            if kind is None or map.kind == kind
        ]

    def last(self, kind: str) -> Map:
        """The first example's map of the last layer of this kind."""
        names = [name for name, maps in self.maps.items() if maps and maps[0].kind == kind]
        if not names:
            raise RunError(
                f"no map of kind {kind!r} in this trace", remedy=f"layers traced: {', '.join(self.maps) or 'none'}"
            )
        return self.maps[names[-1]][0]

    def example(self, index: int) -> "Trace":
        """The trace of one example of the batch."""
        return Trace({name: [maps[index]] for name, maps in self.maps.items()}, self.notes)

    def header(self) -> dict:
        """Everything but the weights, as plain data (what a record's JSON header holds)."""
        entries = [
            {
                "name": map.name,
                "kind": map.kind,
                "query": axis_to_json(map.query),
                "key": axis_to_json(map.key),
                "heads": list(map.heads),
                "queries": list(map.queries),
                "causal": map.causal,
                "windowed": map.where is not None,
            }
            for map in self.select()
        ]
        return {"format": FORMAT, "maps": entries, "notes": self.notes}

    def to_json(self) -> dict:
        """The whole record as plain data; weights as nested lists rounded to 6 digits. Meant for small traces."""
        record = self.header()
        for entry, map in zip(record["maps"], self.select(), strict=True):
            entry["weights"] = [[[round(w, 6) for w in row] for row in head] for head in map.weights.tolist()]
            if map.where is not None:
                entry["where"] = map.where.tolist()
        return record

    def save(self, path: str | Path) -> None:
        """Write the record, ``.safetensors`` or ``.npz`` (exact) or ``.json`` (rounded, for small traces), or show it:
        ``.html`` is the page, ``.svg`` and ``.png`` a picture of the last cross-attention (or self-attention) layer.
        """
        path = Path(path)
        match path.suffix:
            case ".safetensors":
                # clones: examples are often slices of one batch, and a file cannot hold shared storage
                tensors = {name: values.clone().contiguous() for name, values in self._tensors().items()}
                write_tensors(path, tensors, {"qkv": json_text(self.header())})
            case ".npz":
                header = json_text(self.header())
                with new_file(path) as partial, open(partial, "wb") as file:
                    arrays = {name: values.numpy() for name, values in self._tensors().items()}
                    np.savez_compressed(file, header=np.array(header), **arrays)
            case ".json":
                write_text(path, json_text(self.to_json()))
            case ".html":
                self.to_page(path)
            case ".svg" | ".png":
                self._shown(1)(self, path)
            case other:
                raise ConfigError(
                    f"a look cannot be written as {other!r}"
                    if other
                    else "the name has no suffix, which says the format",
                    expected=".html, .svg, .png, .safetensors, .npz or .json",
                    file=path,
                )

    def _tensors(self) -> dict[str, Tensor]:
        """What a record holds beside its header: ``weights.N`` of each map, and ``where.N`` of each windowed one."""
        tensors = {f"weights.{i}": map.weights.cpu() for i, map in enumerate(self.select())}
        windowed = ((i, map.where) for i, map in enumerate(self.select()) if map.where is not None)
        return tensors | {f"where.{i}": where.cpu() for i, where in windowed}

    def to_page(self, path: str | Path) -> None:
        """Write one offline HTML page that shows this record: `qkv.look.page`, of a picture `qkv.look.picture_page`."""
        write_text(Path(path), self._shown(0)(self))

    def _shown(self, which: int) -> Callable:
        """What makes the page (0) or the drawing (1) of a record; only who asks for it imports it."""
        module, name = SHOWN[self.notes.get("shows", "texts")][which].split(":")
        return getattr(importlib.import_module(module), name)

    def _repr_html_(self) -> str:
        """The page, in a notebook: in a frame of its own, so that neither can touch the other."""
        from qkv.look.packing import NOTEBOOK_LIMIT

        inside = html.escape(self._shown(0)(self, limit=NOTEBOOK_LIMIT), quote=True)
        return (
            f'<iframe sandbox="allow-scripts" title="What it looked at" srcdoc="{inside}" '
            'style="width: 100%; height: 760px; border: 0"></iframe>'
        )

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a record written by `save`."""
        path = Path(path)
        try:
            record, weights, where = _read(path)
        except OSError as error:
            raise RunError(f"cannot be read ({error.strerror or error})", file=path) from None
        except (ValueError, KeyError, TypeError, AttributeError, SafetensorError, BadZipFile, EOFError):
            raise RunError(
                "not a record of qkv",
                expected="a .safetensors, .npz or .json written by Trace.save",
                file=path,
            ) from None
        if record.get("format") != FORMAT:
            raise RunError(f"not a record of qkv (format {record.get('format')!r})", expected=FORMAT, file=path)
        maps: dict[str, list[Map]] = {}
        for entry, weight, cells in zip(record["maps"], weights, where, strict=True):
            map = Map(
                entry["name"],
                entry["kind"],
                weight,
                axis_from_json(entry["query"]),
                axis_from_json(entry["key"]),
                tuple(entry["heads"]),
                tuple(entry["queries"]),
                entry["causal"],
                cells,
            )
            maps.setdefault(map.name, []).append(map)
        return cls(maps, record["notes"])


def _read(path: Path) -> tuple[dict, list[Tensor], list[Tensor | None]]:
    """A record's header, and the weights and windows of each map."""
    if path.suffix == ".json":
        record = json.loads(path.read_text(encoding="utf-8"))
        entries = record.get("maps", [])
        weights = [_shaped(entry) for entry in entries]
        return record, weights, [torch.tensor(entry["where"]) if "where" in entry else None for entry in entries]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["header"]))
            return record, *_numbered(lambda name: torch.from_numpy(file[name]), set(file.files), record)
    with safe_open(path, framework="pt") as file:
        record = json.loads((file.metadata() or {}).get("qkv", "{}"))
        return record, *_numbered(file.get_tensor, set(file.keys()), record)


def _numbered(get: Callable[[str], Tensor], names: set[str], record: dict) -> tuple[list[Tensor], list[Tensor | None]]:
    """The weights of each map, and its windows if it has any."""
    count = range(len(record.get("maps", [])))
    windows = [get(f"where.{i}") if f"where.{i}" in names else None for i in count]
    return [get(f"weights.{i}") for i in count], windows


def _shaped(entry: dict) -> Tensor:
    """The weights of a JSON entry; nested lists forget the size of an axis that follows an empty one."""
    weights = torch.tensor(entry["weights"], dtype=torch.float32)
    if weights.numel():
        return weights
    return weights.reshape(len(entry["heads"]), len(entry["queries"]), len(axis_from_json(entry["key"])))
