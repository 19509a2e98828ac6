"""Load the pictures' scripts into a notebook."""

from cypresskit import session
from cypresskit.draw.display import scripts
from cypresskit.draw.scripts import join_modules


def cell_script() -> str:
    """Return the script that ``load`` runs on a notebook's cells."""
    return f"(() => {{\n{join_modules('draw/il_colors.js', 'draw/cells.js')}}})()"


def load() -> None:
    """Load the players' scripts (0.5 MB) into a notebook, once, before the first picture.

    It also colors IL in cells and shows how long a cell has been running.
    """
    from IPython.display import HTML, display

    session.set_up()
    # JupyterLab would break long lines within a word
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"
    code = f"<script>{scripts()}</script>{wrap}<script>{cell_script()}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
