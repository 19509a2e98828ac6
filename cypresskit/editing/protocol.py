"""What the workbench's page and the process that answers it say to each other.

The page (``workbench.js``) holds the editor and the pictures; it knows no compiler. It is given a
*channel*, ``{send(message), listen(function)}``, and sends and hears messages: objects of JSON with
a ``type``. In a notebook the channel is a widget's comm and the answers come from a process beside
the kernel; on the site it is a worker, which has the pure half alone (``pure_answers``).

The page says:

``hello``: unsent
    The page is there; the answer is ``state``. ``unsent``: by file, what a page had when nobody
    heard it any more, ``{text, base}`` with the text that it was made of.
``text``: edit, text, base, typed
    The reader changed the text, at ``typed``, in milliseconds since 1970: of two texts at once the
    later one counts, and the other is in the history. ``edit`` names this text: whatever the page
    chose, never used twice. Each ``answer`` carries it back, and the page drops answers to older
    texts. ``base`` is the ``edit`` of the text that was changed. Nothing but a reader's hand makes
    a page say this.
``shown``: edit
    The page shows a text that came in ``state`` or ``text``, and wants its answers. A workbench
    that no page asks works on nothing: its cell may be gone.
``play``: edit, view
    A view of this kernel is wanted (``views.VIEWS``), or ``view`` is "climb". The answer is a part
    "view".
``book``
    Put the book's text of the step into the file; the answer is ``text``.
``recall``: entry
    Bring back the text of an entry of the history; the answer is ``text``.
``replay``: edit, row, column
    Which terms went into this element of C? The answer is a part "replay".

Whoever answers says:

``state``: name, file, text, edit, words, parts, history, problem, step
    All that a page needs to begin: the file's name and its whole path, its text, what the
    language's words mean (``pure_answers.words``; ``beside``: what this launch puts into them),
    which parts of an answer can come (without a clock, "text" and "code" alone), the history, the
    problem of ``heard``, and the ``step`` of the climb, or None. Only the page that said ``hello``
    hears it.
``heard``: edit, saved, problem
    The text has arrived; ``saved``, whether it is in the file, and if not, why, in words that say
    where it is kept. They stay true, and are shown, until another ``heard`` or ``saved`` comes.
``saved``: edit
    The text that couldn't be written is in the file now.
``working``: edit, part
    This part is being worked on.
``answer``: edit, part, ...
    One part of the answer to a text, in this order; each is described where it is made.

    - "text" (``pure_answers.text_answer``): faults, live registers. With faults it is the last.
    - "code" (``pure_answers.code_answer``): what the compiler made of it, and its card.
    - "verdict" (``measured_answers.verdict_answer``): right or wrong, and
      findings; with ``small`` (``small_product``), A, B and C to be checked by head.
    - "clocks" (``measured_answers.clocks_answer``): how fast it is, and what binds it.
    - "replay" (``measured_answers.replay_answer``): of a wrong product, what went into its first
      wrong element, or into the one that was asked for.
    - "view": a ``view`` that was asked for, as a ``page`` that plays, or the ``problem``; of the
      climb, its ``picture`` with buttons that save it, as HTML.
    - "prices" (``measured_answers.prices_answer``): what each line costs, when nobody types.
``done``: edit
    Nothing more comes for this text: all parts are there, or the rest can't be made, as of one that
    the compiler refuses or that can't be timed. (With faults, the part "text" says as much.)
``text``: text, edit
    Show this text, which is in the file and called ``edit``: it was changed from outside, or by
    another page on the same file, or an entry or the book's text was asked for. The page says
    ``shown``, and never sends it back. A page whose reader has typed meanwhile sends that instead.
``step``: ...
    The step of ``state`` is another: it keeps a faster text (``kept``, as an entry).
``history``: entries
    The history, whenever it has grown: see ``edits.Edit.shown``; an entry is its ``number``.
``gone``
    Nobody answers any more: the kernel is started anew. (The widget's channel says this itself.)
``trouble``: message
    What the reader has to know once: the file was changed at the same time, the process had to be
    started anew.
"""

#: The parts of an answer, in their order.
PARTS = ("text", "code", "verdict", "clocks", "replay", "prices")
