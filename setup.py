"""Put the folders of data/ that MANIFEST.in names into the wheel, and make the links of README absolute for a package page.

The rest of the project is described in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py


def read(name):
    return Path(name).read_text(encoding="utf-8")


class BuildWithData(build_py):
    """Copy data/NAME to lalkit/data/NAME of the wheel. An editable installation reads data/ where it is."""

    def run(self):
        super().run()
        for name in () if self.editable_mode else re.findall("^graft (data/.+)", read("MANIFEST.in"), re.M):
            copytree(name, Path(self.build_lib, "lalkit", name), dirs_exist_ok=True)


project = tomllib.loads(read("pyproject.toml"))["project"]
address = project["urls"]["Repository"]
page = read("README.md").replace("ADDRESS", address)
# Links to pictures, to files and to headings of the page itself
for link, target in (
    (r"!\[[^]]*\]\((?!http)", "raw/{}/"),
    (r"\]\((?!http|#)", "blob/{}/"),
    (r"\]\((?=#)", "blob/{}/README.md"),
):
    page = re.sub(link, rf"\g<0>{address}/{target.format('v' + project['version'])}", page)
setup(cmdclass={"build_py": BuildWithData}, long_description=page, long_description_content_type="text/markdown")
