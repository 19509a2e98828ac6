"""``workbench``: a kernel's file in an editor that answers each edit, in a notebook.

The file is the kernel: whatever edits it, the picture follows. Here is what Python has of it; the
page is in ``workbench.js``, what it is answered in ``conversation``.
"""

from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from cypresskit.draw.climb_picture import REFERENCE, Climb
from cypresskit.editing import measured_answers, page_files, pure_answers
from cypresskit.editing.conversation import BROUGHT, Conversation
from cypresskit.editing.edits import Edits, history_path
from cypresskit.editing.kernel_file import KernelFile, begin_file
from cypresskit.editing.own_climb import own_climb
from cypresskit.editing.pure_answers import Answer
from cypresskit.editing.steps import (
    FILE,
    FIRST,
    MIME,
    STEPS,
    Step,
    book_kernel,
    book_text,
    saved_texts,
    step_named,
)
from cypresskit.il import ILError
from cypresskit.il.errors import shortened
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.own import resolve
from cypresskit.session import without_dead_widget
from cypresskit.tables import in_columns, quantity

PLAIN = "text/plain"
HTML = "text/html"
OUTPUTS = 4  # of a workbench that follow its edits, the last ones shown
STILL = "This is the kernel as it was when this cell ran. Run the cell to edit it."
BENCHES = 3  # with different settings, that a file is open on
_conversations: dict[Path, list[Conversation]] = {}  # by the file that they are about


def workbench(
    file: str | Path | None = None,
    *,
    step: str | None = None,
    text: str | None = None,
    like: str | Kernel | None = None,
    n: int | None = None,
) -> "Workbench":
    """Edit a kernel, and see at each pause what it became, whether it is right, how fast, and why.

    Parameters
    ----------
    file
        The kernel's file, a path that ends in ``.il``; of a step, ``my_kernel.il`` if not given. If
        there is none, it begins with the text of ``like``, or of the step.
    step
        A step of the climb, such as ``"02"``: its idea and its targets stand above the code, and a
        correct kernel that reaches the first target is saved as that step's. A step that was
        open before goes on with its own last text, another one with that of the step before it. The
        file is at one step at a time: a workbench of another one keeps what stands on it, says so,
        and has the file again as soon as somebody types there.
    text
        What the file shall hold from now on, or of a step the name of the book's kernel that has
        it, such as "block_4x4". What it held stays in its history.
    like
        The kernel of the catalogue whose launch convention it follows, as far as it does: a text
        that stores C in another way is launched as it asks for. A step says it itself.
    n
        It is timed at m = n = k = ``n``; by default at the step's, or at 2048.

    Returns
    -------
    A ``Workbench``, which a notebook shows.

    Raises
    ------
    OSError
        For a file that can't be read, one that isn't there without ``like``, and a missing folder.
    ValueError
        For other file names, for sizes that make no sense, and for what is no step.
    TypeError
        For a file that is no path, and a text that is none.
    KeyError
        For a name that the catalogue doesn't have.

    Notes
    -----
    The button ``?`` opens a legend. The buttons below the code open costs, limits, bundles,
    registers, history and views; a step opens those that it is about. Tab indents; Escape, then
    Tab, leaves the editor.

    Examples
    --------
    >>> bench = ck.workbench("my_kernel.il", like="sgemm_naive")
    >>> bench  # doctest: +SKIP
    >>> ck.workbench(step="02")  # doctest: +SKIP
    """
    chosen = None if step is None else step_named(step)
    if file is None:
        if chosen is None:
            raise TypeError('file is a path, such as "my_kernel.il"; or give a step, as step="02"')
        file = FILE
    path = _kernel_path(file)
    if n is not None and (type(n) is not int or not 8 <= n <= 8192):
        raise ValueError(f"n is a whole number from 8 to 8192, the size it is timed at, not {n!r}")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text is a kernel's text, not {shortened(text)}")
    known = None if like is None else resolve(like, "like")
    if chosen is not None:
        n = n or chosen.n
        known = known or book_kernel(chosen.like)
        text = text and book_text(text)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent} for {path.name}: make it, or put the file elsewhere"
        )
    start = text
    if start is None and chosen is not None:
        start = chosen.book
    elif start is None and known is not None:
        start = known.text
    if start is not None:
        begin_file(path, start)
    elif not path.exists():
        raise FileNotFoundError(
            f"there is no file {path}. To begin one with a kernel's text, name the kernel:"
            f' ck.workbench("{path}", like="sgemm_naive")'
        )
    settings = {
        "like": known.name if known is not None else None,
        "n": n or REFERENCE,
        "step": step,
    }
    bench = Workbench(path.absolute(), settings)
    at = bench._edits.step
    brought = None if chosen is None else bench._bring_back(chosen)
    if text is not None:
        bench._conversation.put(text, "given")
        bench._judge()
    elif brought is not None:
        bench._conversation.put(brought, BROUGHT)
    elif chosen is not None and (begun := _begins_with(bench._edits, chosen, at)) is not None:
        bench._conversation.put(begun, "")
    bench._conversation.lead(bench._conversation.text)
    kept = None if chosen is None else bench._edits.kept(chosen.name)
    if kept is not None and kept.right is None and kept.text == bench._conversation.text:
        bench._judge()
    return bench


