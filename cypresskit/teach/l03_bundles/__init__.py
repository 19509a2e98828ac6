"""Lesson 03, bundles: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"bundle_game": "bundle_game"}, others="checks")
