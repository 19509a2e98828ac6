"""Lesson 06, double-doubles: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"digits": "digits", "two_sum_bits": "two_sum"}, others="checks")
