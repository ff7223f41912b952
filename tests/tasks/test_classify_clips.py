"""Learning from clips: losses that padding cannot touch, scores that do not flatter, answers that never stop."""

import json
import math
import shutil
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from PIL import Image

import qkv
from qkv.cli import main
from qkv.data.clip_batches import ClipBatch
from qkv.data.clip_codec import ClipCodec
from qkv.data.clip_files import ClipFiles
from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.data.shapes import clips, write_clips
from qkv.errors import ConfigError, DataError
from qkv.models.video import Video, VideoConfig
from qkv.tasks import kind_of
from qkv.tasks.classify_clips import ClassifyClips
from qkv.tasks.clip_classifier import ClipAnswer, ClipClassifier
from qkv.tasks.clips_out import answer_into, find, rows_of
from qkv.tasks.frame_scores import frame_scores
from qkv.tasks.regress_clips import RegressClips
from qkv.train.loop import train
from qkv.train.options import from_mapping
from samples import close, tensor

TINY = dict(encoder="linear", dim=16, depth=1, heads=2, hidden=32)
CODEC = ClipCodec(ImageCodec(Preprocess((16, 16)), ("calm", "wild")), 6, 2.0, ("0", "1"))


def model(**changes) -> Video:
    torch.manual_seed(0)
    whole = {"classes": 2, "frame_classes": 2, "frames": 6, "image": (16, 16), **TINY, **changes}
    made = Video(VideoConfig(**whole))
    for parameter in made.parameters():
        parameter.data += 0.1 * tensor(1, *parameter.shape)
    return made.eval()


def batch(lengths=(6, 2, 4), labels=(0, 1, 1), wider: int = 0, fill: float = 0.0) -> ClipBatch:
    longest = max(lengths) + wider
    images, marks = torch.full((len(lengths), longest, 3, 16, 16), fill), torch.full((len(lengths), longest), -1)
    for i, length in enumerate(lengths):
        images[i, :length] = tensor(i, length, 3, 16, 16)
        marks[i, :length] = torch.arange(length) % 2
    labels = torch.eye(2)[list(labels)]
    times = torch.arange(longest).float().expand(len(lengths), -1)
    return ClipBatch(images, torch.tensor(lengths), times, labels, marks, torch.arange(len(lengths)))


# Losses


@pytest.mark.parametrize(
    "task", [ClassifyClips(), ClassifyClips(0.0), ClassifyClips(1.0, 0.0), ClassifyClips(2.0, 0.5)]
)
def test_the_loss_of_a_batch_is_the_sum_of_its_clips_however_it_is_padded(task):
    """Mean of means is not the mean; padding, be it no number at all, is in no sum and no divisor."""
    net = model()
    whole = task.loss(net, batch())
    alone = [task.loss(net, batch((n,), (y,))) for n, y in ((6, 0),)]
    close(alone[0].total, task.loss(net, batch((6,), (0,))).total)
    padded = task.loss(net, batch(wider=0, fill=math.nan))
    close(whole.total, padded.total)
    singles = []
    for i in range(3):
        one = batch()
        part = {key: value[i : i + 1] for key, value in vars(one).items()}
        singles.append(task.loss(net, ClipBatch(**part)).total)
    close(whole.total, sum(singles))


def test_the_frame_loss_of_a_clip_is_the_mean_over_its_labelled_frames():
    net, some = model(), batch((4,), (0,))
    blind = replace(some, frame_labels=torch.full_like(some.frame_labels, -1))
    blind.frame_labels[0, 2] = 1
    logits = net.of_frames(net(some.images, some.lengths))
    close(ClassifyClips(0.0, 1.0).loss(net, blind).total, -logits[0, 2].log_softmax(-1)[1])
    blind.frame_labels[:] = -1
    assert ClassifyClips(0.0, 1.0).loss(net, blind).total == 0


def test_frames_count_only_where_the_data_have_them():
    net = model(frame_classes=0)
    assert net.frame_head is None and "frames" not in ClassifyClips().loss(net, batch()).parts
    with pytest.raises(ConfigError, match="no frame is labelled"):
        ClassifyClips(clip=0.0).config(replace(CODEC, frame_classes=()), VideoConfig())
    for wrong in ({"clip": -1.0}, {"clip": 0.0, "frames": 0.0}, {"smoothing": 1.0}):
        with pytest.raises(ConfigError, match=r"learn\."):
            ClassifyClips(**wrong)


