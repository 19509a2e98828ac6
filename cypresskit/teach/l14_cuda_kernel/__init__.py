"""Lesson 14, a kernel in CUDA, and its speed: its checks and helpers."""
