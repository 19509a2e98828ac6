"""Lesson 04, registers and wavefronts: its checks and helpers, and pictures of its own."""

from cypresskit.lazy import import_later

import_later(__name__, {"dial": "dial", "waiting": "waiting"}, others="checks")
