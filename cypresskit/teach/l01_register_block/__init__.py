"""Lesson 01, register blocks: its checks and helpers, and pictures of its own."""