@torch.no_grad()
def test_frames_that_are_padding_may_hold_anything_and_an_empty_clip_is_finite():
    """Mean pooling of frames [2,4],[4,8] and pads [9,9] is [3,6]; without a frame it is zeros."""
    net = model(pool="mean")
    some = batch((2, 6))
    some.images[0, 2:] = math.nan
    assert net(some.images, some.lengths)[0, :2].isfinite().all()
    states = torch.tensor([[[2.0, 4], [4, 8], [9, 9], [9, 9], [9, 9]], [[9, 9]] * 5])
    pooled = net.pool(states, torch.arange(5) < torch.tensor([[2], [0]]))
    assert pooled.tolist() == [[3, 6], [0, 0]]
    none = net(torch.zeros(1, 0, 3, 16, 16), torch.tensor([0]))
    assert net.of_clip(none, torch.tensor([0])).isfinite().all()


# Scores


def test_saying_that_nothing_is_marked_has_no_frame_f1():
    """Nine of ten frames are unmarked: accuracy flatters, F1 does not."""
    labels = np.array([0] * 9 + [1])
    never = frame_scores(np.eye(2)[np.zeros(10, int)], labels, ("0", "1"))
    assert never == {"frame_accuracy": 0.9, "frame_f1": 0.0}
    half = np.eye(2)[np.array([0] * 8 + [1, 1])]
    assert frame_scores(half, labels, ("0", "1"))["frame_f1"] == pytest.approx(2 / 3)
    none = frame_scores(np.eye(2)[np.zeros(4, int)], np.zeros(4, int), ("0", "1"))
    assert none["frame_accuracy"] == 1 and math.isnan(none["frame_f1"])
    several = frame_scores(np.eye(3)[[1, 2, 2]], np.array([1, 2, 1]), ("0", "a", "b"))
    assert several["frame_f1"] == pytest.approx(2 / 3)


# Answers


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips") / "d"
    write_clips(folder, {"train": 12, "val": 6, "test": 6}, size=16, classes=3)
    return folder


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """A run of a few steps."""
    settings = {
        "data": {"folder": str(data), "batch": 6},
        "size": TINY,
        "loop": {"steps": 4, "evaluate_every": 2},
        "out": tmp_path_factory.mktemp("runs") / "clips",
    }
    return train(from_mapping("classify", settings)).folder


def test_a_run_is_trained_and_opened_by_its_kind(data, run):
    assert kind_of("classify", str(data)) == "clips"
    assert json.loads((run / "answer.json").read_text()) == {"task": "classify", "kind": "clips"}
    lines = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    named = {name for line in lines for name in line.get("dev", {})}
    assert named == {"loss", "accuracy", "macro_f1", "frame_accuracy", "frame_f1"}
    classifier = qkv.load(run)
    answer = classifier(data / "test" / "checks" / "00000")
    assert isinstance(answer, ClipAnswer) and answer.label == next(iter(answer.probabilities))
    assert sum(answer.probabilities.values()) == pytest.approx(1) and set(answer.probabilities) == {
        "checks",
        "cross",
        "disc",
    }
    assert len(answer.times) == len(answer.frames) == len(answer.frame_probabilities) == 16


def test_an_answer_does_not_depend_on_its_neighbours_and_a_broken_clip_stops_nothing(data, run, tmp_path):
    classifier = qkv.load(run)
    short = tmp_path / "short"
    short.mkdir()
    for i in range(3):
        shutil.copy(data / "test" / "disc" / "00002" / f"{i:02}.png", short / f"{i}.png")
    (tmp_path / "broken.gif").write_bytes(b"GIF89a")
    (tmp_path / "empty").mkdir()
    paths = [
        short,
        tmp_path / "broken.gif",
        data / "test" / "cross" / "00001",
        tmp_path / "empty",
        tmp_path / "none.gif",
    ]
    answers = list(classifier.answers(paths, batch=5))
    assert [bool(answer.mark) for answer in answers] == [False, True, False, True, True]
    assert "there is no frame" in answers[3].mark and classifier.counts == {"clips": 5, "unreadable": 3}
    for answer in (answers[0], answers[2]):
        alone = classifier(answer.clip)
        assert (alone.label, alone.frames) == (answer.label, answer.frames)
        assert list(alone.probabilities.values()) == pytest.approx(list(answer.probabilities.values()), abs=1e-5)
    with pytest.raises(DataError, match=r"broken\.gif: this is no picture"):
        classifier(tmp_path / "broken.gif")


