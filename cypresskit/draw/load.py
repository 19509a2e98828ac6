"""Load the pictures' scripts into a notebook."""

import gc

from cypresskit import session
from cypresskit.draw.display import scripts
from cypresskit.draw.scripts import join_modules

#: Of Python's garbage collection: its own, but for collections of all objects, which are rare.
THRESHOLDS = 700, 10, 1_000


def cell_script() -> str:
    """Return the script that ``load`` runs on a notebook's cells."""
    return f"(() => {{\n{join_modules('draw/il_colors.js', 'draw/cells.js')}}})()"


def load() -> None:
    """Load the players' scripts (0.5 MB) into a notebook, once, before the first picture.

    It also colors IL in cells and shows how long a cell has been running.

    Notes
    -----
    Python's garbage collection then rarely looks at all objects (``gc.set_threshold``), which saves
    a twelfth of a lesson's time.
    """
    from IPython.display import HTML, display

    session.set_up()
    gc.set_threshold(*THRESHOLDS)
    # JupyterLab would break long lines within a word
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"
    code = f"<script>{scripts()}</script>{wrap}<script>{cell_script()}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
