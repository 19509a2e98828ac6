"""Lesson 11, pipelines: its checks and helpers."""
