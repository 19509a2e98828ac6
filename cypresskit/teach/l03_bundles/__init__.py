"""Lesson 03, bundles: its checks and helpers."""

from cypresskit.lazy import import_later

import_later(__name__, {}, others="checks")
