"""Pictures in, captions out: the search's laws, what is marked, and maps that belong to the caption beside them."""

import numpy as np
import pytest
import torch
from PIL import Image

from captioners import captioner, pixels, run_of
from qkv.data.pictures import PictureError
from qkv.decode.search import Search
from qkv.errors import ConfigError, DataError, RunError
from qkv.layers.keep import keep
from qkv.look.told import look_at_picture, told_words
from qkv.tasks.captioner import looks
from qkv.tasks.load import load
from samples import close

BEAM = Search(beam=4, n_best=4)


@pytest.fixture(scope="module", params=["captioner", "caption-transformer"])
def teller(request):
    return captioner(request.param)


class Followed:
    """A model whose search is watched: of each hypothesis, the words it was built of and the weights of each step."""

    def __init__(self, model, layer):
        self.model, self.layer = model, layer
        self.paths = [((), ())]
        self.seen = {}

    def step(self, state, tokens):
        with keep(self.layer) as kept:
            logits, state = self.model.step(state, tokens)
        rows = kept.runs[-1][0].mean(0)  # beam, cell
        self.paths = [
            ((*said, word), (*weights, row))
            for (said, weights), word, row in zip(self.paths, tokens[0].tolist(), rows, strict=True)
        ]
        self.seen |= dict(self.paths)
        return logits, state

    def select(self, state, parents, images=None):
        self.paths = [self.paths[parent] for parent in parents[0].tolist()]
        return self.model.select(state, parents, images)


def test_the_maps_of_a_hypothesis_are_those_of_its_own_steps_after_all_reordering(teller):
    from qkv.decode.search import Marks, search

    layer = looks(teller.model)[-1]
    for picture in pixels(3):
        cells = teller.see([teller.codec.preprocess.shown(picture)])
        watched = Followed(teller.model, teller.model.get_submodule(layer))
        marks = Marks(teller.codec.start, teller.codec.end, (teller.codec.pad, teller.codec.start))
        with torch.inference_mode():
            found = search(watched, teller.model.start(cells), marks, torch.tensor([12]), BEAM)[0]
        told = teller.tell(cells, BEAM)[0]
        for hypothesis, answer in zip(found, [told, *told.others], strict=True):
            assert answer.ids == (*hypothesis.tokens, *([teller.codec.end] if hypothesis.ended else []))
            read = (teller.codec.start, *answer.ids[:-1])
            seen, _ = teller.replay(cells, [answer])
            close(seen[layer][0].weights.mean(0), torch.stack(watched.seen[read]))


def test_neighbours_and_order_change_no_caption(teller):
    pictures = pixels(5)
    alone = [teller(picture, how=BEAM) for picture in pictures]
    for order, batch in (([0, 1, 2, 3, 4], 5), ([4, 2, 0, 1, 3], 2)):
        together = list(teller.caption([pictures[i] for i in order], how=BEAM, batch=batch))
        for i, answer in zip(order, together, strict=True):
            assert answer.ids == alone[i].ids
            assert answer.score == pytest.approx(alone[i].score, abs=1e-4)


def test_a_score_is_what_scoring_the_caption_gives(teller):
    picture = pixels(1)[0]
    cells = teller.see([teller.codec.preprocess.shown(picture)])
    answer = teller.tell(cells, Search(beam=3, length_penalty=1.0))[0]
    gains = teller.gains(cells, [list(answer.ids)])[0]
    assert gains.tolist() == pytest.approx(list(answer.token_scores), abs=1e-4)


def test_an_unfinished_caption_is_given_and_marked(teller):
    answer = next(teller.caption(pixels(1), how=Search(beam=3), longest=1))
    cut = [one for one in (answer, *answer.others) if not one.ended]
    assert len(answer.ids) == 1 and (cut or answer.ids == (teller.codec.end,))
    teller.model.output.bias.data[teller.codec.end] -= 1e4  # now no caption ever ends
    try:
        answer = teller(pixels(1)[0], how=Search(beam=3), longest=4)
        assert not answer.ended and len(answer.ids) == 4 and answer.text
        assert teller.codec.end not in answer.ids
    finally:
        teller.model.output.bias.data[teller.codec.end] += 1e4


def test_n_best_does_not_change_the_best(teller):
    picture = pixels(1)[0]
    assert teller(picture, how=Search(beam=4)).ids == teller(picture, how=BEAM).ids


def test_what_cannot_be_read_is_marked_in_its_place(teller, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"not a picture")
    good = tmp_path / "good.png"
    Image.fromarray(pixels(1)[0]).save(good)
    told = list(teller.caption([good, tmp_path / "bad.jpg", tmp_path / "gone.png", good]))
    assert [bool(answer.mark) for answer in told] == [False, True, True, False]
    assert told[0].ids == told[3].ids and told[0].picture == str(good)
    assert "bad.jpg" in told[1].wrong and not told[1].text
    with pytest.raises(DataError, match="cannot be read"):
        teller(tmp_path / "gone.png")
    with pytest.raises(PictureError):
        teller.look(tmp_path / "bad.jpg")


def test_a_run_answers_as_the_model_that_was_saved(tmp_path):
    folder, picture = run_of(tmp_path / "run"), pixels(1)[0]
    assert load(folder)(picture).ids == captioner()(picture).ids


@pytest.mark.parametrize("mode", ["turned", "clear", "grey"])
def test_every_way_of_asking_sees_the_same_picture(teller, tmp_path, mode):
    """BL-17, BL-19: turned by EXIF, transparent, grey; read from a file, from bytes, and for the look."""
    file, image = tmp_path / "a.png", Image.fromarray(pixels(1)[0])
    if mode == "turned":
        exif = Image.Exif()
        exif[0x0112] = 6
        image.save(file, exif=exif)
        expected = np.rot90(np.asarray(image), -1)
    elif mode == "clear":
        image.putalpha(0)
        image.save(file)
        expected = np.full((*image.size, 3), 255)
    else:
        image.convert("L").save(file)
        expected = np.repeat(np.asarray(image.convert("L"))[:, :, None], 3, 2)
    assert np.array_equal(teller.read(file), expected)
    answers = [teller(file), teller(file.read_bytes()), teller(expected.astype(np.uint8))]
    assert len({answer.ids for answer in answers}) == 1
    if mode == "turned":
        assert tuple(look_at_picture(teller, file).notes["picture"]["file_size"]) == expected.shape[:2]


def test_looking_changes_no_answer(teller):
    """BL-61."""
    picture = pixels(1)[0]
    before = teller(picture)
    seen = look_at_picture(teller, picture, how=teller.search)
    assert seen.notes["caption"] == before.text == teller(picture).text
    assert [word.text for word in told_words(seen)][:-1] == before.text.split() or not before.ended


def test_without_attention_there_is_nothing_to_look_at_and_it_says_so():
    teller = captioner("no attention")
    picture = pixels(1)[0]
    assert teller(picture).ids
    with pytest.raises(RunError, match=r"no attention.*--size\.attention additive"):
        told_words(look_at_picture(teller, picture))
    with pytest.raises(ConfigError, match="no heads to choose"):
        look_at_picture(teller, picture, heads=[0])


def test_beta_is_told_word_by_word():
    seen = look_at_picture(captioner(), pixels(1)[0])
    words = told_words(seen)
    assert all(0 < word.beta < 1 for word in words)
    assert len(seen.notes["beta"]) == len(seen.notes["token_scores"])
    assert all(word.heat.sum() == pytest.approx(1, abs=1e-5) for word in words)
    close(torch.tensor([w.chance for w in words]).log().sum(), torch.tensor(sum(seen.notes["token_scores"])), 1e-4)
