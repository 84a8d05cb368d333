"""Programs that load one of our libraries before all others: nap.c, fail.c, names.c, test/partition/skew.c."""

import os


def preload(library):
    """The variables that do it.  A list of libraries cannot name a folder with a blank."""
    return {"LD_PRELOAD": os.path.basename(library), "LD_LIBRARY_PATH": os.path.dirname(library),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
