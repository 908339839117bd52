"""Faults into two models, and into the same with activations restricted to the range they have without.

    python examples/python/models [--model NAME] [--target T] [--faults N] [--workers W] --out DIR

DIR/NAME_plain and DIR/NAME_restricted have a campaign file each with all it needs, and its results; models.md
has the tables, models.svg the picture.
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

#: Critical is SDC of which a word or a digit is another one.
VERDICT = f"{Path(__file__).parent.absolute() / 'verdict.py'}:another_answer"


def campaigns(network: Network, asked: argparse.Namespace) -> list[flipwave.Campaign]:
    """The plain model's and the restricted one's, run."""
    done = []
    for restricted in (False, True):
        faults = {"model": "flip_one_bit", "count": asked.faults}
        campaign = network.campaign(asked.target, restricted, faults, VERDICT)
        folder = asked.out / campaign.name
        campaign.to_yaml(folder)
        campaign.run(workers=asked.workers, out=folder / "results", force=True)
        done.append(campaign)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(prog="models")
    parser.add_argument("--model", choices=MODELS, help="one of them alone")
    parser.add_argument("--target", default="gfx90a")
    parser.add_argument("--faults", type=int, default=2000, help="of each campaign; 2000 if not said")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    runs, text = [], []
    for name in [asked.model] if asked.model else MODELS:
        network, accuracy = MODELS[name]()
        start = time.monotonic()
        done = campaigns(network, asked)
        runs.append((network, *done))
        print(f"{name}: {2 * asked.faults} faults in {time.monotonic() - start:.0f} s")
        text.append(tables.text(network, accuracy, *done))
    (asked.out / "models.md").write_text("\n".join(text))
    picture.draw(runs, asked.out / "models.svg")
    print("\n".join(text))


main()
