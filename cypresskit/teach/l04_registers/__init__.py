"""Lesson 04, registers and wavefronts: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {"waiting": "waiting"}, others="checks")
