"""Prints the folder of NVIDIA's programs in Triton's package; an empty line if there is none."""

from pathlib import Path

import triton.backends

folder = Path(triton.backends.__path__[0]) / "nvidia" / "bin"
print(folder if folder.is_dir() else "")
