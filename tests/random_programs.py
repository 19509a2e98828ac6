"""The generator of random programs, for tests: see `cypresskit.machine.random_programs`."""

from cypresskit.machine.random_programs import random_program, random_words

__all__ = ["random_program", "random_words"]
