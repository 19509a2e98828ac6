"""Pictures that move, drawn from recorded runs: the only part of the package that imports bokeh."""

from cypresskit.draw.player import Player, load
from cypresskit.draw.register_block import register_block

__all__ = ["Player", "load", "register_block"]
