"""What the README tells people to type works: its commands are run, in order, on built-in data."""

import io
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import pytest

from qkv.cli import main
from qkv.data import phrases

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.S)
SHORT = {  # what keeps a training run short, by task
    "translate": "--size nano --loop.steps 8 --loop.evaluate_every 8 --data.batch_tokens 512",
    "pretrain": "--size tiny --loop.steps 4 --loop.evaluate_every 4",
    "vectors": "--data.min_count 1",
}
OTHERS = "--loop.steps 4 --loop.evaluate_every 4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The data that the README speaks of, made of built-in phrases."""
    folder = tmp_path_factory.mktemp("readme")
    parts = phrases.split()
    phrases.write(parts, folder / "ko-en")
    lines = (folder / "ko-en" / "train.en").read_text(encoding="utf-8").splitlines()[:1000]
    texts = [f"{line}\n" + "\n" * (i % 4 == 3) for i, line in enumerate(lines)]
    (folder / "corpus.txt").write_text("".join(texts), encoding="utf-8")
    rows = [f"{line}\t{'question' if line.endswith('?') else 'statement'}\n" for line in lines]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    tagged = ["".join(f"{w}\t{'NAME' if w[0].isupper() else 'WORD'}\n" for w in line.split()) + "\n" for line in lines]
    (folder / "names.conll").write_text("".join(tagged), encoding="utf-8")
    return folder


@pytest.mark.timeout(500)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0])
def test_its_commands_run(block, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in filter(None, block.splitlines()):
        words = shlex.split(command, comments=True)
        assert words.pop(0) == "qkv"
        given = _file_after("<", words)
        wanted = _file_after(">", words)
        if words[0] == "train":
            task = words[1]
            if "--size" in words:
                del words[(i := words.index("--size")) : i + 2]
            words += [*SHORT.get(task, OTHERS).split(), *["--spread.threads", "1"]]
        source = given.open("rb") if given else nullcontext()
        with source as stream, open(wanted, "w", encoding="utf-8") if wanted else nullcontext() as out:
            if stream:
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
            with redirect_stdout(out) if out else nullcontext():
                assert main(words) == 0, command


def _file_after(sign: str, words: list[str]) -> Path | None:
    if sign not in words:
        return None
    i = words.index(sign)
    file = Path(words[i + 1])
    del words[i : i + 2]
    return file


def test_what_the_commands_left(folder):
    assert (folder / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len((folder / "out.txt").read_text(encoding="utf-8").splitlines()) == 300


@pytest.mark.timeout(120)
def test_its_python_runs(folder):
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_its_links_lead_somewhere():
    here = Path(__file__).parent.parent
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (here / link).exists(), link
