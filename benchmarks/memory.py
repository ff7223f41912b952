"""Whether training needs more memory for more data: peak anonymous memory of ``qkv train`` on few and on many pairs.

    python benchmarks/memory.py                                # 1 and 10 million pairs; about an hour on 2 cores
    python benchmarks/memory.py --pairs 100000 1000000         # a few minutes

The whole command is measured as a user runs it: checking, learning the vocabulary, encoding, and some steps. The text
is synthetic and repeated, so ``--data.keep_duplicates`` keeps all of it. Anonymous memory (RssAnon of
``/proc/PID/status``, sampled) is what a process cannot give back; mapped files, which the kernel drops when it wants
the room, are shown beside it.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DISTINCT = 50_000
WORDS = ("ba", "de", "gi", "ko", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "xo", "yu", "za")


def write_pairs(folder: Path, name: str, pairs: int, longest: int, seed: int) -> None:
    """``pairs`` pairs of 3 to ``longest`` words, `DISTINCT` of them unlike, in plain parallel files."""
    chance = random.Random(seed)
    lexicon = ["".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(5000)]
    for suffix in ("xx", "yy"):
        lines = [" ".join(chance.choices(lexicon, k=chance.randint(3, longest))) for _ in range(min(DISTINCT, pairs))]
        block = ("\n".join(lines) + "\n").encode()
        with open(folder / f"{name}.{suffix}", "wb") as file:
            for _ in range(pairs // len(lines)):
                file.write(block)


def measure(command: list[str]) -> tuple[float, float, float]:
    """Peak anonymous and file-backed memory of a command in MB, and its seconds."""
    begin, anonymous, mapped = time.monotonic(), 0, 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            try:
                text = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                break
            sizes = {line.split(":")[0]: line.split()[1] for line in text.splitlines() if line.startswith("Rss")}
            anonymous = max(anonymous, int(sizes.get("RssAnon", 0)))
            mapped = max(mapped, int(sizes.get("RssFile", 0)) + int(sizes.get("RssShmem", 0)))
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return anonymous / 1024, mapped / 1024, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--words", type=int, default=20, help="of the longest sentence; short ones take less time")
    parser.add_argument("--scratch", type=Path, help="where the data is written: some 5 GB for 10 million pairs")
    wanted = parser.parse_args()
    peaks = []
    print(f"{'pairs':>12} {'anonymous MB':>13} {'mapped MB':>10} {'seconds':>8}")
    for pairs in wanted.pairs:
        with tempfile.TemporaryDirectory(dir=wanted.scratch) as scratch:
            folder = Path(scratch)
            write_pairs(folder, "train", pairs, wanted.words, seed=1)
            write_pairs(folder, "dev", 200, wanted.words, seed=2)
            flags = {
                "data": scratch,
                "data.source": "xx",
                "data.target": "yy",
                "data.keep_duplicates": "true",
                "data.words": "4000",
                "size": "nano",
                "loop.steps": str(wanted.steps),
                "out": str(folder / "run"),
            }
            command = [sys.executable, "-m", "qkv", "train", "translate"]
            peak, mapped, seconds = measure(
                command + [part for flag in flags.items() for part in (f"--{flag[0]}", flag[1])]
            )
        peaks.append(peak)
        print(f"{pairs:>12,} {peak:>13,.0f} {mapped:>10,.0f} {seconds:>8,.0f}", flush=True)
    print(f"difference in anonymous memory: {peaks[-1] - peaks[0]:,.0f} MB")


if __name__ == "__main__":
    main()
