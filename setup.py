"""What pyproject.toml can't say: a wheel has the student's notebooks, as cypresskit/lessons."""

from pathlib import Path
from shutil import copy

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLessons(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "cypresskit" / "lessons"
            target.mkdir(parents=True, exist_ok=True)
            for notebook in Path(__file__).parent.glob("notebooks/*.ipynb"):
                copy(notebook, target)


setup(cmdclass={"build_py": BuildWithLessons})
