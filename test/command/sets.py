"""What the tests of sets of masters share: a set of real servers, and their markers."""

import contextlib
import json
import socket
import threading
import time

import tools

SET = f"{tools.PORT:016d}"  # What season() writes.


@contextlib.contextmanager
def servers(members, others=0):
    """A set of so many durable masters, and other masters that belong to none and are warming."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(tools.server(*tools.DURABLE, seasoned=i < members))
                 for i in range(members + others)]
        for port in ports[:members]:
            tools.season(port, of=ports[:members])
        yield ports


def names(*ports):
    return [f"127.0.0.1:{port}" for port in ports]


def text(*ports):
    return " ".join(sorted(names(*ports)))


def ask(port, *words):
    with tools.Master(port=port) as master:
        return master.ask(*words)


def marker(port):
    words = [word.decode() for word in ask(port, "HGETALL", tools.MARKER)]
    return dict(zip(words[::2], words[1::2]))


def set_fields(port, **fields):
    ask(port, "HSET", tools.MARKER, *[word for pair in fields.items() for word in pair])


def store(ports, version, config):
    """These members store this version."""
    for port in ports:
        epoch = marker(port)["epoch"].split(".")[0]
        set_fields(port, ver=version, config=config, epoch=f"{epoch}.{version}", set=SET, of="set",
                   name=f"127.0.0.1:{port}")


def command(ports, *args):
    return ["--connect-timeout", "3s", *tools.QUICK, "--masters", tools.on(*ports), *map(str, args)]


def members(ports, *args, code=0, err=None):
    return tools.expect(tools.run(*command(ports, "members", *args)), code, err=err)


def show(ports, code=0):
    return json.loads(members(ports, "--json", code=code).out)


def is_member(port, listed, version):
    """The marker says so, and nothing of the change is left in it."""
    got = marker(port)
    want = {"set": SET, "ver": str(version), "config": " ".join(sorted(names(*listed))), "of": "set"}
    if port in listed:
        want["name"] = names(port)[0]
    for key in ["set", "ver", "config", "of", "name", "ballot", "accepted", "claim", "nonce"]:
        assert got.get(key) == want.get(key), (port, key, got, want)
    assert got["epoch"].split(".")[1] == str(version), got
    return got["epoch"].split(".")[0]


def is_removed(port, version):
    got = marker(port)
    assert got["ver"] == str(version) and "name" not in got and "ballot" not in got, got


def is_refused(ports, *args, code=tools.CHANGE, err=None):
    """So are both the change and its dry run; nothing is changed."""
    for more in [["--dry-run"], []]:
        result = members(ports, *more, *args, code=code, err=err)
        assert result.out == "", result
    return result


def is_done(ports, *args):
    """The set is as wished: so say both the change and its dry run, and write nothing."""
    before = [marker(port) for port in ports]
    said = f"nothing to do: {args[-1]} is "
    result = members(ports, "--dry-run", *args, err=said)
    lines = result.out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["before", "after", "nothing was changed (--dry-run)"], result
    assert lines[0].split()[1:] == lines[1].split()[1:], result
    got = json.loads(members(ports, "--dry-run", "--json", *args).out)
    assert got["before"] == got["after"] and not got["finishes"], got
    result = members(ports, *args, err=said)
    assert result.out.startswith("the set has ") and "version" not in result.err, result
    assert [marker(port) for port in ports] == before


# ---- Other ways to masters ----

SLOW_S = 2  # Longer than a client needs, on a busy machine, for the members' own links.


def forward(source, to, slow, slow_s):
    """Hold back what has this word for so long."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if slow and slow in data:
                time.sleep(slow_s)
            to.sendall(data)
    for one in source, to:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def accept(listener, port, slow, slow_s):
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            master = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=forward, args=(client, master, slow, slow_s), daemon=True).start()
            threading.Thread(target=forward, args=(master, client, None, 0), daemon=True).start()


@contextlib.contextmanager
def detours(ports, slow, slow_s=SLOW_S):
    """Other ports of these masters.  slow: what each of them forwards late."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in ports]
        for i, port in enumerate(ports):
            threading.Thread(target=accept, args=(listeners[i], port, slow[i], slow_s), daemon=True).start()
        yield [listener.getsockname()[1] for listener in listeners]
