"""Lesson 09."""

from cypresskit.host import n_balance

__all__ = ["n_balance"]
