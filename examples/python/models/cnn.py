"""A convolutional network that reads noisy seven-segment digits."""

import kernels
import numpy
from network import HALF, Network, Step, fit
from transformer import product

SIDE, FIRST, SECOND, FEATURES, CLASSES, TILE = 16, 8, 16, 64, 16, 16

#: Segments of each digit: top, upper left and right, middle, lower left and right, bottom.
SEGMENTS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)


def digits(random: numpy.random.Generator, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Images of one channel each, and the digits on them."""
    classes = random.integers(10, size=count)
    images = 0.1 * random.standard_normal((count, 1, SIDE, SIDE))
    for image, digit in zip(images[:, 0], classes, strict=True):
        y, x = random.integers(1, 3), random.integers(3, 6)
        places = (
            (slice(y, y + 1), slice(x, x + 6)),
            (slice(y, y + 6), slice(x, x + 1)),
            (slice(y, y + 6), slice(x + 6, x + 7)),
            (slice(y + 6, y + 7), slice(x, x + 6)),
            (slice(y + 6, y + 12), slice(x, x + 1)),
            (slice(y + 6, y + 12), slice(x + 6, x + 7)),
            (slice(y + 12, y + 13), slice(x, x + 6)),
        )
        for place, lit in zip(places, SEGMENTS[digit], strict=True):
            if lit == "1":
                image[place] += 1.0
    return images.astype(HALF), classes


def convolved(x, weight, bias):
    x = numpy.pad(x.astype(numpy.float32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    total = numpy.einsum("ncyxab,ocab->noyx", windows, weight.astype(numpy.float32), optimize=True)
    return numpy.maximum(total + bias[:, None, None], 0)


def pooled(x):
    count, channels, side, _ = x.shape
    return x.reshape(count, channels, side // 2, 2, side // 2, 2).max(axis=(3, 5))


def dense(x, weight, bias, residual):
    return numpy.maximum(product(x.reshape(-1, len(weight)), weight, bias, residual), 0)


def build(images: int = 16) -> tuple[Network, float]:
    """The model for a batch of ``images``, and its accuracy on unseen images.

    The weights are random except for the last layer, which is fitted to the features of images.
    """
    random = numpy.random.default_rng(5)

    def weight(*shape, depth):
        return (random.standard_normal(shape) * (2 / depth) ** 0.5).astype(HALF)

    steps = []

    def convolution(label, x, out, inputs, outputs, side):
        arguments = {"x": x, "weight": weight(outputs, inputs, 3, 3, depth=9 * inputs)}
        arguments["bias"] = numpy.zeros(outputs, numpy.float32)
        constants = {"INPUTS": inputs, "OUTPUTS": outputs, "SIDE": side}
        shape = (images, outputs, side, side)
        steps.append(Step(label, kernels.convolve, (images,), arguments, out, shape, constants, convolved))

    def pooling(label, x, out, channels, side):
        shape = (images, channels, side // 2, side // 2)
        constants = {"SIDE": side}
        grid = (images * channels,)
        steps.append(Step(label, kernels.pool, grid, {"x": x}, out, shape, constants, pooled))

    def linear(label, x, out, depth, width, parameters, reference, activation, restrictable):
        layer_weight, layer_bias = parameters
        inputs = {"x": x, "weight": layer_weight, "bias": layer_bias, "residual": None}
        constants = {
            "DEPTH": depth,
            "WIDTH": width,
            "ACTIVATION": activation,
            "RESIDUAL": False,
            "TILE": TILE,
        }
        grid = (images // TILE, width // TILE)
        shape = (images, width)
        steps.append(
            Step(label, kernels.linear, grid, inputs, out, shape, constants, reference, restrictable)
        )

    convolution("conv1", "given", "edges", 1, FIRST, SIDE)
    pooling("pool1", "edges", "edges_half", FIRST, SIDE)
    convolution("conv2", "edges_half", "corners", FIRST, SECOND, SIDE // 2)
    pooling("pool2", "corners", "corners_half", SECOND, SIDE // 2)
    depth = SECOND * (SIDE // 4) ** 2
    random_layer = (weight(depth, FEATURES, depth=depth), numpy.zeros(FEATURES, numpy.float32))
    linear("dense", "corners_half", "features", depth, FEATURES, random_layer, dense, "relu", True)

    given, _ = digits(random, images)
    network = Network("cnn", given, steps)
    lessons, classes = digits(random, 3000)
    head = fit(network.activations(lessons)["features"], classes, CLASSES)
    linear("head", "features", "logits", FEATURES, CLASSES, head, product, "none", False)
    network.calibrate(lessons)
    unseen, right = digits(random, 1000)
    predicted = network.activations(unseen)["logits"].argmax(-1)
    return network, float((predicted == right).mean())
