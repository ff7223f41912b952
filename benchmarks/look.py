"""What looking costs: a pass over a 40-token pair with all maps recorded, or one layer's cross maps, and a plain one.

    python benchmarks/look.py [--threads 2]

Medians of paired runs in one process; printed are the ratios to the plain pass, which are what the project promises
(all maps: at most 3; one layer's cross maps: at most 1.3).
"""

import argparse
import time
from contextlib import nullcontext
from statistics import median

import torch

from qkv.look.trace import trace
from qkv.models.transformer import SIZES, Transformer, TransformerConfig

options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
options.add_argument("--threads", type=int, default=2)
options.add_argument("--runs", type=int, default=31)
options.add_argument("--size", choices=SIZES, default="base")
chosen = options.parse_args()
torch.set_num_threads(chosen.threads)
torch.manual_seed(0)

model = Transformer(TransformerConfig(16_000, 16_000, **SIZES[chosen.size])).eval()
source, lengths, target = torch.randint(3, 16_000, (1, 40)), torch.tensor([40]), torch.randint(3, 16_000, (1, 40))
looks = {"plain": None, "all maps": "*", "one layer's cross maps": f"decoder.{model.config.decoder_depth - 1}.cross"}
seconds = {name: [] for name in looks}
with torch.inference_mode():
    for _ in range(chosen.runs + 3):
        for name, layers in looks.items():
            begun = time.perf_counter()
            with trace(model, layers=layers) if layers else nullcontext():
                model(source, lengths, target)
            seconds[name].append(time.perf_counter() - begun)
for name, times in seconds.items():
    ratio = median(t / plain for t, plain in zip(times[3:], seconds["plain"][3:], strict=True))
    print(f"{name:24} {median(times[3:]) * 1000:7.2f} ms   {ratio:.2f} x plain")
