"""Lesson 02, why blocks: its checks and helpers, and pictures of its own."""
