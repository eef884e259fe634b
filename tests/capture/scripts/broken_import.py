"""Wants torch where torch cannot be imported, and does without."""

import sys

try:
    import torch
except ImportError as error:
    print(f"without torch: {error}")
    sys.exit(5)
print("with", torch.__version__)
