"""Lesson 08, small matrices: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"split_k": "split_k"}, others="checks")
