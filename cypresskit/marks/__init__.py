"""Mark submitted notebooks: tables for a course system, and a page of feedback for each student.

- ``course``: the lessons and their exercises.
- ``submissions``: which notebooks each student submitted; ``archives`` reads those in zip files.
- ``judging``: judges answers in isolated processes, several students at once.
- ``gradebook``: adds up points, and writes tables and pages.
- ``handout``: lessons without solutions, to hand out.

``cypresskit marks`` and ``cypresskit handout`` are the commands. No notebook is run as a whole, and
no saved verdict counts.
"""
