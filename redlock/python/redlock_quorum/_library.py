"""The C library, as redlock.h declares it."""

import os
import re
from typing import Any

from cffi import FFI

# A newer library with the same number only appends fields to the structs.
LIBRARY = os.environ.get("REDLOCK_LIBRARY", "libredlock.so.0")


def declarations(header: str) -> str:
    """redlock.h without what cffi does not read: comments, macros and attributes."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    sizes = dict(re.findall(r"^#define (\w+) (\d+)", text, flags=re.M))
    text = re.sub(r"^#(?:.*\\\n)*.*\n", "", text, flags=re.M)
    text = re.sub(r"\[(\w+)\]", lambda found: f"[{sizes[found[1]]}]", text)
    text = re.sub(r'extern "C" \{|\bREDLOCK_(?:API|MUST_CHECK)\b', "", text)
    return re.sub(r"^\}\n", "", text, flags=re.M)


def _read() -> str:
    """The header of the source tree if this is one; otherwise the copy in the package."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "..", "..", "redlock.h")
    if not os.path.exists(os.path.join(folder, "..", "setup.py")):
        path = os.path.join(folder, "redlock.h")
    with open(path, encoding="utf-8") as file:
        return declarations(file.read())


ffi: Any = FFI()
ffi.cdef(_read())
try:
    lib: Any = ffi.dlopen(LIBRARY)
except OSError as failure:
    raise ImportError(f"the library of redlock cannot be loaded: {failure}.  Install it, or name the file in the "
                      "environment variable REDLOCK_LIBRARY") from failure
