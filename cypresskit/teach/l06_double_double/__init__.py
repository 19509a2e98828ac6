"""Lesson 06, double-doubles: its checks and helpers, and pictures of its own."""
