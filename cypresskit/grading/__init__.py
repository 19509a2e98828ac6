"""Grade a course: from submitted notebooks to tables of grades and pages of feedback.

- ``course`` knows the lessons and their exercises.
- ``hand_in`` finds a student's answers and explanations in a notebook; ``texts`` finds what in a
  cell is a text.
- ``submissions`` finds each student's notebooks, in folders of any content.
- ``judging`` judges answers in bare processes, on all processors.
- ``gradebook`` adds up points, and writes the tables and pages.
- ``handout`` writes lessons for students, without solutions.

``cypresskit grade`` is the command. A submitted notebook is never run as a whole, and verdicts
saved in it don't count.
"""
