"""Our image models against ``transformers`` with the same weights: passes, a training step, looking, on this CPU.

    python benchmarks/images.py                  # some five minutes on 2 cores
    python benchmarks/images.py --clock cpu --threads 1    # on a machine that others use too

The engines of a row take turns; a row gives medians, ratios are medians of the ratios of the rounds, and in brackets
are the quarter and the three quarters of those. Each engine has the same weights in float32, which come from
``transformers`` by `qkv import`'s way, and answers are compared before anything is timed. Memory is the peak of one
pass above what the process held before it.

The product rate is what this machine's own float32 product of two square matrices reaches, between the rounds of the
row. A share is what the matrix products of the published model would take at that rate, of what the pass takes; ours
does fewer of them where a last block is read at one token only.
"""

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import torch
import transformers
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from qkv.look.trace import trace
from qkv.models.saved import load_model
from qkv.weights.images import import_hf

VIT = dict(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536, num_labels=1000)
TINY = dict(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768, num_labels=1000)
SIDE = 2048  # of the matrices whose product is the rate


class Row:
    """Engines that do the same, in turn."""

    def __init__(self, name: str, engines: dict[str, Callable[[], object]], images: int, work: int = 0):
        self.name, self.engines, self.images, self.work = name, engines, images, work
        self.seconds: dict[str, list[float]] = {engine: [] for engine in engines}
        self.rates: list[float] = []
        self.memory = {engine: peak(run) for engine, run in engines.items()}

    def round(self, clock: Callable[[], float], backwards: bool) -> None:
        for engine in reversed(self.engines) if backwards else self.engines:
            begun = clock()
            self.engines[engine]()
            self.seconds[engine].append(clock() - begun)
        if self.work:
            self.rates.append(product_rate(clock))

    def print(self) -> None:
        first, *others = self.engines
        print(f"\n{self.name}")
        for engine, times in self.seconds.items():
            line = f"  {engine:34} {median(times) * 1000:9.1f} ms {self.images / median(times):8.2f} images/s"
            line += f"  peak {self.memory[engine]:6.0f} MB"
            if self.work:
                shares = [self.work / seconds / rate for seconds, rate in zip(times, self.rates, strict=True)]
                line += f"  {median(shares):4.0%} of the product rate"
            print(line)
        for other in others:
            ratios = [theirs / ours for theirs, ours in zip(self.seconds[other], self.seconds[first], strict=True)]
            low, _, high = quantiles(ratios, n=4)
            print(f"  {other} takes {median(ratios):.2f} x as long as {first}  [{low:.2f} {high:.2f}]")
        if self.work:
            print(f"  product rate {median(self.rates) / 1e9:.1f} G multiply-adds/s, the model {self.work / 1e9:.1f} G")


def product_rate(clock: Callable[[], float]) -> float:
    """Multiply-adds a second."""
    begun = clock()
    torch.mm(*SQUARES)
    return SIDE**3 / (clock() - begun)


def peak(run: Callable[[], object]) -> float:
    """MB that a run takes at most, above what is there before it; the run before it was the first."""
    run()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system, so that it is counted when it is taken
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    run()
    return (status("VmHWM") - before) / 1024


def status(key: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0])


