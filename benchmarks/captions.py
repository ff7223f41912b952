"""Speed of captioning, against the way that tutorials do it; features are computed before on both sides.

    python benchmarks/captions.py            # decoding 200 pictures with beam 5, and training steps

The tutorial's side is written out below: a beam search that takes one picture at a time and scores the features anew at
every step, and a training step that loops over the words with a batch that shrinks as captions end, makes the logits
of each step. Both sides have the same weights, and it is checked that they
say the same and have the same loss.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from qkv.decode.search import Marks, Search, search
from qkv.layers.cross_entropy import linear_cross_entropy
from qkv.models.captioner import Captioner, CaptionerConfig

PAD, START, END = 0, 1, 2
WIDTH, CELLS = 1280, 49  # EfficientNet-Lite0 at 224 x 224 pixels


class Tutorial(nn.Module):
    """Show, Attend and Tell as tutorials write it: an `nn.LSTMCell`, and attention as three linear layers."""

    def __init__(self, ours: Captioner):
        super().__init__()
        dim, words = ours.config.dim, ours.config.words
        decoder, score = ours.decoder, ours.decoder.attention.score
        self.embedding = nn.Embedding(words, dim)
        self.of_cells, self.of_state, self.full = (
            nn.Linear(WIDTH, dim),
            nn.Linear(dim, dim, False),
            nn.Linear(dim, 1, False),
        )
        self.cell, self.gate = nn.LSTMCell(dim + WIDTH, dim), nn.Linear(dim, 1)
        self.begin_state, self.begin_cell = nn.Linear(WIDTH, dim), nn.Linear(WIDTH, dim)
        self.tell_state, self.tell_seen = nn.Linear(dim, dim), nn.Linear(WIDTH, dim, False)
        self.fc = nn.Linear(dim, words)
        with torch.no_grad():
            self.embedding.weight.copy_(ours.target.words.weight * ours.target.scale)
            for own, theirs in (
                (self.of_cells, score.key), (self.of_state, score.query), (self.full, score.value),
                (self.begin_state, decoder.begin_state), (self.begin_cell, decoder.begin_cell),
                (self.gate, decoder.gate[0]), (self.tell_state, decoder.tell_state),
                (self.tell_seen, decoder.tell_seen), (self.fc, ours.output),
            ):  # fmt: skip
                own.load_state_dict(theirs.state_dict())
            put, keep, show, new = range(4)  # of ours; torch's cell has input, forget, cell, output
            rows = torch.cat([torch.arange(dim) + dim * i for i in (put, keep, new, show)])
            past = decoder.of_past.weight[rows]
            self.cell.weight_ih.copy_(torch.cat([decoder.of_word.weight[rows], past[:, dim:]], 1))
            self.cell.weight_hh.copy_(past[:, :dim])
            self.cell.bias_ih.copy_(decoder.of_word.bias[rows])
            self.cell.bias_hh.zero_()

    def begin(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        mean = cells.mean(1)
        return self.begin_state(mean).tanh(), self.begin_cell(mean).tanh()

    def attend(self, cells: Tensor, state: Tensor) -> Tensor:
        scores = self.full((self.of_cells(cells) + self.of_state(state)[:, None]).tanh())[:, :, 0]
        return (cells * scores.softmax(1)[:, :, None]).sum(1)

    def step(self, words: Tensor, cells: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = self.gate(state).sigmoid() * self.attend(cells, state)
        state, cell = self.cell(torch.cat([words, seen], 1), (state, cell))
        return self.fc(words + self.tell_state(state) + self.tell_seen(seen)), state, cell

    def loss(self, cells: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        """Mean cross entropy; the batch shrinks as captions end."""
        lengths, order = lengths.sort(descending=True)
        cells, target = cells[order], target[order]
        words, (state, cell) = self.embedding(target), self.begin(cells)
        steps = (lengths - 1).tolist()
        predictions = torch.zeros(len(target), max(steps), self.fc.out_features)
        for t in range(max(steps)):
            left = sum(length > t for length in steps)
            logits, state, cell = self.step(words[:left, t], cells[:left], state[:left], cell[:left])
            predictions[:left, t] = logits
        packed = pack_padded_sequence(predictions, steps, batch_first=True).data
        wanted = pack_padded_sequence(target[:, 1:], steps, batch_first=True).data
        return nn.functional.cross_entropy(packed, wanted)

    @torch.no_grad()
    def caption(self, cells: Tensor, beam: int, longest: int) -> tuple[list[int], float]:
        """The best of one picture's hypotheses by the sum of log-probabilities; beams that ended are taken out."""
        cells = cells[None].expand(beam, -1, -1)
        words, texts = torch.full((beam, 1), START), torch.full((beam, 1), START)
        sums, ended = torch.zeros(beam, 1), []
        state, cell = self.begin(cells)
        left = beam
        for length in range(1, longest + 1):
            logits, state, cell = self.step(self.embedding(words)[:, 0], cells, state, cell)
            scores = logits.log_softmax(1)
            scores[:, [PAD, START]] = float("-inf")
            scores = sums + scores
            best, places = scores[0].topk(left) if length == 1 else scores.view(-1).topk(left)
            parents, new = places // scores.shape[1], places % scores.shape[1]
            texts = torch.cat([texts[parents], new[:, None]], 1)
            going = [i for i, word in enumerate(new.tolist()) if word != END]
            for i in set(range(len(new))) - set(going):
                ended.append((texts[i].tolist(), best[i].item()))
            left -= len(new) - len(going)
            if not left:
                break
            texts, sums, words = texts[going], best[going][:, None], new[going][:, None]
            state, cell, cells = state[parents[going]], cell[parents[going]], cells[:left]
        ended = ended or [(texts[0].tolist(), sums[0].item())]
        text, score = max(ended, key=lambda pair: pair[1])
        return text[1:], score


