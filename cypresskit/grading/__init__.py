"""Marks of a class: from submitted notebooks, tables for a course system and pages of feedback.

``course`` knows the lessons' exercises; ``submissions`` reads what was handed in, whatever that
is; ``judging`` judges answers in bare processes, several students at a time; ``gradebook`` adds up
and writes. ``cypresskit grade`` is the command. No kernel runs a student's notebook, and no saved
verdict counts.
"""
