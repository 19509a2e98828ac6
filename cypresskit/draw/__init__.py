"""Pictures that play, made from runs, compiled code, reports and timelines: the only part that
imports bokeh.
"""

from cypresskit.draw.block_race import block_race
from cypresskit.draw.bundle_game import bundle_game
from cypresskit.draw.bundles import bundles
from cypresskit.draw.card_memory import card_memory
from cypresskit.draw.chip import chip
from cypresskit.draw.controls import controls
from cypresskit.draw.critical_path import critical_path
from cypresskit.draw.curves import curves
from cypresskit.draw.dial import dial
from cypresskit.draw.digits import digits
from cypresskit.draw.element import follow
from cypresskit.draw.explore import explore
from cypresskit.draw.exponents import exponents
from cypresskit.draw.lds import lds_transpose
from cypresskit.draw.lds_pitch import lds_pitch
from cypresskit.draw.life import life
from cypresskit.draw.performance import performance
from cypresskit.draw.pipelines import timeline
from cypresskit.draw.player import Player, load
from cypresskit.draw.predict import Prediction, predict
from cypresskit.draw.price import price
from cypresskit.draw.reduction import reduction
from cypresskit.draw.register_block import register_block
from cypresskit.draw.road import road
from cypresskit.draw.roofline import roofline
from cypresskit.draw.texture_fetch import texture_fetch
from cypresskit.draw.wavefronts import waiting, wavefronts

__all__ = [
    "Player",
    "Prediction",
    "block_race",
    "bundle_game",
    "bundles",
    "card_memory",
    "chip",
    "controls",
    "critical_path",
    "curves",
    "dial",
    "digits",
    "explore",
    "exponents",
    "follow",
    "lds_pitch",
    "lds_transpose",
    "life",
    "load",
    "performance",
    "predict",
    "price",
    "reduction",
    "register_block",
    "road",
    "roofline",
    "texture_fetch",
    "timeline",
    "waiting",
    "wavefronts",
]
