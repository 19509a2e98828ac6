"""Lesson 10, matrices larger than the card: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"card_memory": "card_memory"}, others="checks")