def _begins_with(edits: Edits, step: Step, at: str) -> str | None:
    """The text with which a step goes on: its own last one, or that of the nearest step before it,
    or the book's. None: the file's, which is ``at`` this very step.
    """
    texts = {edit.step: edit.text for edit in edits if edit.step in STEPS}
    before = step
    while before.name not in texts and before.previous:
        before = STEPS[before.previous]
    if before.name in texts:
        return None if before.name == at else texts[before.name]
    return None if not texts and (step.previous or step.name == FIRST) else step.book


def _kernel_path(file: object) -> Path:
    """The path that is meant. Raises ``TypeError`` and ``ValueError`` that say how to begin."""
    if isinstance(file, Kernel):
        raise TypeError(
            f"file is a path, not a Kernel. To begin a file with its text:"
            f' ck.workbench("my_kernel.il", like="{file.name}")'
        )
    if not isinstance(file, (str, Path)):
        raise TypeError(f"file is a path, such as 'my_kernel.il', not {shortened(file)}")
    if isinstance(file, str) and file in KERNELS:
        raise ValueError(
            f"file is a path, and {file} is a kernel of the catalogue. To begin a file with its"
            f' text: ck.workbench("my_kernel.il", like="{file}")'
        )
    if isinstance(file, str) and "\n" in file:
        raise ValueError(
            f"file is a path, not a kernel's text, {shortened(file)}. Put the text into a file:"
            ' pathlib.Path("my_kernel.il").write_text(text), then ck.workbench("my_kernel.il")'
        )
    if Path(file).suffix != ".il":
        raise ValueError(
            f"a kernel's file ends in .il, such as my_kernel.il, not {shortened(str(file))}"
        )
    return Path(file)


