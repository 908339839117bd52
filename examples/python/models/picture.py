"""Figure of rates by layer and by bit, for both campaigns of each model."""

from pathlib import Path

import matplotlib
import numpy
import tables
from network import Network

import flipwave

matplotlib.use("svg")
# Reproducible output.
matplotlib.rcParams.update(
    {"svg.hashsalt": "models", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
)

from matplotlib import pyplot

#: Colours that differ in greyscale and with red-green colour blindness.
PLAIN, RESTRICTED, SDC = "#d55e00", "#0072b2", "#b8b8b8"


def draw(runs: list[tuple[Network, flipwave.Campaign, flipwave.Campaign]], path: Path) -> None:
    """Writes the figure: a row for each model, with layers on the left and register bits on the right."""
    figure, rows = pyplot.subplots(
        len(runs), 2, figsize=(11, 4.6 * len(runs)), squeeze=False, width_ratios=[3, 2], layout="constrained"
    )
    for (network, plain, restricted), (left, right) in zip(runs, rows, strict=True):
        layers = tables.by_layer(network, plain, restricted)
        at = numpy.arange(len(layers))
        left.barh(at, layers["SDC, %"], 0.8, color=SDC, label="SDC, plain")
        left.barh(at - 0.2, layers["critical, %"], 0.35, color=PLAIN, label="critical SDC, plain")
        left.barh(
            at + 0.2,
            layers["critical, %, restricted"],
            0.35,
            color=RESTRICTED,
            label="critical SDC, restricted",
        )
        left.set_yticks(at, layers.index)
        left.invert_yaxis()
        left.set_xlabel("% of faults in the layer")
        left.set_title(f"{network.name}, by layer", loc="left", weight="bold")

        bits = tables.side_by_side(plain, restricted, "bit").sort_index(key=lambda names: names.astype(int))
        at = bits.index.astype(int)
        right.bar(at, bits["SDC, %"], 0.8, color=SDC)
        right.bar(at - 0.2, bits["critical, %"], 0.4, color=PLAIN)
        right.bar(at + 0.2, bits["critical, %, restricted"], 0.4, color=RESTRICTED)
        right.set_xticks(range(0, 32, 4))
        right.set_xlabel("bit of the register that was struck")
        right.set_ylabel("% of faults in the bit")
        right.set_title("by bit", loc="left", weight="bold")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Date": None})
