"""Lesson 12, the contest: its checks and helpers."""
