"""The doctor of labelled texts: what repeats, what one part gives away of another, and what the labels are like."""

from qkv.data.classes import judge
from qkv.data.report import Report
from qkv.data.texts import TextFiles
from qkv.data.texts_listing import LabelledText, list_texts
from qkv.errors import DataError

__all__ = ["examine_all", "without_repeats"]


def examine_all(data: TextFiles, every: bool = False) -> tuple[Report, dict[str, list[LabelledText]]]:
    """The report, and the texts of each part that can be used."""
    report = Report(unit="texts", every=every)
    examples = without_repeats(list_texts(data, report), report, data.keep_duplicates)
    for part, some in examples.items():
        report.kept[part] = len(some)
        if not some:
            reasons = "; ".join(str(finding) for finding in report.findings if finding.part == part)
            wrong = f"no text of {part} is left" + (f" ({reasons})" if reasons else "")
            report.refused.append(DataError(wrong, remedy="mend them", file=report.files[part][0]))
    if not report.refused:
        judge({part: [one.label for one in some] for part, some in examples.items()}, data.labels, report)
    return report, examples


def without_repeats(examples: dict[str, list], report: Report, keep_duplicates: bool) -> dict[str, list]:
    """Train without what is also in dev or test, and without what repeats; whatever else repeats is noted.

    Examples have ``where``, ``texts`` and ``label``.
    """
    first = {part: _first(some) for part, some in examples.items()}
    kept = {}
    for part, some in examples.items():
        kept[part] = []
        for one in some:
            earlier = first[part][one.texts]
            held_out = [other for other in examples if other != "train" and part == "train"]
            if also := next((other for other in held_out if one.texts in first[other]), None):
                like = f"{one.where} like {first[also][one.texts].where}"
                report.add("train", f"{report.unit} that are also in {also}", "dropped", like)
                continue
            if earlier is not one:
                like = f"{one.where} like {earlier.where}"
                if earlier.label != one.label:
                    report.add(part, f"repeated {report.unit} with another label", "noted", like)
                else:
                    drop = part == "train" and not keep_duplicates
                    report.add(part, f"repeated {report.unit}", "dropped" if drop else "noted", like)
                    if drop:
                        continue
            kept[part].append(one)
    for part in examples:
        if overlap := report.count("train", f"{report.unit} that are also in {part}"):
            report.remarks.append(
                f"WARNING: {overlap:,} {report.unit} of train are also in {part}; they are dropped from train, "
                f"so that scores on {part} are scores on unseen {report.unit}"
            )
    return kept


def _first(some: list) -> dict:
    first: dict = {}
    for one in some:
        first.setdefault(one.texts, one)
    return first