def same_model(theirs: nn.Module) -> nn.Module:
    """Ours with their weights."""
    with torch.no_grad():
        for parameter in theirs.parameters():  # new tables are zero, and new heads nearly so
            parameter.add_(0.02 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        import_hf(folder, f"{folder}/run", scaling="half")
        return load_model(Path(folder) / "run")


def passes(name: str, ours: nn.Module, theirs: nn.Module, batch: int) -> Row:
    """A plain pass."""
    image = torch.randn(batch, 3, 224, 224)
    torch.testing.assert_close(ours(image), theirs(image).logits, atol=1e-4, rtol=1e-4)
    return Row(
        f"{name}, forward, batch of {batch}",
        {"qkv": lambda: ours(image), "transformers, sdpa": lambda: theirs(image)},
        batch,
        products(theirs, image),
    )


def products(model: nn.Module, image: Tensor) -> int:
    with torch.inference_mode(False), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model.requires_grad_(False)(torch.zeros(image.shape))
    return counter.get_total_flops() // 2


def looks(ours: nn.Module, theirs: nn.Module, batch: int) -> Row:
    """What it costs to see what the class token looks at, or everything."""
    image = torch.randn(batch, 3, 224, 224)

    def look(**which) -> None:
        with trace(ours, axes=ours.axes(image), **which) if which else nullcontext():
            ours(image)

    def look_theirs(all_maps: bool) -> None:
        theirs.set_attn_implementation("eager" if all_maps else "sdpa")
        theirs(image, output_attentions=all_maps)

    return Row(
        f"ViT-S/16, looking, batch of {batch}",
        {
            "plain": look,
            "class token's maps of all layers": lambda: look(queries=[0]),
            "all maps": lambda: look(layers="*"),
            "transformers, plain": lambda: look_theirs(False),
            "transformers, output_attentions": lambda: look_theirs(True),
        },
        batch,
    )


def steps(ours: nn.Module, theirs: nn.Module, batch: int) -> Row:
    """Forward, backward and AdamW."""
    with torch.inference_mode(False):
        image, label = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            said = model(image)
            loss = nn.functional.cross_entropy(getattr(said, "logits", said), label)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    both = {"qkv": ours, "transformers, sdpa": theirs}
    torch.testing.assert_close(ours(image), theirs(image).logits, atol=1e-4, rtol=1e-4)
    engines = {
        name: partial(step, model.train(), torch.optim.AdamW(model.parameters(), 1e-5)) for name, model in both.items()
    }
    return Row(f"ViT-Ti/16, training step, batch of {batch}", engines, batch)


options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
options.add_argument("--threads", type=int, default=torch.get_num_threads())
options.add_argument("--minutes", type=float, default=5.0, help="shared by the rows")
options.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: what the processors spent on us")
options.add_argument("--only", default="", help="rows whose name holds this")
chosen = options.parse_args()
transformers.logging.disable_progress_bar()
torch.set_num_threads(chosen.threads)
torch.manual_seed(0)
clock = time.perf_counter if chosen.clock == "wall" else time.process_time
SQUARES = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)

vit = transformers.ViTForImageClassification(transformers.ViTConfig(**VIT, attn_implementation="sdpa")).eval()
tiny = transformers.ViTForImageClassification(
    transformers.ViTConfig(**TINY, attn_implementation="sdpa", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
).eval()
swin = transformers.SwinForImageClassification(transformers.SwinConfig(num_labels=1000)).eval()
our_vit, our_tiny, our_swin = map(same_model, (vit, tiny, swin))
MADE = {
    "ViT-S/16, forward, batch of 8": lambda: passes("ViT-S/16", our_vit, vit, 8),
    "ViT-S/16, forward, batch of 1": lambda: passes("ViT-S/16", our_vit, vit, 1),
    "Swin-T, forward, batch of 8": lambda: passes("Swin-T", our_swin, swin, 8),
    "Swin-T, forward, batch of 1": lambda: passes("Swin-T", our_swin, swin, 1),
    "ViT-S/16, looking": lambda: looks(our_vit, vit, 4),
    "ViT-Ti/16, training step": lambda: steps(our_tiny, tiny, 8),
}
versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
print(f"{versions}, {chosen.threads} threads, {chosen.clock} clock")
wanted = {name: make for name, make in MADE.items() if chosen.only in name}
with torch.inference_mode():
    for make in wanted.values():
        begun, row, number = time.perf_counter(), make(), 0
        while number < 4 or time.perf_counter() - begun < 60 * chosen.minutes / len(wanted):
            row.round(clock, backwards=number % 2 == 1)
            number += 1
        row.print()
