"""The workbench: edit a kernel, and see at once what it became, whether it is right, what it costs
and why.

``protocol`` says what the page and the answers say to each other; ``pure_answers`` is the half of
the answers that is pure.
"""
