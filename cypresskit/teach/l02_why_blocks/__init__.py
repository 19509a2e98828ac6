"""Lesson 02, why blocks: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"roofline": "roofline"}, others="checks")
