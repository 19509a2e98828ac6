"""Lesson 04, registers and wavefronts: its checks and helpers."""
