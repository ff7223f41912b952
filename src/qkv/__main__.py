"""``python -m qkv``, as ``torchrun -m qkv train ...`` needs it."""

import sys

from qkv.cli import main

sys.exit(main())
