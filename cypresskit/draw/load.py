"""Load the pictures' scripts into a notebook."""

import gc

from cypresskit import session
from cypresskit.draw.display import scripts
from cypresskit.draw.scripts import join_modules

FULL = 1_000  # collections of young objects' survivors before one of all objects; Python's own: 10


def cell_script() -> str:
    """Return the script that ``load`` runs on a notebook's cells."""
    return f"(() => {{\n{join_modules('draw/il_colors.js', 'draw/cells.js')}}})()"


def load() -> None:
    """Load the players' scripts (0.5 MB) into a notebook, once, before the first picture.

    It also colors IL in cells and shows how long a cell has been running.

    Notes
    -----
    Python's garbage collection then rarely looks at all objects (``gc.set_threshold``), which saves
    a twelfth of a lesson's time (Python 3.11).
    """
    from IPython.display import HTML, display

    session.set_up()
    young, survivors, _ = gc.get_threshold()
    gc.set_threshold(young, survivors, FULL)
    # JupyterLab would break long lines within a word
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"
    code = f"<script>{scripts()}</script>{wrap}<script>{cell_script()}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
