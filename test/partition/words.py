"""The words of a history: which events there are, what each must have, and what may be said there.

An unknown word makes a history invalid: a misspelt event could otherwise be ignored, or be taken
for another.
"""

# Faults that are over at once; all others last until they are healed.
MOMENTARY = ["kill-client", "script-flush", "flushall", "clock-back", "clock-forward"]
LASTING = ["cut-minority", "cut-majority", "bridge", "ring", "one-way", "flap", "isolate-client",
           "slow-link", "reset", "pause-master", "pause-client", "kill-master", "swizzle",
           "clock-rate", "restart-empty", "members", "halt-operator", "move"]
# No fault, although it is recorded as one: masters are replaced in good health.
CALM = ["move"]

# Faults that remove the keys of a master, and so excuse a missing key.
FORGETTING = ["flushall", "restart-empty"]
STEPPING = ["clock-forward"]
CLOCKS = STEPPING + ["clock-back"]  # Faults by which masters may take waiters for dead.

# How a lock is held: alone, with others in one lease, in the order of a queue, as a permit, with
# other readers, or by a writer, which excludes readers.
MODES = ["alone", "several", "fair", "permit", "reader", "writer"]

# How a failed operation may end: names of redlock.h, and two words of the clients.  RAN_OUT: no
# time was left of the lease.  CANCELLED: the client cancelled the attempt.
OUTCOMES = ["CONTENDED", "UNREACHABLE", "NOT_READY", "E_WRONG_SET", "TOO_LATE", "RAN_OUT", "CANCELLED"]
# No fault and no other client explains these; E_COMMAND: `redlock run` ended with an odd status.
FAILURES = ["E_INVAL", "E_NOMEM", "E_STATE", "E_SYSTEM", "E_COMMAND", "E_FORBIDDEN", "INTERRUPTED"]
# How a release may end; TOLD: a command of `redlock run` ended when it was told of the loss.
RELEASES = ["ok", "UNREACHABLE", "LOST", "TOLD"]

# Fields that allow only these words; "": the field is missing.
WORDS = {
    "invoke": {"kind": ["plain", "extended", "blocking", "run"], "fenced": ["", True, False],
               "mode": ["", *MODES]},
    "fail": {"why": OUTCOMES + FAILURES},
    "released": {"result": RELEASES + FAILURES},
    "lost": {"why": ["", "told", "stopped", "killed"]},
    "fault": {"kind": MOMENTARY + LASTING},
}

# The fields that an event must have, with their types.
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
    "change": {"id": int, "by": str, "about": str},
    "changed": {"id": int},
    "set": {"since": int, "stored": dict, "lists": dict},
    "client": {"name": str},
    "keys": {"lock": str, "since": int, "tokens": dict, "left_ms": dict},
    "readers": {"lock": str, "since": int, "left_ms": dict},
    "queue": {"lock": str, "since": int, "places": dict},
}.items()}
