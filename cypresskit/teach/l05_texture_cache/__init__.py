"""Lesson 05, the texture cache: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"texture_fetch": "texture_fetch"}, others="checks")
