"""The messages between the workbench's page and the Python that answers it.

The page (``workbench.js``) holds the editor and the pictures; it contains no compiler. It gets a
*channel*, ``{send(message), listen(function)}``. Each message is a JSON object with a ``type``. In
a notebook, the channel is a widget (``draw.widget_channel``); on the site, it is a worker.

::

    page                        conversation                process that answers
     |  hello                        |                               |
     | ----------------------------> |                               |
     |                        state  |                               |
     | <---------------------------- |                               |
     |  shown, or text (typed)       |                               |
     | ----------------------------> |                               |
     |         heard, answer "text"  |  job: the parts to make       |
     | <---------------------------- | ----------------------------> |
     |         working, answer, ...  |         working, answer, ...  |
     | <---------------------------- | <---------------------------- |
     |  ask (another part)           |  job: that, and what is left  |
     | ----------------------------> | ----------------------------> |
     |                         done  |                         done  |
     | <---------------------------- | <---------------------------- |

A text with faults is done at once: its process gets no job. ``text``, ``history`` and ``trouble``
come at any time.

These are messages, not a widget's traits, since a text may lose against another editor's. So it
says what it was made from, and the reply says what became of it. The newest value of a trait would
win, without a word.

``edit`` names a version of the text: each change by the reader gets a new name. Answers
carry the name of their text, and those to older texts are dropped.

Messages of the page
--------------------
``hello``
    The page has opened; the reply is ``state``. A widget repeats it until it is answered.
``text``: edit, text, base
    The reader changed the text. ``base``: the ``edit`` that was changed; "" for a draft of an
    earlier page. If another editor changed the file too, its text goes into the history. Only the
    reader's typing causes this message; what was typed after the notebook's kernel had ended is
    sent when the page opens again.
``unsent``: edit, text
    A text for the history: an earlier page couldn't send it, and the file has changed since. The
    reply is ``heard``.
``shown``: edit
    The page shows a text from ``state`` or ``text``, and needs its answers. A text that no page
    shows isn't answered.
``ask``: edit, part, ...
    The page needs another part: "replay", with the ``element`` [row, column] of the small product's
    C; "llvm"; or "climb".
``restart``
    Load the given text of the step; the reply is ``text``, unless that is the text.
``line``
    Show one more line of the step's solution, to a reader who is stuck: at first without its
    sources. The reply is ``line``; before its time, there is none.
``recall``: entry
    Load the text of an entry of the history; the reply is ``text``.

Messages of Python
------------------
Those of the process have ``job``, the number of the job that they are about, by which the
supervisor drops those of older jobs; a page needs none.

``state``: name, file, text, edit, gap, token, colors, tables, history, problem, step, llvm
    All that a page needs to begin: the file's name and path; its text, and the first line that asks
    for the reader's, or 0; the pattern of a token (``static_answers.TOKEN``); how many
    colors lines have (``draw.theme``); ``legend.TABLES``;
    the ``history``, as in that message; the problem, as in ``heard``; the step, or None; and
    whether LLVM is there for other kernels than the catalog's. Of a step's ``starter``, nothing is
    shown as an error. Only the page that sent ``hello`` gets this message. The site's page adds
    ``newcomer``: whether IL is explained first.
``heard``: edit, problem
    The text is in the file, or in the history, if it was ``unsent``; or ``problem`` says why it
    isn't, and where it is kept.
``working``: edit, part, progress
    This part is being made; ``progress``, if it is there, is what is known of it so far.
``answer``: edit, part, ...
    A part of the answer: "text" comes as soon as a text is typed, those of ``PARTS`` in their
    order, and "climb" when it is asked for. After one that ``is_last``, no other part of ``PARTS``
    follows, and none is made if it is asked for: the text has faults, is refused, or has no launch.

    - "text" (``static_answers.text_answer``): faults, the registers that are live and that are set,
      and the meanings of words.
    - "code" (``static_answers.code_answer``): the compiled code and its statistics.
    - "verdict" (``dynamic_answers.verdict_answer``): whether C is correct, and findings; ``small``
      (``small_product``) holds a product that the reader can check by hand.
    - "clocks" (``dynamic_answers.clocks_answer``): the speed, what limits it, and what would help.
    - "llvm" (``dynamic_answers.llvm_answer``): LLVM's code, its statistics and speed; only if the
      page asks for it.
    - "replay" (``dynamic_answers.replay_answer``): the terms of an element of C: the first
      incorrect one, or the one that the page asked for, which is of ``small``.
    - "costs" (``dynamic_answers.costs_answer``): the cost of each line, once typing pauses.
    - "climb" (``own_climb``): the reader's saved steps as a ``picture`` in HTML.
``done``: edit
    No more parts come.
``text``: text, edit
    Show this text: it comes from another editor, another page, the history, or the step. The page
    replies ``shown``; if its reader has typed meanwhile, it sends ``text`` instead.
``history``: entries, saved, wait
    The history has changed (``edit_history.Edit.shown``), and perhaps the edit that the step saves:
    ``saved`` is its speed in Gflop/s, or None. ``wait``: in how many seconds one more line can be
    shown, or None.
``line``: lines, hint, end
    The lines that a stuck reader was shown; ``hint`` is the next one without its sources, or "", if
    it is among them; ``end`` says that there is no further one, or is "".
``gone``
    Python is being restarted. (The widget's channel sends this itself.)
``trouble``: message
    A message for the reader, shown once. Of the process: a fault of the package, or why a job was
    given up.
"""

from typing import Any

Message = dict[str, Any]
AnswerPart = dict[str, Any]  # of a message "answer": what it has besides ``edit`` and ``part``

#: The parts of the answer to a text without faults, in their order.
ALL_PARTS = ("code", "verdict", "clocks", "llvm", "replay", "costs")
#: Those that are made even if the page doesn't ask for them.
PARTS = tuple(part for part in ALL_PARTS if part != "llvm")
