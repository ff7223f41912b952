"""A tiny ViT that has learned drawn shapes, whose class hangs on one patch: what it looks at can be judged."""

from functools import cache
from itertools import islice

import torch
from looked import Opened
from torch.nn.functional import cross_entropy

from qkv.data.image_codec import ImageCodec
from qkv.data.preprocess import Preprocess
from qkv.data.shapes import MARKS, Shape, shapes
from qkv.models.saved import build
from qkv.models.vit import ViTConfig

CLASSES, SIZE, PATCH = 3, 32, 8
TRAIN, STEPS, BATCH = 800, 160, 48


def drawn(first: int, count: int) -> list[Shape]:
    return list(islice(shapes(0, SIZE, PATCH, CLASSES, skip=first), count))


@cache
def trained() -> Opened:
    """Learns for some seconds on one thread, from pictures that no test sees."""
    torch.manual_seed(0)
    codec = ImageCodec(Preprocess(size=(SIZE, SIZE)), MARKS[:CLASSES])
    config = ViTConfig(CLASSES, (SIZE, SIZE), PATCH, dim=48, depth=2, heads=4, hidden=96)
    model = build("vit", config)
    made = drawn(1000, TRAIN)
    images = codec.preprocess.normalise(torch.stack([torch.from_numpy(shape.pixels) for shape in made]))
    labels = torch.tensor([shape.label for shape in made])
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=STEPS)
    for _ in range(STEPS):
        chosen = torch.randint(len(made), (BATCH,))
        loss = cross_entropy(model(images[chosen]), labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return Opened(model.eval(), codec, folder=None)
