"""Lesson 07, the local data share: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"lds_transpose": "lds", "lds_pitch": "lds_pitch"}, others="checks")
