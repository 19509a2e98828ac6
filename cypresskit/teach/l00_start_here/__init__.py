"""Lesson 00, Start here: its checks and helpers."""
