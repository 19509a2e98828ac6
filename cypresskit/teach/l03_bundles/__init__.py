"""Lesson 03, bundles: its checks and helpers."""
