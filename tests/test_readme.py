"""What the README tells people to type works: its commands are run, in order, on built-in phrases."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from qkv.data import phrases

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SMALL = "--size nano --loop.steps 8 --loop.evaluate_every 8 --data.batch_tokens 512 --spread.threads 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    phrases.write(phrases.split(), folder / "ko-en")
    return folder


@pytest.mark.timeout(300)
def test_its_commands_run(folder):
    commands = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines() if line]
    assert len(commands) >= 10
    for command in commands:
        small = command.replace("--size small", SMALL) + (" --threads 1" if " train " not in command else "")
        small = small.replace(" --threads 1", "") if re.match(r"qkv (check|info)", command) else small
        place = re.search(r" [<>] ", small)  # options go before redirections
        if place and small.endswith(" --threads 1"):
            small = small.removesuffix(" --threads 1")
            small = small[: place.start()] + " --threads 1" + small[place.start() :]
        done = subprocess.run(
            small.replace("qkv", f"{shlex.quote(sys.executable)} -m qkv", 1),
            shell=True,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
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