def made(words: int, dim: int) -> Captioner:
    """A captioner of random weights whose captions end after some ten words."""
    torch.manual_seed(0)
    model = Captioner(CaptionerConfig(words=words, dim=dim, encoder="efficientnet", encoder_size="lite0", dropout=0.0))
    with torch.no_grad():
        model.output.weight.mul_(3)
        model.output.bias[END] += 2.5
    return model


def decoding(model: Captioner, tutorial: Tutorial, cells: Tensor, beam: int, longest: int) -> tuple[float, float]:
    """Seconds of each side for all pictures."""
    how, marks = Search(beam=beam), Marks(START, END, (PAD, START))

    def ours() -> list[list[int]]:
        said = []
        for part in cells.split(50):
            with torch.inference_mode():
                state = model.start(part)
            found = search(model, state, marks, torch.full((len(part),), longest), how)
            said += [[*best[0].tokens, *([END] if best[0].ended else [])] for best in found]
        return said

    def theirs() -> list[list[int]]:
        return [tutorial.caption(picture, beam, longest)[0] for picture in cells]

    own, other = ours(), theirs()
    same = sum(a == b for a, b in zip(own, other, strict=True))
    print(f"the same caption of {same} of {len(cells)} pictures (the tutorial stops at the beam-th end, ours when no")
    print(f"hypothesis can become better); {np.mean([len(text) for text in own]):.1f} words a caption")
    return timed(ours, 1), timed(theirs, 1)  # both have run before


def training(model: Captioner, tutorial: Tutorial, batch: int, batches: int, rounds: int) -> tuple[float, float]:
    """Seconds of each side for one pass over the same captions, forward and backward."""
    chance = np.random.default_rng(0)
    lengths = np.clip(chance.normal(12.5, 3.5, batch * batches).round(), 6, 30).astype(int) + 2  # as of COCO's captions
    cells = torch.randn(batch * batches, CELLS, WIDTH, generator=torch.Generator().manual_seed(1)).relu()
    target = torch.zeros(len(lengths), lengths.max(), dtype=torch.long)
    for row, length in zip(target, lengths, strict=True):
        row[: length - 1] = torch.from_numpy(chance.integers(3, model.config.words, length - 1))
        row[0], row[length - 1] = START, END
    sizes = torch.from_numpy(lengths)

    def cut(order: np.ndarray) -> list[tuple[Tensor, Tensor, Tensor]]:
        parts = [torch.from_numpy(order[i : i + batch]) for i in range(0, len(order), batch)]
        return [(cells[part], target[part][:, : sizes[part].max()], sizes[part]) for part in parts]

    parts = cut(chance.permutation(len(lengths)))

    def our_loss(cells: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        states, words = model.tell(cells, target[:, :-1]), target[:, 1:]
        real = torch.arange(words.shape[1]) < (lengths - 1)[:, None]
        total, *_ = linear_cross_entropy(states[real], model.output.weight, model.output.bias, words[real])
        return total / real.sum()

    one = parts[0]
    print(f"loss of one batch: ours {our_loss(*one).item():.5f}, the tutorial's {tutorial.loss(*one).item():.5f}")

    def ours() -> None:
        for part in parts:
            our_loss(*part).backward()

    def theirs() -> None:
        for part in parts:
            tutorial.loss(*part).backward()

    ours(), theirs()
    return timed(ours, rounds), timed(theirs, rounds)


def timed(run, rounds: int) -> float:
    """Seconds of processor time, the median of some runs: other programs on the machine count less so."""
    seconds = []
    for _ in range(rounds):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--longest", type=int, default=20)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3, help="of training, of which the median is taken")
    wanted = parser.parse_args()
    model = made(wanted.words, wanted.dim)
    tutorial = Tutorial(model)
    generator = torch.Generator().manual_seed(0)
    cells = torch.randn(wanted.pictures, CELLS, WIDTH, generator=generator).relu()
    own, other = decoding(model.eval(), tutorial.eval(), cells, wanted.beam, wanted.longest)
    print(
        f"{wanted.pictures} pictures, beam {wanted.beam}: {own:.2f} s, the tutorial's {other:.2f} s: {other / own:.1f}x"
    )
    own, other = training(model.train(), tutorial.train(), wanted.batch, wanted.batches, wanted.rounds)
    print(
        f"{wanted.batches} steps of {wanted.batch} captions: {own:.2f} s, the tutorial's {other:.2f} s: "
        f"{other / own:.1f}x"
    )


if __name__ == "__main__":
    main()
