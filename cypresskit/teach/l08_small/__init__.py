"""Lesson 08, small matrices: its checks and helpers, and pictures of its own."""
