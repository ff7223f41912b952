"""The worst mistakes of a model on texts, each with what was looked at, as one offline page."""

from collections.abc import Iterator
from pathlib import Path

from qkv.errors import DataError
from qkv.look.page import write_page
from qkv.look.record import Trace
from qkv.tasks.evaluate_tags import TagEvaluation
from qkv.tasks.evaluate_texts import TextEvaluation
from qkv.tasks.tagger import Tagger
from qkv.tasks.text_classifier import TextClassifier

__all__ = ["write_mistakes"]

MOST = 24


def write_mistakes(
    model: TextClassifier | Tagger, evaluation: TextEvaluation | TagEvaluation, path: Path, most: int = MOST
) -> int:
    """Write the page; how many mistakes are on it. Of the maps of attention it has the rows of the first token alone.

    Raises:
        DataError: there are no mistakes.
    """
    traces = list((_texts if isinstance(model, TextClassifier) else _sentences)(model, evaluation, most))
    if not traces:
        raise DataError("there are no mistakes to show", file=path, remedy="leave --page out")
    write_page(traces, path, title="The worst mistakes")
    return len(traces)


def _texts(classifier: TextClassifier, evaluation: TextEvaluation, most: int) -> Iterator[Trace]:
    for place in evaluation.mistakes[:most]:
        example, answer = evaluation.examples[place], evaluation.answers[place]
        seen = classifier.look_at(answer, queries=[0])
        true = example.label if isinstance(example.label, (str, float)) else "|".join(example.label)
        seen.notes["remark"] = f"{example.where}: it is {true}, and was said to be {answer}"
        yield seen


def _sentences(tagger: Tagger, evaluation: TagEvaluation, most: int) -> Iterator[Trace]:
    for place in evaluation.mistakes[:most]:
        example, answer = evaluation.examples[place], evaluation.answers[place]
        seen = tagger.look_at(answer, queries=[0])
        wrong = [
            f"{word or ' '} is {true}, said {said}"
            for word, true, said in zip(example.words, example.tags, answer.tags, strict=True)
            if true != said
        ]
        more = f" and {len(wrong) - 6} more" if len(wrong) > 6 else ""
        seen.notes["remark"] = f"{example.where}: {'; '.join(wrong[:6])}{more}"
        yield seen
