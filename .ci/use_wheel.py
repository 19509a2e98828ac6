"""What a bare wheel can: multiply, give its lessons, say what else it needs."""

import sysconfig
from pathlib import Path

import numpy as np

import cypresskit as ck
from cypresskit.cli import cmd_lab, main

a = np.ones((9, 9), np.float32)
assert (ck.gemm(a, a) == 9).all()
lessons = cmd_lab.find_lessons()
assert len(lessons) > 12 and lessons[0].parent == Path.cwd() / cmd_lab.FOLDER, lessons
assert main(["lab"]) == 1  # which says that JupyterLab isn't installed
try:
    ck.draw.chip()
except ImportError as error:
    assert "pip install 'cypresskit[draw]'" in str(error)
else:
    raise AssertionError("pictures are drawn without bokeh")
packages = Path(sysconfig.get_path("purelib"))
size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) / 1e6
print(f"{size:.0f} MB installed, of which LLVM takes some 180")
