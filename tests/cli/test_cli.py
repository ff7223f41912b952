"""The command line: fast help, one sentence for a mistake, the nearest name for a mistyped one."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from qkv import models, tasks
from qkv.cli import VERBS, main
from qkv.train.options import from_flags, from_mapping, to_yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "train"))


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setitem(tasks.TASKS, "toy", "toy:Toy")
    monkeypatch.setitem(models.MODELS, "mlp", "toy:MLP")


def run(*words: str, capsys) -> tuple[int, str, str]:
    try:
        code = main(words)
    except SystemExit as leave:
        code = leave.code or 0
    told = capsys.readouterr()
    return code, told.out, told.err


def test_help_is_fast_and_needs_no_torch():
    code = "import sys, qkv.cli; qkv.cli.main(['--help']); assert not {'torch', 'jsonargparse'} & set(sys.modules)"
    times = []
    for _ in range(3):
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        times.append(time.monotonic() - begin)
        assert done.returncode == 0, done.stderr
    assert min(times) < 0.5
    assert all(verb in done.stdout for verb in VERBS)


def test_train_help_needs_no_torch():
    code = "import sys, qkv.cli\ntry: qkv.cli.main(['train', '--help'])\nfinally: assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "qkv train translate --data" in done.stdout


def test_each_verb_has_its_module():
    for module, about in VERBS.values():
        assert importlib.util.find_spec(module) and about


TOY = ["train", "toy", "--out", "o"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "there is no verb 'trian'. Did you mean 'train'? known: caption"),
        (["train"], "qkv train must be told the task; expected one of"),
        (["train", "toi"], "no task is called 'toi'. Did you mean 'toy'?"),
        (["train", "toy"], "--out is missing"),
        (["train", "toy", "--out"], "argument --out: expected one argument"),
        ([*TOY, "--optimise.lr", "3"], "there is no option --optimise.lr. Did you mean --optimize.lr"),
        ([*TOY, "--lr", "3"], "there is no option --lr. Did you mean --optimize.lr"),
        ([*TOY, "--optimize.lr", "fast"], "optimize.lr is 'fast'; expected a number"),
        ([*TOY, "--optimize.lr", "-1"], "optimize.lr is -1.0; expected a number above 0"),
        ([*TOY, "--loop.steps", "x"], "loop.steps is 'x'; expected a whole number or null"),
        ([*TOY, "--loop.precision", "fp8"], "loop.precision is 'fp8'; expected one of auto, fp32"),
        ([*TOY, "--size", "lage"], "there is no size 'lage'. Did you mean 'large'?"),
        ([*TOY, "--size.classes", "3"], "there is no option --size.classes"),
        ([*TOY, "--model", "transformer"], "model 'transformer' cannot learn to toy; expected one of mlp"),
        ([*TOY, "--model", "mpl"], "no model is called 'mpl'. Did you mean 'mlp'?"),
        ([*TOY, "--model", "none.py:M"], "there is no file none.py"),
        ([*TOY, "--config", "no.yaml"], "no.yaml: cannot be read"),
        ([*TOY, "stray"], "unrecognized arguments: stray"),
        ([*TOY, "--optimize.schedule", "cosine", "--loop.minutes", "3"], "cosine must know the last step"),
        ([*TOY, "--init", "nowhere"], "nowhere/model.json: is missing"),
        (["info"], "RUN is missing"),
        (["info", "nowhere"], "nowhere: there is no run"),
        (["info", "nowhere", "--jsn"], "there is no option --jsn. Did you mean --json"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (2, "")
    assert message in err and err.startswith("qkv: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_trace(capsys):
    with pytest.raises(Exception, match="there is no verb"):
        main(["trian", "--debug"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("optimise: {lr: 3}", "there is no key 'optimise.lr'. Did you mean optimize.lr"),
        ("optimize: {lr: x}", "optimize.lr is 'x'; expected a number"),
        ("size: huge", "there is no size 'huge'"),
        ("optimize: [", ":1: is not YAML"),
        ("", "holds no keys"),
    ],
)
def test_a_mistake_in_yaml(text, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(text)
    code, _, err = run("train", "toy", "--out", "o", "--config", str(tmp_path / "run.yaml"), capsys=capsys)
    assert code == 2 and message in err and err.count("\n") == 1


def test_print_config_round_trip(capsys, tmp_path):
    flags = [
        "--data.rows",
        "12",
        "--size",
        "large",
        "--size.dropout=0",
        "--optimize.betas",
        "[0.8, 0.9]",
        "--loop.tensorboard",
    ]
    code, out, _ = run("train", "toy", "--out", str(tmp_path / "o"), *flags, "--print_config", capsys=capsys)
    assert code == 0
    (tmp_path / "run.yaml").write_text(out)
    first = from_flags(["toy", "--out", str(tmp_path / "o"), *flags])
    again = from_flags(["--config", str(tmp_path / "run.yaml")])
    assert first == again == from_mapping("toy", yaml.safe_load(out))
    assert yaml.safe_load(to_yaml(first)) == yaml.safe_load(out)
    assert first.size.hidden == 16 and first.size.dropout == 0 and first.optimize.betas == (0.8, 0.9)
    assert first.loop.tensorboard and first.data.rows == 12

    (tmp_path / "short.yaml").write_text("task: toy\nsize: small\nout: o\n")
    assert from_flags(["--config", str(tmp_path / "short.yaml"), "--size.hidden", "9"]).size.hidden == 9
    over = from_flags(["--config", str(tmp_path / "run.yaml"), "--size", "small"])
    assert over.size.hidden == 8 and over.size.dropout == 0  # the row replaces its own keys only


@pytest.mark.parametrize("verb", ["import", "export"])
def test_help_of_published_weights_names_what_reads_texts(verb, capsys):
    _, out, _ = run(verb, "--help", capsys=capsys)
    assert all(name in out for name in ("BERT", "DistilBERT", "sentence encoder", "runs/bert", "runs/minilm"))


def test_help_says_what_each_key_is(capsys):
    code, out, _ = run("train", "toy", "--help", capsys=capsys)
    assert code == 0
    for part in ("Rows to train on.", "Learning rate at its peak", "--size NAME", "one of small, large", "examples:"):
        assert part in out
    assert "--size.classes" not in out


def test_help_of_training_has_a_title_for_each_group_and_no_markup(capsys):
    for words in (["caption"], ["classify", "--model", "local-attention"], ["vectors"], ["translate"]):
        code, out, _ = run("train", *words, "--help", capsys=capsys)
        assert code == 0
        lines = out.splitlines()
        titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
        assert titles[:3] == ["options:", "the data:", titles[2]] and len(titles) == len(set(titles))
        assert all(len(title) < 45 and ". " not in title for title in titles)
        assert "`" not in out and "Args:" not in out
        begin = lines.index("") + 1
        assert lines[begin].endswith(".") and lines.count(lines[begin]) == 1  # what the task is, once


def test_help_of_training_says_what_is_short_for_a_key(capsys):
    out = " ".join(run("train", "vectors", "--help", capsys=capsys)[1].split())
    assert "Width of a vector; --dim for short" in out and "--threads for short" in out


def test_help_of_a_verb_says_what_it_does_once(capsys):
    _, out, _ = run("phrases", "--help", capsys=capsys)
    assert out.count("Write Korean-English sentence pairs") == 1 and "\nwhat it takes:\n" in out


def test_what_means_nothing_to_a_model_is_not_offered(capsys, tmp_path):
    words = ["train", "translate", "--data", str(tmp_path), "--out", str(tmp_path / "run")]
    assert "--learn.align" in run(*words, "--help", capsys=capsys)[1]
    assert "--learn.align" not in run(*words, "--model", "seq2seq", "--help", capsys=capsys)[1]
    code, _, err = run(*words, "--model", "seq2seq", "--learn.align", "0.1", capsys=capsys)
    assert code == 2 and "learn.align is 0.1, and means nothing to a seq2seq" in err and "--model transformer" in err
    assert from_flags([*words[1:], "--model", "seq2seq", "--learn.align", "0"]).learn["align"] == 0  # as runs have it


def test_train_and_info(capsys, tmp_path):
    words = ["train", "toy", "--out", str(tmp_path / "o"), "--loop.steps", "3"]
    code, out, _ = run(*words, capsys=capsys)
    assert code == 0 and out.splitlines()[-1] == f"  qkv guess {tmp_path / 'o'}"
    code, out, _ = run(*words, capsys=capsys)
    assert code == 0 and "is finished (3 steps)" in out
    code, out, _ = run(*words, "--seed", "4", capsys=capsys)
    assert code == 2 and out == ""
    code, out, _ = run("info", str(tmp_path / "o"), "--json", capsys=capsys)
    assert code == 0 and json.loads(out)["state"]["step"] == 3


def test_own_model(capsys, tmp_path):
    """A stranger's class trains by ``--model own.py:Mine``, and its run is opened by whoever spells it out."""
    own = tmp_path / "own.py"
    own.write_text("from toy import MLP\nclass Mine(MLP):\n    SIZES = {}\n")
    words = ["train", "toy", "--model", f"{own}:Mine", "--out", str(tmp_path / "o"), "--loop.steps", "2"]
    assert run(*words, capsys=capsys)[0] == 0
    assert json.loads((tmp_path / "o" / "model.json").read_text())["class"] == f"{own}:Mine"
    assert run(*words, capsys=capsys)[0] == 0


