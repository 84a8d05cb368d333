"""What a core file of the `redlock` command would have, and has."""

import contextlib
import os
import re
import resource
import signal
import tempfile

import tools


def limit():
    """Arguments of Running(): the process writes a core file into its own folder, if this machine allows that."""
    return {"cwd": tempfile.mkdtemp(dir=tools.work), "preexec_fn": lambda: resource.setrlimit(
        resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)}


def dumpable_memory(pid):
    """What the kernel would write into a core file of the process."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        parts = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", file.read())
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for part in parts:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", part)
            if match is None or re.search(r"(?m)^VmFlags:.* dd", part):
                continue
            begin, end = int(match[1], 16), int(match[2], 16)
            mem.seek(begin)
            with contextlib.suppress(OSError):
                yield mem.read(end - begin)


def check_memory(running, known):
    """End a process that dumps core.  Neither its memory, as far as that is dumped, nor the core file has the secret,
    and both have the bytes that are known."""
    folder = os.readlink(f"/proc/{running.pid}/cwd")
    with open(f"/proc/{running.pid}/limits", encoding="utf-8") as file:
        has_limit = re.search("(?m)^Max core file size +unlimited ", file.read()) is None  # A sanitizer sets one.
    try:
        memory = b"".join(dumpable_memory(running.pid))
        assert tools.SECRET.encode() not in memory and known in memory, len(memory)
    except PermissionError:
        print("the memory of another process cannot be read here")
    running.send(signal.SIGABRT)
    assert running.finish().code == -signal.SIGABRT
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
        pattern = file.read()
    cores = [name for name in os.listdir(folder) if "core" in name]
    if pattern[0] in "|/" or has_limit:
        print("core files cannot be had here")
    else:
        assert len(cores) == 1, (pattern, cores)
    for name in cores:
        with open(f"{folder}/{name}", "rb") as file:
            core = file.read()
        os.unlink(f"{folder}/{name}")
        assert tools.SECRET.encode() not in core and known in core, len(core)
