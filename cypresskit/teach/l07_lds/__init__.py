"""Lesson 07, the local data share: its checks and helpers, and pictures of its own."""
