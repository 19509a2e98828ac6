"""Grade a course: from submitted notebooks to tables of grades and pages of feedback.

- ``course`` knows the lessons and their exercises.
- ``hand_in`` is a notebook's difference to the handout.
- ``submissions`` finds each student's notebooks, in folders of any content.
- ``judging`` judges answers in bare processes, on all processors.
- ``decisions`` reads the teacher's tables, which overrule everything.
- ``gradebook`` adds up points, and writes the tables and pages.
- ``review`` writes the page on which the teacher reads and decides.
- ``handout`` writes lessons for students, without solutions.

``cypresskit grade`` is the command. A submitted notebook is never run as a whole, and verdicts
saved in it don't count.
"""
