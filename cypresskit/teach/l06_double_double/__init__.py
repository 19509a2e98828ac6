"""Lesson 06, double-doubles: its checks and helpers, and a picture of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"digits": "digits"}, others="checks")
