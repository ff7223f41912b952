"""How good a captioner is on a test set."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from qkv.data.caption_files import CaptionFiles
from qkv.data.caption_listing import list_captions
from qkv.data.report import Report
from qkv.decode.search import Search
from qkv.errors import DataError
from qkv.store import json_text, write_text
from qkv.tasks.caption_scores import caption_scores
from qkv.tasks.captioner import Captioner

__all__ = ["CaptionEvaluation", "evaluate_captions"]


@dataclass(frozen=True)
class CaptionEvaluation:
    """Scores of a test set, each with its signature; what was left out and why, and what a score does not mean."""

    pictures: int
    captions: int
    scores: dict[str, float]
    signatures: dict[str, str]
    warnings: list[str]
    seconds: float

    def to_json(self) -> str:
        return json_text(asdict(self))

    def __str__(self) -> str:
        lines = [f"{name} {value:.2f}  {self.signatures.get(name, '')}" for name, value in self.scores.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        told = f"{self.pictures} pictures against {self.captions} captions in {self.seconds:.1f} s"
        return "\n".join([*lines, told])


def evaluate_captions(
    captioner: Captioner, data: CaptionFiles, part: str = "", how: Search | None = None, output: Path | None = None
) -> CaptionEvaluation:
    """Tell about the pictures of a part and compare with all their captions.

    A picture that cannot be read is named in the warnings and left out of the scores.

    Args:
        part: train, dev or test; test if there is one, else all that there is.
        output: also write each picture, its caption and its references, a line of JSON each.

    Raises:
        DataError: there is no such part, or no picture of it can be read.
    """
    listed = list_captions(data, Report(unit="pictures"))
    if part and part not in listed:
        raise DataError(f"there is no part {part!r}", expected=", ".join(listed), file=data.folder or data.test)
    examples = listed.get(part or "test") or [example for some in listed.values() for example in some]
    begun = time.monotonic()
    told = list(captioner.caption((example.key for example in examples), how=how))
    seconds = time.monotonic() - begun
    kept = [(answer, example.label) for answer, example in zip(told, examples, strict=True) if not answer.mark]
    broken = [f"left out: {answer.wrong}" for answer in told if answer.mark]
    if not kept:
        raise DataError(f"no picture can be read ({broken[0]})", file=data.folder or data.test)
    scores, signatures, warnings = caption_scores([a.text for a, _ in kept], [right for _, right in kept])
    if output is not None:
        lines = [
            {"picture": answer.picture, "caption": answer.text, "references": list(right)} for answer, right in kept
        ]
        write_text(output, "".join(json_text(line) + "\n" for line in lines))
    captions = sum(len(right) for _, right in kept)
    return CaptionEvaluation(len(kept), captions, scores, signatures, broken + warnings, seconds)
