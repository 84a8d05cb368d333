"""The package has a copy of redlock.h, whose version it takes."""

import os
import re
import shutil

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
COPY = os.path.join(HERE, "redlock_quorum", "redlock.h")
TREE = os.path.join(HERE, "..", "redlock.h")
MESON = os.path.join(HERE, "..", "..", "meson.build")
VERSION = os.path.join(HERE, "redlock_quorum", "version.txt")

if os.path.exists(TREE):  # In the source tree, not in an sdist.
    shutil.copy(TREE, COPY)
    with open(MESON, encoding="utf-8") as meson, open(VERSION, "w", encoding="utf-8") as version:
        version.write(re.search(r"version: '([^']+)'", meson.read())[1] + "\n")
with open(VERSION, encoding="utf-8") as version:
    setup(version=version.read().strip(), packages=["redlock_quorum"],
          package_data={"redlock_quorum": ["redlock.h", "version.txt", "py.typed"]})
