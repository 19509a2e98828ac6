"""Lesson 09, the bus: its checks and helpers."""
