"""A headless Chromium, controlled by its DevTools protocol over pipes.

Two pipes, descriptors 3 and 4 of the browser, carry JSON messages that end with a NUL.  So it needs
no port, and it ends when the pipes are closed.  See --remote-debugging-pipe.
"""

import base64
import collections
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome"]
BOUND_S = 120  # Chosen: for short operations; only a hang takes longer.
HIGH_FD = 30  # Above the descriptors that the browser inherits.


class BrowserError(Exception):
    """The browser does not start, does not answer, or a script threw an exception."""


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A context; within it there is one page."""

    def __init__(self, width=1440, height=1000):
        self.size = (width, height)
        self.last_id = 0
        self.buffer = b""
        self.events = collections.deque()
        self.complained = []
        self.session = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="redlock-browser-",
                                                  ignore_cleanup_errors=True)
        try:
            self.start()
            self.open_page()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for fd in (self.to_it, self.from_it):
            os.close(fd)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(BOUND_S)
        self.log.close()
        self.folder.cleanup()

    def start(self):
        its_in, self.to_it = os.pipe()
        self.from_it, its_out = os.pipe()
        # Move them above 3 and 4, which the browser needs.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH_FD) for fd in (its_in, its_out)]

        def give():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        argv = [find(), "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
                "--disable-extensions", "--disable-background-networking", "--disable-sync",
                "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND",
                "--hide-scrollbars", f"--window-size={self.size[0]},{self.size[1]}",
                f"--user-data-dir={self.folder.name}/profile", "about:blank"]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=(3, 4),
            preexec_fn=give, env={**os.environ, "HOME": self.folder.name})
        for fd in (its_in, its_out, *high):
            os.close(fd)

    def open_page(self):
        targets = self.call("Target.getTargets", browser=True)["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", browser=True,
                                 targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(*self.size)

    # ---- The protocol ----

    def call(self, method, browser=False, **params):
        """The result of a command."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if not browser:
            message["sessionId"] = self.session
        self.send(json.dumps(message).encode() + b"\0")
        give_up = time.monotonic() + BOUND_S
        while True:
            answer = self.receive(give_up)
            if answer.get("id") != self.last_id:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def send(self, data):
        while data:
            data = data[os.write(self.to_it, data):]

    def receive(self, give_up):
        while b"\0" not in self.buffer:
            left = give_up - time.monotonic()
            if left <= 0 or not select.select([self.from_it], [], [], left)[0]:
                raise BrowserError(f"no answer within {BOUND_S} s")
            got = os.read(self.from_it, 1 << 20)
            if not got:
                raise BrowserError(f"it ended: {self.last_words()}")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def last_words(self):
        with open(self.log.name, "rb") as file:
            return file.read()[-2000:].decode(errors="replace")

    def wait_for(self, method):
        """The parameters of the next such event."""
        give_up = time.monotonic() + BOUND_S
        kept = collections.deque()
        try:
            while True:
                event = self.events.popleft() if self.events else self.receive(give_up)
                if event.get("method") == method:
                    return event["params"]
                kept.append(event)
        finally:
            self.events = kept + self.events

    # ---- The page ----

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def look(self, scheme="light", medium=""):
        """Emulate a reader who prefers light or dark, on a screen or on paper ("print")."""
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path):
        self.complained += self.complaints_now()
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        self.wait_for("Page.loadEventFired")
        self.settle()

    def settle(self):
        """Wait until the page has been drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
                 "() => done(1))))")

    def run(self, script):
        """The value of an expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"])[:1000])
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def wheel(self, x, y, delta):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        self.settle()

    def drag(self, x, y, to_x):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        for part in (0.3, 0.6, 1):
            self.mouse("mouseMoved", x + (to_x - x) * part, y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, y, button="left", clickCount=1)
        self.settle()

    def key(self, name, text=None):
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)
        self.settle()

    def complaints(self):
        """Messages on the console, and requests to other hosts, since the last call."""
        self.run("1")  # All earlier messages have arrived by now.
        found = self.complained + self.complaints_now()
        self.complained = []
        self.events.clear()
        return found

    def complaints_now(self):
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params")
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:1000])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(json.dumps(params["args"])[:1000])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    found.append(f"asked for {url}")
        return found

    # ---- Pictures ----

    def picture(self, path, whole=False):
        params = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params = {"captureBeyondViewport": True,
                      "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                               "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        """The bytes of the page as PDF."""
        result = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(result["data"])
