"""Lesson 05, the texture cache: its checks and helpers."""