class Workbench:
    """A kernel's file on the workbench; see ``ck.workbench``.

    Attributes describe the file as it is now; while it is at another step, the text left on this
    workbench: ``text``; ``kernel``, with which all is done that a kernel of the catalogue is for;
    ``history``, its edits; ``climb``, a picture of the steps that are kept.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._settings = settings
        self._conversation = _conversation(path, settings)
        self._edits = self._conversation.edits
        self._widget: Any = None

    @property
    def text(self) -> str:
        """The kernel's text."""
        self._conversation.look()
        return self._conversation.text

    @property
    def kernel(self) -> Kernel:
        """The kernel, with its launch convention. Raises what ``ck.load_kernel`` does."""
        return measured_answers.judged_kernel(self.text, self.path.name, **self._convention)[0]

    @property
    def _convention(self) -> dict[str, Any]:
        step = self._conversation.step
        return {"like": self._settings["like"], "old_c": step is not None and step.old_c}

    @property
    def history(self) -> Edits:
        """The edits so far: each has ``text``, ``right``, ``gflops`` and what it became."""
        self._conversation.look()
        return self._edits

    @property
    def climb(self) -> Climb:
        """The climb so far as one picture to send round, with buttons that save it."""
        return own_climb(self.history)

    def __repr__(self) -> str:
        return f"Workbench: {self.path.name}, {_summary(_pure_answers(self.text, self.path.name))}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        self._hand_in()
        shown = self._begin()._repr_mimebundle_()
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        data |= {PLAIN: repr(self), HTML: self._still()}
        return without_dead_widget(data), without_dead_widget(metadata)

    def _still(self) -> str:
        """What places without a running kernel show, such as a saved notebook on a page."""
        return f"<p><b>{escape(repr(self))}</b></p>{in_columns(self.text)}<p>{STILL}</p>"

    def _hand_in(self) -> None:
        """Show the text that counts as the step's in an output of its own, which nobody sees and a
        saved notebook has; and show it anew whenever another one counts.
        """
        if self._conversation.step is None:
            return
        from IPython.display import display

        step = self._conversation.step.name

        def bundle() -> dict[str, Any]:
            edit = self._edits.counting(step)
            if edit is None:
                return {HTML: "", PLAIN: ""}
            held = {"step": step, "text": edit.text, "kept": edit.kept}
            return {MIME: held, HTML: "", PLAIN: f"Saved as your step {step}." if edit.kept else ""}

        last = bundle()
        shown = display(last, raw=True, display_id=True)

        def update() -> None:
            nonlocal last
            if shown is not None and (now := bundle()) != last:
                last = now
                shown.update(now, raw=True)

        noted = self._conversation.noted
        noted.append(update)
        del noted[:-OUTPUTS]

    def _bring_back(self, step: Step) -> str | None:
        """Take what the saved notebook holds into a history that keeps nothing of the step: the
        notebook was moved, and its output will be shown anew. Returns the step's text, or None.
        """
        if self._edits.kept(step.name) is not None:
            return None
        known = self._edits.counting(step.name)
        if texts := saved_texts():
            self._conversation.bring_back(texts)
        brought = self._edits.counting(step.name)
        return None if brought is None or brought is known else brought.text

    def _judge(self) -> None:
        """Judge and time the text here and now, and keep it as the step's if it is right."""
        step = self._conversation.step
        if step is None:
            return
        try:
            mine, seen = measured_answers.judged_kernel(
                self.text, self.path.name, **self._convention
            )
        except (ILError, ValueError, TypeError):
            return
        if not seen.right:
            return
        gflops = measured_answers.clocks_answer(mine, step.n).get("gflops", 0.0)
        self._conversation.keep_step(self.text, gflops)

    def _begin(self) -> Any:
        """The widget, made when it is first shown."""
        if self._widget is None:
            self._widget = _widget_class()()
            conversation, widget = self._conversation, self._widget
            conversation.connect(widget.send)
            conversation.prepare()
            widget.on_msg(lambda _, message, __: conversation.hear(message, widget.send))
        return self._widget


@lru_cache(maxsize=4)
def _pure_answers(text: str, name: str) -> dict[str, Answer]:
    return dict(pure_answers.pure_answers(text, name))


def _conversation(path: Path, settings: dict[str, Any]) -> Conversation:
    """The conversation about a file with these settings: a cell that is run again goes on with the
    one there is. Those with other settings go on beside it, with the same text and history.
    """
    known = _conversations.setdefault(path.resolve(), [])
    for conversation in known:
        if conversation.settings == settings:
            known.append(known.pop(known.index(conversation)))
            return conversation
    if known:
        file, edits = known[-1].file, known[-1].edits
        known[-1].look()
    else:
        file = KernelFile(path)
        edits = Edits(history_path(path))
    known.append(Conversation(file, edits, settings))
    while len(known) > BENCHES:
        known.pop(0).close()
    return known[-1]


def _widget_class() -> type:
    """The class of the widget; made here, since anywidget takes its time and only notebooks have
    it.
    """
    try:
        import anywidget
    except ImportError as error:
        raise ImportError("ck.workbench needs anywidget: pip install 'cypresskit[draw]'") from error

    class WorkbenchWidget(anywidget.AnyWidget):
        _esm = page_files.widget_module()
        _css = page_files.style()

    return WorkbenchWidget


def _summary(answers: dict[str, Answer]) -> str:
    """What a text became, in a few words."""
    faults, code = answers["text"]["faults"], answers.get("code", {})
    if faults:
        return f"line {faults[0]['line']}: {faults[0]['message']}"
    if "refusal" in code:
        return code["refusal"]["message"].splitlines()[-1].strip()
    card = code["card"]
    bundles = quantity(card["bundles_per_iteration"], "bundle")
    registers = quantity(card["gprs"], "register")
    wavefronts = quantity(card["wavefronts"], "wavefront")
    return f"{bundles} in the loop, {registers}, {wavefronts}"
