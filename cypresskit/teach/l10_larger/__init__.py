"""Lesson 10, matrices larger than the card: its checks and helpers."""
