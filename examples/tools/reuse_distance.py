#!/usr/bin/env python3
"""Computes the reuse distances of cache lines from a memory trace.

The reuse distance of an access is the number of different lines that were accessed since the last access to its
line. A fully associative LRU cache of N lines hits exactly the accesses with a distance below N.

    flipwave tool memory-trace CAMPAIGN.yaml --out trace.csv
    python3 reuse_distance.py trace.csv [LINE_SIZE]
"""

import csv
import sys


def distances(lines):
    """Yields the reuse distance of each access; None for the first access to a line.

    A Fenwick tree marks the time of the last access to each line, so that counting the marks since a time takes
    logarithmic time.
    """
    lines = list(lines)
    tree = [0] * (len(lines) + 1)

    def add(time, number):
        while time <= len(lines):
            tree[time] += number
            time += time & -time

    def marks_until(time):
        total = 0
        while time > 0:
            total += tree[time]
            time -= time & -time
        return total

    last = {}
    for time, line in enumerate(lines, 1):
        before = last.get(line)
        if before is None:
            yield None
        else:
            yield marks_until(time - 1) - marks_until(before)
            add(before, -1)
        add(time, 1)
        last[line] = time


def accessed(table, size):
    """The line of each access to global memory, in the order of the trace."""
    for row in csv.DictReader(table):
        operation = row["instruction"].split()[0]
        if operation.startswith(("global_", "flat_", "buffer_")):
            yield int(row["address"]) // size


def main(file, size=128):
    with open(file, newline="") as table:
        found = list(distances(accessed(table, size)))
    counts = {}
    for distance in found:
        label = "first access" if distance is None else 1 << distance.bit_length()
        counts[label] = counts.get(label, 0) + 1
    print("distance_below,accesses")
    for label in sorted((label for label in counts if label != "first access")):
        print(f"{label},{counts[label]}")
    print(f"first access,{counts.get('first access', 0)}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
