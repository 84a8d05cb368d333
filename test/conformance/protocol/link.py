"""One connection to one master: bytes, and answers in the order of the commands.  Sections 2 and 3 of
docs/protocol.md."""

import collections
import random
import socket
import time


def now_us():
    """A clock that counts sleep, in microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Failure(Exception):
    """An error that a master answered."""


class Broken(Failure):
    """No answer: the connection broke."""


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def decode(data, at=0):
    """(reply, where the next begins); None: not whole yet.  A Failure is returned, not raised."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, text, end = data[at:at + 1], data[at + 1:end], end + 2
    if kind == b"-":
        return Failure(text.decode(errors="replace")), end
    if kind == b"+":
        return text.decode(), end
    if kind == b":":
        return int(text), end
    length = int(text)
    if length < 0:
        return (None,), end
    if kind == b"$":
        if len(data) < end + length + 2:
            return None
        return data[end:end + length], end + length + 2
    items = []
    for _ in range(length):
        item = decode(data, end)
        if item is None:
            return None
        items.append(item[0])
        end = item[1]
    return items, end


class Link:
    """A connection that opens itself again.  `opened` is called when it is up, `heard` for each message."""

    def __init__(self, place, opened, heard=None):
        host, port = place.rsplit(":", 1)
        self.address = (host, int(port))
        self.opened, self.heard = opened, heard
        self.socket, self.owed, self.out, self.data = None, collections.deque(), b"", b""
        self.is_up, self.pause_us, self.next_us, self.progress_us = False, 50000, 0, 0

    def tick(self):
        """Connects; gives up a connection that owes answers for three seconds."""
        if self.socket is None and now_us() >= self.next_us:
            self.socket = socket.socket()
            self.socket.setblocking(False)
            self.progress_us = now_us()
            if self.socket.connect_ex(self.address) not in (0, 115):
                self.close()
        elif self.socket and (self.owed or not self.is_up) and now_us() - self.progress_us > 3500000:
            self.close()

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.is_up, self.out, self.data = None, False, b"", b""
        self.next_us = now_us() + int(self.pause_us * random.uniform(0.5, 1))
        self.pause_us = min(2 * self.pause_us, 2000000)
        owed, self.owed = self.owed, collections.deque()
        for then in owed:
            then(Broken("the connection broke"))

    def send(self, words, then):
        """`then` is called once, with the reply or a Failure."""
        if self.socket is None:
            then(Broken("not connected"))
            return
        if not self.owed:
            self.progress_us = now_us()
        self.owed.append(then)
        self.out += encode(words)

    def wants_to_write(self):
        return not self.is_up or bool(self.out)

    def writable(self):
        if not self.is_up:
            if self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.close()
                return
            self.is_up = True
            self.opened(self)
        try:
            self.out = self.out[self.socket.send(self.out):] if self.out else b""
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def readable(self):
        try:
            got = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if not got:
            self.close()
            return
        self.data += got
        self.progress_us = now_us()
        while self.socket and (item := decode(self.data)):
            reply, end = item
            self.data = self.data[end:]
            reply = None if reply == (None,) else reply
            if self.heard and isinstance(reply, list) and reply[0] == b"message":
                self.heard(reply[1], reply[2])
            elif self.owed:
                self.owed.popleft()(reply)
            else:
                self.close()
