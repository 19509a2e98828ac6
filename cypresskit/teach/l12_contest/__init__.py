"""Lesson 12, the contest: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"leaderboard": "leaderboard", "life": "life"}, others="checks")