def test_the_same_frames_are_the_same_answer_as_a_folder_and_as_an_animation(run, tmp_path):
    clip = next(clips(8, size=16))
    images = [Image.fromarray(frame) for frame in clip.frames]
    images[0].save(tmp_path / "c.webp", save_all=True, append_images=images[1:], duration=1000, lossless=True)
    (tmp_path / "c").mkdir()
    for i, image in enumerate(images):
        image.save(tmp_path / "c" / f"{i}.png")
    classifier = qkv.load(run)
    one, other = classifier(tmp_path / "c"), classifier(tmp_path / "c.webp")
    assert replace(one, clip="") == replace(other, clip="")


def test_marked_stretches_have_times():
    answer = ClipAnswer("c", times=(0.0, 0.5, 1.0, 1.5, 2.0), frames=("1", "1", "0", "cut", "1"))
    assert answer.spans == ((0.0, 0.5, "1"), (1.5, 1.5, "cut"), (2.0, 2.0, "1"))
    assert ClipAnswer("c", times=(0.0,)).spans == () and ClipAnswer("c", times=(0.0,), frames=("0",)).spans == ()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_killed_run_over_many_clips_goes_on_and_ends_with_the_same_file(data, run, tmp_path, suffix):
    classifier = qkv.load(run)
    clips = find([str(data / "test")])
    assert len(clips) == 6
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    list(answer_into(classifier, clips, rows_of(classifier, whole), batch=2))
    answers = answer_into(classifier, clips, rows_of(classifier, out), batch=2)
    for _ in range(3):
        next(answers)
    with open(out.with_name(out.name + ".partial"), "ab") as file:
        file.write(b"cut sho")
    rows = rows_of(classifier, out)
    assert len(rows.left(clips)) == 4 and not out.exists()
    list(answer_into(classifier, rows.left(clips), rows, batch=2))
    assert out.read_bytes() == whole.read_bytes()
    with pytest.raises(ConfigError, match="it is there already"):
        rows_of(classifier, out)
    rows_of(classifier, tmp_path / f"other{suffix}")
    with torch.no_grad():
        classifier.model.head.output.bias.add_(1)
    with pytest.raises(ConfigError, match="begun by another run"):
        rows_of(classifier, tmp_path / f"other{suffix}")


