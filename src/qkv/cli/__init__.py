"""The ``qkv`` command. A verb is a module with ``main(argv)``; none is imported before it is asked for."""

import sys
from collections.abc import Sequence

__all__ = ["VERBS", "main"]

VERBS = {
    "train":     ("qkv.cli.train", "train a model on your own data"),
    "translate": ("qkv.cli.translate", "translate lines with a trained model"),
    "classify":  ("qkv.cli.classify", "tell the classes of pictures or texts with a trained model"),
    "regress":   ("qkv.cli.regress", "tell the numbers of pictures or texts with a trained model"),
    "tag":       ("qkv.cli.tag", "tag the words of lines with a trained model"),
    "fill":      ("qkv.cli.fill", "say what may stand where a text has a [MASK]"),
    "embed":     ("qkv.cli.embed", "make a vector of each line, or find the lines nearest to a text"),
    "caption":   ("qkv.cli.caption", "tell about pictures with a trained model"),
    "score":     ("qkv.cli.score", "how likely a model finds given pairs"),
    "look":      ("qkv.cli.look", "see what a model looked at"),
    "evaluate":  ("qkv.cli.evaluate", "score a model on a test set"),
    "compare":   ("qkv.cli.compare", "train several models under one budget, side by side"),
    "vectors":   ("qkv.cli.vectors", "neighbours, analogies and files of word vectors"),
    "check":     ("qkv.cli.check", "find what is wrong with your data, before training"),
    "info":      ("qkv.cli.info", "what a run is: parameters, data, scores, versions"),
    "import":    ("qkv.cli.import_", "turn published weights into a qkv run"),
    "export":    ("qkv.cli.export", "turn a qkv run into published formats"),
    "phrases":   ("qkv.cli.phrases", "write the built-in sentence pairs with their gold alignments"),
    "shapes":    ("qkv.cli.shapes", "write drawn pictures and clips, with what decides their class"),
    "scenes":    ("qkv.cli.scenes", "write the built-in drawn scenes with captions"),
    "demo":      ("qkv.cli.demo", "train, translate and look, on built-in sentences, in minutes"),
}  # fmt: skip

USAGE = "usage: qkv VERB ... [--debug]   (qkv VERB --help shows what it takes)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; its exit code. A user's mistake is one sentence on stderr and 2; ``--debug`` shows the trace too."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not words or words[0] in ("-h", "--help"):
        print("\n".join([USAGE, "", *(f"  {verb:10} {about}" for verb, (_, about) in VERBS.items())]))
        return 0
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"qkv {version('qkv')}")
        return 0

    from importlib import import_module

    from qkv.errors import ConfigError, UserError, nearest

    try:
        if words[0] not in VERBS:
            raise ConfigError(f"there is no verb {words[0]!r}", remedy=nearest(words[0], VERBS))
        return import_module(VERBS[words[0]][0]).main(words[1:]) or 0
    except UserError as error:
        if debug:
            raise
        print(f"qkv: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as in `qkv ... | head`
        sys.stderr.close()
        return 141
    except OSError as error:  # a path that cannot be read or written: the user's to mend
        if debug or error.filename is None:
            raise
        print(f"qkv: {error.filename2 or error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if debug:
            raise
        print("qkv: interrupted", file=sys.stderr)
        return 130
