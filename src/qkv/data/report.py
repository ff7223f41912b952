"""What was found in the user's data, and what was done about it, as plain sentences with file and line."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from qkv.errors import DataError

__all__ = ["Finding", "Report", "Tally"]

Action = Literal["dropped", "mended", "noted", "ignored"]
EXAMPLES = 3


@dataclass
class Finding:
    """One kind of fault in one part of the data: how often, and the first few places (``train.ko:17: ...``)."""

    part: str
    kind: str
    action: Action
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        what = {"noted": "found, kept"}.get(self.action, self.action)
        more = " ..." if self.count > len(self.examples) else ""
        places = f" ({'; '.join(self.examples)}{more})" if self.examples else ""
        return f"{self.part}: {self.count:,} {self.kind}, {what}{places}"

    def lines(self, every: bool) -> list[str]:
        """One sentence; with ``every``, each place on a line of its own."""
        if not every:
            return [str(self)]
        return [str(replace(self, examples=[])), *(f"  {where}" for where in self.examples)]


@dataclass
class Report:
    """The data doctor's findings. ``refused`` holds what makes the data unusable, ready to raise."""

    read: dict[str, int] = field(default_factory=dict)  # part -> pairs (or what ``unit`` says) read
    kept: dict[str, int] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    refused: list[DataError] = field(default_factory=list)
    unit: str = "pairs"
    every: bool = False  # keep every place, and show each on a line of its own

    def add(self, part: str, kind: str, action: Action, where: str = "", count: int = 1) -> None:
        """Count a fault; ``where`` is shown if it is among the first few."""
        finding = self.find(part, kind)
        if finding is None:
            finding = Finding(part, kind, action)
            self.findings.append(finding)
        finding.count += count
        if where and (self.every or len(finding.examples) < EXAMPLES):
            finding.examples.append(where)

    def find(self, part: str, kind: str) -> Finding | None:
        return next((f for f in self.findings if f.part == part and f.kind == kind), None)

    def count(self, part: str, kind: str) -> int:
        """How often ``kind`` was found in ``part``; 0 if never."""
        found = self.find(part, kind)
        return found.count if found else 0

    def lines(self) -> list[str]:
        """Everything as sentences: each part's counts, then what was dropped, mended, noted, ignored, then remarks."""
        lines = []
        for part, read in self.read.items():
            kept = self.kept.get(part, read)
            files = " and ".join(self.files.get(part, ()))
            lines.append(f"{part}: {read:,} {self.unit} read from {files}, {kept:,} kept")
            lines += [
                line
                for action in get_args(Action)
                for f in self.findings
                if (f.part, f.action) == (part, action)
                for line in f.lines(self.every)
            ]
        return lines + self.remarks + [f"refused: {error}" for error in self.refused]

    def summary(self) -> dict[str, Any]:
        """The same as plain data for JSON; `from_summary` reads it."""
        plain = asdict(self) | {"refused": [str(error) for error in self.refused]}
        return plain

    @classmethod
    def from_summary(cls, plain: dict[str, Any]) -> "Report":
        fields = {key: plain[key] for key in ("read", "kept", "files", "remarks", "unit") if key in plain}
        return cls(findings=[Finding(**finding) for finding in plain["findings"]], **fields)

    def raise_if_refused(self) -> None:
        """Raise the first thing that makes the data unusable, with what was dropped before it, which may be why."""
        if not self.refused:
            return
        first = self.refused[0]
        dropped = [str(found) for found in self.findings if found.action == "dropped" and str(found) not in str(first)]
        raise DataError(f"{first} Before that, {'; '.join(dropped[:EXAMPLES])}") if dropped else first


class Tally:
    """Counts of findings and the examples of lowest line number, gathered over the shares."""

    def __init__(self):
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.examples: dict[tuple[str, str, str], list[tuple[int, str]]] = {}

    def add(self, part: str, kind: str, action: str, count: int, examples: Iterable[tuple[int, str]] = ()) -> None:
        key = (part, kind, action)
        self.counts[key] += int(count)
        self.examples[key] = sorted([*self.examples.get(key, ()), *examples])[:EXAMPLES]

    def tell(self, report: Report) -> None:
        for (part, kind, action), count in self.counts.items():
            for _, where in self.examples[part, kind, action]:
                report.add(part, kind, action, where)
                count -= 1
            if count:
                report.add(part, kind, action, count=count)
