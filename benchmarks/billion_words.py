"""Whether word vectors need more memory for more text: a corpus over and over, and what the process holds meanwhile.

    python benchmarks/billion_words.py --data corpus.txt.gz --words 1e9 --minutes 3 --out billion.png

The whole command is measured as a user runs it: reading, then ``--minutes`` of training. The same packed file stands in
a folder as often as it takes, so the vocabulary does not grow and nothing else may. Anonymous memory (RssAnon of
``/proc/PID/status``) is what a process cannot give back; mapped files are shown beside it. The picture has both over
time, with the words a second. The ids of a billion words take 4 GB of disk, under ``--scratch``.
"""

import argparse
import gzip
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def watch(command: list[str]) -> tuple[list[tuple[float, float, float]], list[tuple[float, str]]]:
    """Run a command. Returns (seconds, anonymous MB, mapped MB) each half second, and what it said, and when."""
    begun, held, said = time.monotonic(), [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:

        def read() -> None:
            for line in process.stdout:
                said.append((time.monotonic() - begun, line.rstrip("\n")))

        reader = threading.Thread(target=read)
        reader.start()
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                break
            sizes = {key: int(value) / 1024 for key, value in re.findall(r"(Rss\w+):\s+(\d+) kB", status)}
            if sizes:
                held.append((time.monotonic() - begun, sizes["RssAnon"], sizes["RssFile"] + sizes["RssShmem"]))
            time.sleep(0.5)
        reader.join()
    if process.returncode:
        raise SystemExit("\n".join(line for _, line in said[-5:]))
    return held, said


def draw(held: list[tuple[float, float, float]], speed: list[tuple[float, float]], title: str, out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    memory, words = figure.subplots(2, sharex=True)
    minutes = [seconds / 60 for seconds, *_ in held]
    memory.plot(minutes, [anonymous for _, anonymous, _ in held], label="anonymous")
    memory.plot(minutes, [mapped for *_, mapped in held], label="mapped files", color="0.7")
    memory.set(ylabel="MB", ylim=(0, None), title=title)
    memory.legend()
    words.plot([seconds / 60 for seconds, _ in speed], [each / 1e6 for _, each in speed])
    words.set(ylabel="M words/s, training", xlabel="minutes", ylim=(0, None))
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a packed text")
    parser.add_argument("--words", type=float, default=1e9)
    parser.add_argument("--minutes", type=float, default=3.0, help="of training")
    parser.add_argument("--model", default="skipgram", choices=("skipgram", "cbow"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a picture")
    parser.add_argument("--scratch", type=Path)
    wanted = parser.parse_args()
    with gzip.open(wanted.data, "rt", encoding="utf-8") as text:
        each = sum(len(line.split()) for line in text)
    times = max(1, round(wanted.words / each))
    with tempfile.TemporaryDirectory(dir=wanted.scratch) as scratch:
        folder = Path(scratch) / "text"
        folder.mkdir()
        for number in range(times):
            (folder / f"{number:05}{''.join(wanted.data.suffixes)}").symlink_to(wanted.data.resolve())
        flags = {"data": str(folder), "model": wanted.model, "loop.minutes": str(wanted.minutes),
                 "spread.threads": str(wanted.threads), "out": str(Path(scratch) / "run")}  # fmt: skip
        command = [sys.executable, "-m", "qkv", "train", "vectors"]
        held, said = watch(command + [part for key, value in flags.items() for part in (f"--{key}", value)])
    steps = [
        (at, float(found[1].replace(",", ""))) for at, line in said if (found := re.search(r"([\d,]+) words/s", line))
    ]
    begun, reading = steps[0][0], each * times
    print(f"{reading:,} words: {times} times {each:,}")
    for name, part, speed in (
        ("reading", [row for row in held if row[0] < begun], reading / begun),
        ("training", [row for row in held if row[0] >= begun], sum(each for _, each in steps) / len(steps)),
    ):
        anonymous = [row[1] for row in part[len(part) // 10 :]]  # after the start
        print(
            f"{name:9} {part[-1][0] - part[0][0]:6,.0f} s  {speed / 1e6:6.3f} M words/s  "
            f"anonymous {min(anonymous):,.0f} to {max(anonymous):,.0f} MB, at the end {anonymous[-1]:,.0f}"
        )
    if wanted.out:
        draw(held, steps, f"{reading / 1e6:,.0f} million words, {wanted.model}", wanted.out)


if __name__ == "__main__":
    main()
