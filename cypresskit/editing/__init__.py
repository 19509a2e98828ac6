"""The workbench: edit a kernel, and see at once whether it is correct, how fast it is, and why.

``protocol`` lists the messages between its page and Python. ``static_answers`` need only the
compiler; ``dynamic_answers`` say what ``judgment`` found: it runs the kernel and simulates its
time.
"""