def test_ctrl_c_saves_and_exits_130(capsys, tmp_path, monkeypatch):
    import toy

    monkeypatch.setattr(toy.Toy, "computed", 0)
    monkeypatch.setattr(toy.Toy, "trap", "stop:5")
    code, out, _ = run("train", "toy", "--out", str(tmp_path / "o"), "--loop.steps", "6", capsys=capsys)
    assert code == 130
    command = out.splitlines()[-1].split("go on with: qkv ")[1].split()
    monkeypatch.setattr(toy.Toy, "trap", "")
    code, out, _ = run(*command, capsys=capsys)
    assert code == 0 and "going on from step 3" in out


def test_phrases_writes_pairs_and_their_alignments(tmp_path, capsys):
    words = ["phrases", "--out", str(tmp_path), "--train", "2500", "--dev", "5", "--test", "5", "--clauses", "3"]
    code, out, _ = run(*words, capsys=capsys)
    assert code == 0 and "2,500 + 5 + 5 pairs" in out
    for name, lines in (("train", 2500), ("dev", 5), ("test", 5)):
        for side in ("ko", "en", "align"):
            assert len((tmp_path / f"{name}.{side}").read_text(encoding="utf-8").splitlines()) == lines
    words = ["phrases", "--out", str(tmp_path), "--train", "10", "--dev", "5", "--test", "6"]
    code, _, err = run(*words, capsys=capsys)
    assert "--train is 10" in err and "11 held-out pairs 0" in err and "expected --train 2000 or more" in err
    assert code == 2 and "too few words occur" in err


def test_drawing_and_a_beam_are_not_asked_for_together(tmp_path, capsys):
    code, _, err = run("translate", str(tmp_path), "--beam", "4", "--temperature", "0.5", capsys=capsys)
    assert code == 2 and "--beam" in err