def test_the_verbs(data, run, tmp_path, capsys):
    assert main(["classify", str(run), str(data / "test"), str(tmp_path / "no.gif"), "--top", "1"]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 7 and "-- cannot be read" in said.out and "1 could not be read" in said.err
    assert main(["classify", str(run), str(data / "test"), "--out", str(tmp_path / "x.csv")]) == 0
    head, first, *_ = (tmp_path / "x.csv").read_text().splitlines()
    assert head == "clip,error,label,p(checks),p(cross),p(disc),marked" and first.startswith(
        f"{data}/test/checks/00000,,"
    )
    assert main(["classify", str(run), str(data / "test"), "--out", str(tmp_path / "x.jsonl")]) == 0
    assert len(json.loads((tmp_path / "x.jsonl").read_text().splitlines()[0])["frames"]) == 16
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", str(data), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["clips"] == 6 and set(result["scores"]) >= {"accuracy", "macro_f1", "ece", "frame_f1"}
    assert main(["evaluate", str(run), "--data", str(data / "test")]) == 0
    assert "frame_f1" not in capsys.readouterr().out  # folders say nothing of frames
    assert main(["info", str(run)]) == 0
    wrong, page = tmp_path / "wrong.csv", tmp_path / "worst.html"
    wrong.write_text("path,label\n" + f"{data}/test/checks/00000,cross\n{data}/test/checks/00003,disc\n")
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", str(wrong), "--page", str(page)]) == 0
    said, cards = capsys.readouterr(), page.read_text().split('<section class="card">')[1:]
    assert "wrote" in said.err and len(cards) == said.out.count(", is ") > 0
    assert all(card.count('<figure class="frame small">') == 16 for card in cards)
    other = tmp_path / "t.csv"
    other.write_text(f"path,label\n{data}/test/checks/00000,stranger\n")
    assert main(["evaluate", str(run), "--data", str(other)]) == 2
    assert "does not know the class 'stranger'" in capsys.readouterr().err


def test_drawn_clips_are_written_by_a_verb(tmp_path, capsys):
    assert main(["shapes", "--out", str(tmp_path / "c"), "--clips", "--train", "12", "--val", "6", "--test", "2"]) == 0
    assert main(["check", str(tmp_path / "c")]) == 0 and "train: 12 clips read" in capsys.readouterr().out
    assert main(["shapes", "--out", str(tmp_path / "c")]) == 2
    assert main(["shapes", "--out", str(tmp_path / "p"), "--train", "0"]) == 2


def test_a_run_starts_from_another_of_the_same_and_of_other_classes(data, run, tmp_path, capsys):
    settings = {"data": {"folder": str(data)}, "init": str(run), "loop": {"steps": 1}, "out": tmp_path / "more"}
    folder = train(from_mapping("classify", settings)).folder
    assert ClipCodec.load(folder / "codec") == ClipCodec.load(run / "codec")
    assert "nothing is new" in capsys.readouterr().out
    write_clips(tmp_path / "d", {"train": 8, "val": 4}, seed=1, size=24, classes=4)
    (tmp_path / "d" / "train.jsonl").unlink()  # folders alone: no frame is labelled
    (tmp_path / "d" / "val.jsonl").unlink()
    settings |= {"data": {"folder": str(tmp_path / "d")}, "out": tmp_path / "other"}
    codec = ClipCodec.load(train(from_mapping("classify", settings)).folder / "codec")
    theirs = ClipCodec.load(run / "codec")
    assert codec.images.preprocess == theirs.images.preprocess and codec.frames == theirs.frames
    assert len(codec.images.classes) == 4 and codec.frame_classes == ()
    assert "new are head.output.weight, head.output.bias" in capsys.readouterr().out


def test_a_number_of_a_clip(data, tmp_path, capsys):
    """How many frames hold the event: a number to be learned from the same clips."""
    with open(data / "train.jsonl") as table, open(data / "numbers.csv", "w") as numbers:
        numbers.write("path,label\n")
        for row in map(json.loads, table):
            numbers.write(f"{row['path']},{sum(row['frames'])}\n")
    where = data / "numbers.csv"
    settings = {"kind": "clips", "data": {"train": str(where), "hold_out": 0.3}, "size": TINY}
    settings |= {"loop": {"steps": 2}, "out": tmp_path / "r"}
    run = from_mapping("regress", settings)
    assert run.data.labels == "number"
    folder = train(run).folder
    answer = qkv.load(folder)(data / "test" / "checks" / "00000")
    assert isinstance(answer.label, float) and answer.probabilities is None
    assert main(["regress", str(folder), str(data / "test" / "checks")]) == 0
    assert main(["evaluate", str(folder), "--data", str(where)]) == 0
    told = capsys.readouterr().out
    assert "spearman" in told and "no frame is labelled" in told
    with pytest.raises(ConfigError, match="qkv train classify"):
        RegressClips().config(CODEC, VideoConfig())
    with pytest.raises(ConfigError, match="qkv train regress"):
        ClassifyClips.recipe(replace(run, data=ClipFiles(labels="number")))


@pytest.mark.learning
def test_it_finds_the_class_and_the_frames_of_the_event(tmp_path):
    write_clips(tmp_path / "d", {"train": 240, "val": 60}, size=16, classes=3)
    settings = {
        "data": {"folder": str(tmp_path / "d")},
        "size": {"encoder_size": "nano", "patch": 8, "dim": 64, "depth": 2, "heads": 2, "hidden": 128},
        "optimize": {"lr": 3e-3, "warmup": 20},
        "loop": {"steps": 120, "evaluate_every": 120},
        "out": tmp_path / "run",
    }
    scores = train(from_mapping("classify", settings)).scores
    assert scores["accuracy"] >= 0.9 and scores["frame_f1"] >= 0.9, scores
    classifier: ClipClassifier = qkv.load(tmp_path / "run")
    right = [
        classifier.answer([(clip.frames, list(range(16)))], ["c"])[0].label == ("checks", "cross", "disc")[clip.label]
        for clip in islice(clips(1, size=16, classes=3), 30)
    ]
    assert sum(right) >= 25
