"""Trains a small network with tinygrad to read digits, and prints the loss of each step.

The digits are drawn here: bitmaps of 5 x 7 pixels, shifted, with noise. Each run computes the same numbers.

    flipwave exec --gpu gfx1100 -- python train.py [STEPS]
"""
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

DIGITS = """
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""
BATCH = 64


def bitmaps() -> np.ndarray:
    """The ten digits, each as 7 rows of 5 pixels."""
    rows = [line.split() for line in DIGITS.strip().splitlines()]
    pixels = [[[pixel == "#" for pixel in row[digit]] for row in rows] for digit in range(10)]
    return np.array(pixels, dtype=np.float32)


def dataset(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of 8 x 8 pixels with noise, as rows of 64 numbers, and their digits."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.int32)
    images = random.normal(0, 0.2, (count, 8, 8)).astype(np.float32)
    for image, label in zip(images, labels):
        x, y = random.randint(1, 3), random.randint(0, 2)
        image[y : y + 7, x : x + 5] += bitmaps()[label]
    return images.reshape(count, 64), labels


class Network:
    """Two layers."""

    def __init__(self) -> None:
        self.hidden = nn.Linear(64, 32)
        self.output = nn.Linear(32, 10)

    def __call__(self, images: Tensor) -> Tensor:
        return self.output(self.hidden(images).relu())


def main(steps: int) -> None:
    Tensor.manual_seed(1)
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.8, momentum=0.9)

    @TinyJit
    def train(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = network(images).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        for step in range(steps):
            images, labels = dataset(BATCH, seed=step)
            loss = train(Tensor(images).realize(), Tensor(labels).realize())
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    images, labels = dataset(256, seed=12345)
    answers = network(Tensor(images)).argmax(axis=1).numpy()
    print(f"accuracy {100 * (answers == labels).mean():.1f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
