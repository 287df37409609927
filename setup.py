"""Put what a wheel needs of data/ into the package: our treebanks, the paper's tables, a small parser, the encoder for Chinese.

The rest of the project is described in pyproject.toml.
"""

from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py

IN_THE_WHEEL = ("sample", "sample-zh", "paper", "models/en-span", "encoders/e5-han")


class BuildWithData(build_py):
    """Copy data/NAME to lalkit/data/NAME of the wheel. An editable installation reads data/ where it is."""

    def run(self):
        super().run()
        for name in () if self.editable_mode else IN_THE_WHEEL:
            copytree(Path("data", name), Path(self.build_lib, "lalkit", "data", name), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithData})
