"""The words of a history: which events there are, what each must have, and what may be said there.

Whatever is not among them makes a history worthless: misspelt, it would go through as nothing, or
as something else.
"""

# Over at once; all others last until they are healed.
MOMENTARY = ["kill-client", "script-flush", "flushall", "clock-back", "clock-forward"]
LASTING = ["cut-minority", "cut-majority", "bridge", "ring", "one-way", "flap", "isolate-client",
           "slow-link", "reset", "pause-master", "pause-client", "kill-master", "swizzle",
           "clock-rate", "restart-empty"]

# What takes its keys from a master: that they are gone is then no wonder.
FORGETTING = ["flushall", "restart-empty"]
STEPPING = ["clock-forward"]
CLOCKS = STEPPING + ["clock-back"]  # By which those who wait may be taken for dead.

# How a lock is held: by one owner, with others in one lease, in the order of a queue, as one of some
# permits, with other readers, or as the one who keeps readers out.
MODES = ["alone", "several", "fair", "permit", "reader", "writer"]

# How an operation may end that fails: by the names of redlock.h, and two of the clients' own, who
# may find nothing left of a lease, or call off what they have asked for.
OUTCOMES = ["CONTENDED", "UNREACHABLE", "TOO_LATE", "RAN_OUT", "CANCELLED"]
# What neither faults nor other clients explain; E_COMMAND: `redlock run` ended with an odd status.
FAILURES = ["E_INVAL", "E_NOMEM", "E_STATE", "E_SYSTEM", "E_COMMAND"]
# How a release may end; TOLD: of `redlock run`, whose command ended when told of the loss.
RELEASES = ["ok", "UNREACHABLE", "LOST", "TOLD"]

# Where only these words are understood; "": nothing is said.
WORDS = {
    "invoke": {"kind": ["plain", "extended", "blocking", "run"], "fenced": ["", True, False],
               "mode": ["", *MODES]},
    "fail": {"why": OUTCOMES + FAILURES},
    "released": {"result": RELEASES + FAILURES},
    "lost": {"why": ["", "told", "stopped", "killed"]},
    "fault": {"kind": MOMENTARY + LASTING},
}

# What an event must have, and of which type.
FIELDS = {name: tuple(fields.items()) for name, fields in {
    "invoke": {"id": str, "lock": str, "kind": str, "ttl_ms": int},
    "ok": {"id": str},
    "extend": {"id": str, "deadline": int},
    "fail": {"id": str, "why": str},
    "release": {"id": str},
    "released": {"id": str, "result": str},
    "lost": {"id": str},
    "bye": {},
    "write": {"id": str, "lock": str, "by": str, "seq": int},
    "refused": {"id": str, "lock": str},
    "fault": {"kind": str},
    "healed": {"id": int},
    "quiet": {},
    "client": {"name": str},
    "keys": {"lock": str, "since": int, "tokens": dict, "left_ms": dict},
    "readers": {"lock": str, "since": int, "left_ms": dict},
    "queue": {"lock": str, "since": int, "places": dict},
}.items()}
