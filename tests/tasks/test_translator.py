"""Line in, line out: whatever comes in, at whatever batch size, by whatever search."""

import io
from dataclasses import replace

import pytest
import torch

from qkv.cli import main
from qkv.data.lines import read_lines
from qkv.decode.search import Sampling, Search
from qkv.errors import ConfigError, DataError
from qkv.models.transformer import Transformer
from qkv.tasks.evaluate import score_files
from qkv.tasks.lines_out import as_json, summary, text_lines

SENTENCES = [
    "그녀는 빵을 좋아합니다.",
    "저는 일했습니다.",
    "할아버지께서는 월요일에 시장에서 커피를 마시셨습니다.",
    "누가 노래를 들었습니까?",
]


def test_a_blank_or_broken_line_keeps_its_place(translator):
    stream = io.BytesIO("그녀는 빵을 좋아합니다.\n \n".encode() + b"\xff\xfe\n" + "저는 일했습니다.".encode())
    for batch_tokens in (1, 64, 4096):
        stream.seek(0)
        answers = list(translator.translate(read_lines(stream), batch_tokens=batch_tokens))
        assert [a.mark for a in answers] == ["", "blank", "undecodable", ""]
        assert answers[1].text == answers[2].text == ""
        assert answers[0].text and answers[3].text


def test_an_over_long_line_is_marked_and_counted(translator):
    translator.longest_source = 20
    answers = translator(["저는 일했습니다.", "저는 일했습니다. " * 20])
    assert [a.mark for a in answers] == ["", "over-long"]
    assert translator.counts["over-long"] == 1 and "1 over-long" in summary(translator.counts)


@pytest.mark.parametrize("how", [Search(), Search(beam=4, n_best=2, length_penalty=0.6)])
def test_batch_and_order_change_nothing(translator, how):
    alone = [translator(text, how=how) for text in SENTENCES]
    together = translator(SENTENCES, how=how)
    reverse = list(translator.translate(SENTENCES[::-1], how=how, batch_tokens=40, window=3))[::-1]
    for a, b, c in zip(alone, together, reverse, strict=True):
        assert a.ids == b.ids == c.ids
        torch.testing.assert_close(
            torch.tensor([a.score, a.score]), torch.tensor([b.score, c.score]), rtol=0, atol=1e-4
        )


def test_the_score_of_an_answer_is_what_score_gives_it(translator):
    translator.search = Search(beam=4, length_penalty=0.6)
    for text in SENTENCES:
        found = translator(text)
        given = next(translator.score([(text, found.text)]))
        if given.ids == found.ids:  # the same text may be cut into other pieces than were said
            assert given.score == pytest.approx(found.score, abs=1e-4)


def test_sampling_is_settled_by_seed_and_line(translator):
    how = Search(n_best=3, sampling=Sampling(seed=5))
    one, other = translator(SENTENCES, how=how), list(translator.translate(SENTENCES, how=how, batch_tokens=1))
    assert [a.ids for a in one] == [a.ids for a in other]
    assert len({a.ids for a in (one[0], *one[0].others)}) > 1


def test_a_prefix_begins_every_translation(translator):
    answers = list(translator.translate(SENTENCES, prefixes=["The"] * 4, how=Search(beam=3)))
    assert all(a.text.startswith("The") for a in answers)


def test_look_shows_the_hypothesis_that_was_returned(translator):
    translator.search = Search(beam=4)
    answer = translator(SENTENCES[0])
    seen = translator.look(SENTENCES[0])
    assert list(seen) == (
        [
            "encoder.0.attention", "encoder.1.attention", "decoder.0.attention", "decoder.0.cross",
            "decoder.1.attention", "decoder.1.cross", "source.position", "target.position",
        ] if isinstance(translator.model, Transformer) else ["decoder.attention"]
    )  # fmt: skip
    cross = seen.last("cross")
    assert cross.query.pieces == (translator.codec.target.pieces([translator.codec.start])[0], *answer.tokens[:-1])
    assert cross.key.text == SENTENCES[0]
    assert seen.notes["target"] == answer.text
    torch.testing.assert_close(cross.weights.sum(-1), torch.ones(cross.weights.shape[:2]))
    assert all(
        0 <= s < len(SENTENCES[0].split()) and 0 <= t < len(answer.text.split())
        for s, t in seen.notes["alignment"]["links"]
    )


