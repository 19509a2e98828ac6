"""Lesson 12, the contest: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {"leaderboard": "leaderboard"}, others="checks")
