"""Write the slides: `python -m tools.questions_page slides.html`."""

import sys
from pathlib import Path

from tools.questions_page import write

write(Path(sys.argv[1]))
