"""What pyproject.toml can't say: a wheel has the student's notebooks, as cypresskit/lessons, and the index shows README
with the repository's address, if it has one, before its links and pictures (`make address`)."""

import json
import re
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
            good = {}  # what `cypresskit marks` shows beside students' sentences
            for source in Path(__file__).parent.glob("notebooks/source/*.md"):
                answers = re.findall(
                    r"(?s)<!-- why: .*?\?\s+(.*?)\s+-->", source.read_text("utf-8")
                )
                good[source.stem] = [" ".join(answer.split()) for answer in answers]
            (target / "sentences.json").write_text(json.dumps(good), encoding="utf-8")


readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
found = re.search(r"git clone (https://\S+)", readme)
address = found[1] if found else ""
if found:
    readme = re.sub(r"(\]\()(?!http|#)", rf"\1{address}/blob/HEAD/", readme)
    readme = re.sub(r'((?:src|srcset)=")(?!http)', rf"\1{address}/raw/HEAD/", readme)
else:  # where links would lead nowhere
    readme = re.sub(r"(?s)<picture>.*?</picture>|!\[[^\]]*\]\((?!http).*?\)", "", readme)
    readme = re.sub(r"\[([^\]]*)\]\((?!http|#).*?\)", r"\1", readme)
setup(
    cmdclass={"build_py": BuildWithLessons},
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls={
        "Source": address,
        "Issues": f"{address}/issues",
        "Changes": f"{address}/blob/HEAD/CHANGELOG.md",
    }
    if found
    else {},
)