def test_there_is_nothing_to_look_at_in_a_blank(translator):
    with pytest.raises(DataError, match="blank"):
        translator.look("  ")


def test_lines_out_are_as_many_as_lines_in(translator):
    answers = list(translator.translate(["", *SENTENCES], align=True))
    assert len(list(text_lines(answers))) == 5
    assert '"mark": "blank"' in as_json(answers[0])
    assert " ||| " in next(text_lines(answers[1:], align=True))


def test_special_text_is_text(translator):
    answer = translator("</s> <pad> <s> [MASK]")
    assert answer.source == "</s> <pad> <s> [MASK]"
    assert translator.codec.encode_source([answer.source])[0].count(translator.codec.source.end) == 1


def test_loading_again_gives_identical_answers(translator):
    import qkv

    assert [replace(a) for a in qkv.load(translator.folder)(SENTENCES)] == translator(SENTENCES)


def test_without_attention_gradients_and_states_are_shown_instead(unattending, tmp_path):
    seen = unattending.look(SENTENCES[0])
    assert list(seen) == ["gradient"] and "no attention" in seen.notes["remark"]
    (map,) = seen.select(kind="gradient")
    torch.testing.assert_close(map.weights.sum(-1), torch.ones(1, len(map.query)))
    assert len(seen.notes["norms"]["source"]) == len(map.key)
    assert len(seen.notes["norms"]["target"]) == len(map.query)
    for name in ("look.html", "look.svg", "look.safetensors"):
        seen.save(tmp_path / name)
    assert "no attention" in (tmp_path / "look.html").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="no attention"):
        unattending(SENTENCES, align=True)
    with pytest.raises(ConfigError, match="no heads to choose"):
        unattending.look(SENTENCES[0], heads=[0])


def test_a_picture_is_no_text_to_translate(translator, tmp_path, capsys):
    (tmp_path / "in.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert main(["translate", str(translator.folder), "--input", str(tmp_path / "in.txt")]) == 2
    assert "in.txt: is no text; it looks like a PNG picture" in capsys.readouterr().err


def test_the_terminal_says_that_gradients_are_shown(unattending, tmp_path, capsys):
    assert main(["look", str(unattending.folder), SENTENCES[0], "--out", str(tmp_path / "look.html")]) == 0
    assert "no attention" in (said := capsys.readouterr().out) and "Shown are gradients" in said


def test_gradients_can_be_asked_for_beside_attention(translator):
    seen = translator.look_at(translator(SENTENCES[0]), gradient=True, layers="*")
    cross, gradient = seen.last("cross"), seen["gradient"][0]
    assert (gradient.query, gradient.key) == (cross.query, cross.key)


def test_a_prefix_that_leaves_no_room_is_refused(translator):
    with pytest.raises(ConfigError, match="a prefix has"):
        list(translator.translate(SENTENCES, prefixes=["The girl works here"] * 4, longest=3))


def test_every_line_has_as_many_translations(translator):
    answers = translator(["", SENTENCES[0]], how=Search(beam=3, n_best=3))
    assert [len(line.splitlines()) for line in text_lines(answers, n_best=3)] == [3, 3]


def test_only_text_is_translated(translator):
    for wrong in (1, [1], None):
        with pytest.raises(TypeError, match="a text or a list of texts"):
            translator(wrong)


def test_a_pair_that_is_no_text_has_no_score_but_keeps_its_place(translator, tmp_path):
    long = "저는 일했습니다. " * 400
    (tmp_path / "s").write_bytes("저는 일했습니다.\n\n".encode() + b"\xff\n" + long.encode())
    (tmp_path / "t").write_text("I worked.\nb\nc\nd\n")
    answers = list(score_files(translator, tmp_path / "s", tmp_path / "t"))
    assert [answer.mark for answer in answers] == ["", "blank", "undecodable", "over-long"]
    assert answers[0].score < 0 and all(answer.score is None for answer in answers[1:])
    assert translator.counts == {"lines": 4, "blank": 1, "undecodable": 1, "over-long": 1}


def test_a_model_without_attention_has_no_layer_to_choose(unattending):
    with pytest.raises(ConfigError, match="no attention"):
        unattending.look(SENTENCES[0], layers=r"decoder.*.cross")
