"""``workbench``: edit a kernel's file in a notebook, and see what each edit changes.

This is its Python side. The page is in ``workbench.js``; ``conversation`` answers it.
"""

from html import escape
from pathlib import Path
from typing import Any

from cypresskit.draw.climb_picture import Climb
from cypresskit.draw.widget_channel import make_channel
from cypresskit.editing import page_files
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.edit_history import BROUGHT_NOTE, Edit, Edits
from cypresskit.editing.judgment import load_text
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.own_climb import make_own_climb
from cypresskit.editing.protocol import Message
from cypresskit.editing.step_files import CLIMB_FOLDER, begin_step, read_histories, saved_edit
from cypresskit.editing.step_outputs import HTML, PLAIN, restore_texts, submitted_output
from cypresskit.editing.steps import reference_kernel, step_named
from cypresskit.files.atomic import save_file
from cypresskit.gains import REFERENCE
from cypresskit.il.errors import shorten
from cypresskit.kernels import Kernel
from cypresskit.session import drop_dead_widget
from cypresskit.tables import in_columns

STILL_TEXT = (
    "The kernel as it was when this cell ran. Run the cell to edit it: what you type is saved."
)
MAX_PROCESSES = 3  # of the last workbenches: a new one ends those of older ones that are idle
#: By file and settings, the last one used at the end. Those without a process stay: their pages
#: are still connected, and get answers as soon as a text is typed there.
open_conversations: dict[tuple, Conversation] = {}


def workbench(
    file: str | Path | None = None,
    *,
    step: str | None = None,
    text: str | None = None,
    like: str | None = None,
    n: int | None = None,
) -> "Workbench":
    """Edit a kernel, and see after each pause whether it is correct, how fast it is, and why.

    Parameters
    ----------
    file
        The kernel's file, a path that ends in ``.il``. For a step, the default is a file in the
        folder ``climb``, such as ``climb/02.il``. A missing file is made from ``text``, ``like`` or
        the step.
    step
        A step of the climb, such as ``"02"``. The workbench shows its idea and its targets, and
        saves your fastest correct kernel that reaches the first target. A new step starts from your
        fastest correct kernel of the steps before it; some start from a kernel of their own.
    text
        A source to put into the file. The old text stays in the history.
    like
        The name of the kernel whose launch convention the text follows, unless it stores C in
        another way: of the catalog, or of a block, such as ``"block_4x4"``. A step sets this
        itself.
    n
        Size of the matrices at which the kernel is timed: m = n = k = ``n``. The default is the
        step's size, or 2048.

    Returns
    -------
    Workbench
        A notebook shows it as an editor.

    Raises
    ------
    OSError
        If the file can't be read or made, or is missing and neither ``text`` nor ``like`` is given.
    ValueError
        For a file whose name doesn't end in ``.il``, an ``n`` out of range, or an unknown step.
    TypeError
        If ``file`` is not a path, or ``text`` or ``like`` not a string.
    KeyError
        If ``like`` is no kernel's name.

    Notes
    -----
    The buttons below the code open costs, limits, bundles, registers, history, the climb, IL in a
    minute, and a legend; a step opens those that it is about. Tab indents; Escape, then Tab, leaves
    the editor.

    Examples
    --------
    >>> bench = ck.workbench("my_kernel.il", like="sgemm_naive")
    >>> bench  # doctest: +SKIP
    >>> ck.workbench(step="02")  # doctest: +SKIP
    """
    chosen = None if step is None else step_named(step)
    path = _kernel_path(Path(CLIMB_FOLDER, chosen.file) if file is None and chosen else file)
    if n is not None and (type(n) is not int or not 8 <= n <= 8192):
        raise ValueError(
            f"n is the size of the matrices, a whole number from 8 to 8192, not {shorten(n)}"
        )
    for argument, value, kind in (("text", text, "text"), ("like", like, "name")):
        if not isinstance(value, str | None):
            raise TypeError(f"{argument} is a kernel's {kind}, not {shorten(value)}")
    if chosen is not None:
        settings = {"like": chosen.like, "n": n or chosen.n, "step": step}
        if file is None:
            path.parent.mkdir(exist_ok=True)
        restore_texts(path, chosen)
        begin_step(path, chosen)
    else:
        given = "" if like is None else reference_kernel(like).text
        settings = {"like": like, "n": n or REFERENCE, "step": None}
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}: make it")
        if not path.exists():
            if not (start := text or given):
                raise FileNotFoundError(
                    f"there is no file {path}. To begin one with a kernel's text, name the kernel:"
                    f' ck.workbench("{path}", like="sgemm_naive")'
                )
            save_file(path, start)
    bench = Workbench(path.absolute(), settings)
    if text is not None:
        bench.conversation.load(text, "from the notebook's cell")
    edit = bench.history.find_text(bench.text) or Edit(bench.text)
    is_given = text is not None or edit.note == BROUGHT_NOTE
    if chosen is not None and edit.is_correct is None and is_given:
        bench.conversation.answer_here()
    return bench


