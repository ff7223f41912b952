"""Runs `every_model.py`, whose name pytest would not collect by itself."""

from every_model import *  # noqa: F403
