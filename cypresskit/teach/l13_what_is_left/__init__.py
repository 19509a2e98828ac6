"""Lesson 13, what is left of it: its checks and helpers."""