def _kernel_path(file: Any) -> Path:
    """Return the path of a kernel's file. Raises ``TypeError`` and ``ValueError`` for others."""
    is_path = isinstance(file, (str, Path))
    if is_path and Path(file).suffix == ".il":
        return Path(file)
    raise (ValueError if is_path else TypeError)(
        f"file is a path that ends in .il, such as 'my_kernel.il', not {shorten(file)}. To edit a"
        ' kernel of the catalog: ck.workbench("my_kernel.il", like="sgemm_tn"); any other text:'
        ' ck.workbench("my_kernel.il", text=text); a step: ck.workbench(step="02")'
    )


class Workbench:
    """A kernel's file on the workbench; see ``ck.workbench``.

    Its attributes describe the file as it is now.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.conversation = _open_conversation(path, settings)
        self._widget: Any = None

    @property
    def text(self) -> str:
        """The kernel's text."""
        self.conversation.look()
        return self.conversation.text

    @property
    def kernel(self) -> Kernel:
        """The kernel and its launch convention, for use like one of the catalog. Raises what
        ``ck.load_kernel`` does.
        """
        return self._kernel_of(self.text)

    @property
    def history(self) -> Edits:
        """The edits so far, each with ``text``, ``is_correct`` and ``gflops``."""
        self.conversation.look()
        return self.conversation.edits

    @property
    def saved_kernel(self) -> Kernel | None:
        """The kernel that the step saves: the fastest correct one that reaches its first target.
        None if there is none, or no step.
        """
        step = self.conversation.step
        edit = saved_edit(self.history, step) if step else None
        return self._kernel_of(edit.text) if edit else None

    @property
    def climb(self) -> Climb:
        """The climb so far as one picture, with buttons that save it as a file."""
        folder = self.path.parent
        return make_own_climb(
            read_histories(folder if self.conversation.step else folder / CLIMB_FOLDER)
        )

    def _kernel_of(self, text: str) -> Kernel:
        return load_text(text, self.path.name, self.conversation.settings["like"])

    def __repr__(self) -> str:
        return f"Workbench: {self.path.name}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        show_submitted(self.conversation)
        shown = self._begin()._repr_mimebundle_()
        data, metadata = shown if isinstance(shown, tuple) else (shown, {})
        label = repr(self)
        # For places without a running kernel, such as a saved notebook on a page
        still = f"<p><b>{escape(label)}</b><br>{STILL_TEXT}</p>{in_columns(self.text)}"
        data |= {PLAIN: label, HTML: still}
        return drop_dead_widget(data), drop_dead_widget(metadata)

    def _begin(self) -> Any:
        """Return the widget; it is made when it is first shown."""
        if self._widget is None:
            conversation, channel = self.conversation, make_channel()
            self._widget = _widget_class()(channel=channel.model_id)
            conversation.connect(channel.send)
            channel.on_msg(lambda _, message, __: conversation.hear(message, channel.send))
        return self._widget


def show_submitted(conversation: Conversation) -> None:
    """Display the step's submitted text in an invisible output, for the saved notebook. It follows
    the conversation as a page does, and changes with the history.
    """
    step, edits = conversation.step, conversation.edits
    if step is None:
        return
    from IPython.display import display

    shown = display(submitted_output(edits, step), raw=True, display_id=True)
    if shown is None:
        return

    def update(message: Message) -> None:
        if message["type"] == "history":
            shown.update(submitted_output(edits, step), raw=True)

    conversation.follow(update)


def _open_conversation(path: Path, settings: dict[str, Any]) -> Conversation:
    """Return the conversation about a file with these settings. A cell that runs again continues
    the old one; those with other settings continue beside it.
    """
    key = path.resolve(), *settings.values()
    conversation = open_conversations.pop(key, None) or Conversation(KernelFile(path), settings)
    conversation.look()
    open_conversations[key] = conversation
    for old in [*open_conversations.values()][:-MAX_PROCESSES]:
        with old.lock:
            if old.supervisor.job is None:
                old.supervisor.stop()
    return conversation


def _widget_class() -> type:
    """Return the class of the widget. It is made here, since importing anywidget takes long."""
    try:
        import anywidget
        from traitlets import Unicode
    except ImportError as error:
        raise ImportError("ck.workbench needs anywidget: pip install 'cypresskit[draw]'") from error

    class WorkbenchWidget(anywidget.AnyWidget):
        _esm = page_files.widget_module()
        _css = page_files.style()
        channel = Unicode().tag(sync=True)

    return WorkbenchWidget
