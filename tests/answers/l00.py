"""Lesson 00."""


class Unseen(int):
    def __repr__(self):
        raise AttributeError("no picture")
