"""Injects faults into two models, with and without range restriction of their activations.

    python examples/python/models [--model NAME] [--target T] [--faults N] [--workers W] --out DIR

DIR/NAME_plain and DIR/NAME_restricted contain a campaign file with everything it needs, and its results;
models.md contains the tables and models.svg the figure.
"""

import argparse
import time
from pathlib import Path

import cnn
import picture
import tables
import transformer
from network import Network

import flipwave

MODELS = {"transformer": transformer.build, "cnn": cnn.build}

#: SDC is critical if a word or a digit changes.
VERDICT = f"{Path(__file__).parent.absolute() / 'verdict.py'}:another_answer"


def campaigns(network: Network, arguments: argparse.Namespace) -> list[flipwave.Campaign]:
    """Runs the campaigns on the plain and the restricted model."""
    done = []
    for restricted in (False, True):
        faults = {"model": "flip_one_bit", "count": arguments.faults}
        campaign = network.campaign(arguments.target, restricted, faults, VERDICT)
        folder = arguments.out / campaign.name
        campaign.to_yaml(folder)
        campaign.run(workers=arguments.workers, out=folder / "results", force=True)
        done.append(campaign)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(prog="models")
    parser.add_argument("--model", choices=MODELS, help="run only one model")
    parser.add_argument("--target", default="gfx90a")
    parser.add_argument("--faults", type=int, default=2000, help="faults per campaign (default: 2000)")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    runs, text = [], []
    for name in [arguments.model] if arguments.model else MODELS:
        network, accuracy = MODELS[name]()
        start = time.monotonic()
        done = campaigns(network, arguments)
        runs.append((network, *done))
        print(f"{name}: {2 * arguments.faults} faults in {time.monotonic() - start:.0f} s")
        text.append(tables.text(network, accuracy, *done))
    (arguments.out / "models.md").write_text("\n".join(text))
    picture.draw(runs, arguments.out / "models.svg")
    print("\n".join(text))


main()
