"""A transformer of two blocks that predicts the next word of a language of 32 words."""

import kernels
import numpy
from network import HALF, Network, Step, fit

WORDS, LENGTH, WIDTH, HEADS, HIDDEN, BLOCKS, TILE = 32, 32, 64, 4, 128, 2, 32


def language(random: numpy.random.Generator, sentences: int) -> numpy.ndarray:
    """Sentences of ``LENGTH`` + 1 words. Each word has a successor that follows it in nine cases of ten."""
    follows = numpy.random.default_rng(7).permutation(WORDS)
    words = random.integers(WORDS, size=(sentences, LENGTH + 1))
    for at in range(LENGTH):
        usual = random.random(sentences) < 0.9
        words[:, at + 1] = numpy.where(usual, follows[words[:, at]], words[:, at + 1])
    return words.astype(numpy.int32)


def embedded(words, table, positions):
    rows = table[words.reshape(-1, LENGTH)].astype(numpy.float32) + positions.astype(numpy.float32)
    return rows.reshape(-1, WIDTH)


def normalised(x, scale, shift):
    x = x.astype(numpy.float32)
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale + shift


def product(x, weight, bias, residual, activation=None):
    total = x.astype(numpy.float32) @ weight.astype(numpy.float32) + bias
    if activation == "gelu":
        total = total / (1 + numpy.exp(-1.702 * total))
    return total if residual is None else total + residual.astype(numpy.float32)


def attention(qkv):
    parts = qkv.astype(numpy.float32).reshape(-1, LENGTH, 3, HEADS, WIDTH // HEADS)
    query, key, value = (parts[:, :, part].swapaxes(1, 2) for part in range(3))
    score = query @ key.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
    score = numpy.where(numpy.tri(LENGTH), score, -numpy.inf)
    power = numpy.exp(score - score.max(-1, keepdims=True))
    power = (power / power.sum(-1, keepdims=True)).astype(HALF).astype(numpy.float32)
    return (power @ value).swapaxes(1, 2).reshape(-1, WIDTH)


def build(sentences: int = 2) -> tuple[Network, float]:
    """The model for a batch of ``sentences``, and its accuracy on unseen words.

    The weights are random except for the last layer, which is fitted to the features of sentences.
    """
    random = numpy.random.default_rng(3)
    rows = sentences * LENGTH

    def weight(depth, width):
        return (random.standard_normal((depth, width)) * depth**-0.5).astype(HALF)

    steps = []

    def step(label, kernel, grid, inputs, out, width, constants, reference, restrictable=True):
        steps.append(
            Step(label, kernel, grid, inputs, out, (rows, width), constants, reference, restrictable)
        )

    def linear(
        label, x, out, depth, width, activation="none", residual=None, parameters=None, restrictable=True
    ):
        layer_weight, layer_bias = parameters or (weight(depth, width), numpy.zeros(width, numpy.float32))
        inputs = {"x": x, "weight": layer_weight, "bias": layer_bias, "residual": residual}
        constants = {
            "DEPTH": depth,
            "WIDTH": width,
            "ACTIVATION": activation,
            "RESIDUAL": residual is not None,
        }
        constants["TILE"] = TILE
        step(
            label, kernels.linear, (rows // TILE, width // TILE), inputs, out, width, constants,
            lambda x, weight, bias, residual: product(x, weight, bias, residual, activation), restrictable,
        )  # fmt: skip

    def normalise(label, x, out):
        inputs = {
            "x": x,
            "scale": numpy.ones(WIDTH, numpy.float32),
            "shift": numpy.zeros(WIDTH, numpy.float32),
        }
        step(label, kernels.normalise, (rows,), inputs, out, WIDTH, {"WIDTH": WIDTH}, normalised)

    table = random.standard_normal((WORDS, WIDTH)).astype(HALF)
    positions = (0.2 * random.standard_normal((LENGTH, WIDTH))).astype(HALF)
    inputs = {"words": "given", "table": table, "positions": positions}
    step(
        "embedding",
        kernels.embed,
        (rows,),
        inputs,
        "stream",
        WIDTH,
        {"LENGTH": LENGTH, "WIDTH": WIDTH},
        embedded,
    )
    stream = "stream"
    for block in range(BLOCKS):
        at, part = f"block{block}", f"b{block}_"
        normalise(f"{at}.norm1", stream, part + "norm1")
        linear(f"{at}.qkv", part + "norm1", part + "qkv", WIDTH, 3 * WIDTH)
        heads = {"LENGTH": LENGTH, "HEADS": HEADS, "WIDTH": WIDTH // HEADS}
        grid = (sentences, HEADS)
        step(
            f"{at}.attention",
            kernels.attend,
            grid,
            {"qkv": part + "qkv"},
            part + "heads",
            WIDTH,
            heads,
            attention,
        )
        linear(f"{at}.projection", part + "heads", part + "mixed", WIDTH, WIDTH, residual=stream)
        normalise(f"{at}.norm2", part + "mixed", part + "norm2")
        linear(f"{at}.mlp_up", part + "norm2", part + "hidden", WIDTH, HIDDEN, "gelu")
        linear(f"{at}.mlp_down", part + "hidden", part + "out", HIDDEN, WIDTH, residual=part + "mixed")
        stream = part + "out"
    normalise("norm", stream, "features")

    given = language(random, sentences)[:, :-1].copy()
    network = Network("transformer", given, steps)
    lessons = language(random, 256)
    features = network.activations(lessons[:, :-1])["features"]
    head = fit(features, lessons[:, 1:].ravel(), WORDS)
    linear("head", "features", "logits", WIDTH, WORDS, parameters=head, restrictable=False)
    network.calibrate(lessons[:, :-1])
    unseen = language(random, 64)
    predicted = network.activations(unseen[:, :-1])["logits"].argmax(-1)
    return network, float((predicted == unseen[:, 1:].ravel()).mean())
