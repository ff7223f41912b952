"""What an encoder that was only pretrained says of a text: the words that it would put into the holes."""

from torch import Tensor, nn

from qkv.data.text_codec import Encoded, TextCodec
from qkv.errors import DataError
from qkv.tasks.encoder_look import Outcome, Reading, inputs

__all__ = ["read_holes"]


def read_holes(model: nn.Module, codec: TextCodec, longest: int, text: str, pair: str | None = None) -> Reading:
    """A text (or a pair, in which there are no holes) as the model reads it, and the likeliest word of each hole.

    Raises:
        DataError: there is no text, or more of it than the model reads.
    """
    if not text.strip():
        raise DataError("there is nothing to look at: the text is blank", expected="a text with words")
    encoded = codec.encode_holes(text) if pair is None else codec.encode(text, pair)
    if len(encoded) > longest:
        raise DataError(f"the text has {len(encoded)} tokens", expected=f"at most {longest}")
    holes = [token for token, i in enumerate(encoded.ids) if i == codec.mask] if model.config.head == "pretrain" else []
    outcomes = [_hole(model, codec, encoded, token) for token in holes]
    return Reading(encoded, codec.axis(encoded, text, pair), outcomes, "  ".join(one.name for one in outcomes))


def _hole(model: nn.Module, codec: TextCodec, encoded: Encoded, token: int) -> Outcome:
    word = int(model.words(model(*inputs(model, encoded))[0, [token]]).argmax())

    def score(states: Tensor, lengths: Tensor) -> Tensor:
        return model.words(states[0, [token]])[0].float().log_softmax(0)[word]

    return Outcome(codec.shown([word])[0], score, token)
