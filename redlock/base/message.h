/*
 * message.h - every kind of message has an identifier; pure.
 *
 * MESSAGES is the one table of them: a name for C, the identifier, what happened, and what to do.
 * The command ends a line of standard error with the identifiers, as in "[no-majority,
 * no-connection]", and so do lines of the log.  docs/troubleshooting.md has an entry for each,
 * which `redlock help IDENTIFIER` prints (cli/embed-pages).  test/tree/test-messages compares both.
 *
 * An identifier is never changed or given another meaning: users search for it.
 */
#ifndef REDLOCK_MESSAGE_H
#define REDLOCK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* In the order of docs/troubleshooting.md: a call's end, masters, sets, `run`, the command itself.
 */
#define MESSAGES(X)                                                                                \
    X(HELD, "held", "Another client holds the lock, or another lease of this client does.",        \
      "Wait with --wait, or look who holds it: redlock status NAME.")                              \
    X(NO_MAJORITY, "no-majority",                                                                  \
      "Too few masters gave a vote: those that the message names are down, or do not answer.",     \
      "Repair the masters that the message names.  The other identifiers in the brackets say "     \
      "what "                                                                                      \
      "is wrong with them.")                                                                       \
    X(WARMING, "warming",                                                                          \
      "A master is new, or lost its data.  It may not vote before all locks that it may have "     \
      "forgotten are over.",                                                                       \
      "Run redlock init, which watches all masters until they may vote, or wait: usually 61 s.")   \
    X(NO_RIGHT, "no-right",                                                                        \
      "The ACL of a master forbids this user a command, a key or a channel.",                      \
      "Compare the user's rights with what redlock acl prints, and run redlock doctor.")           \
    X(WRONG_SET, "wrong-set",                                                                      \
      "The list of masters does not fit the set that the masters belong to.",                      \
      "Give all clients the list that redlock members prints.")                                    \
    X(TOO_LATE, "too-late",                                                                        \
      "A majority granted the lock, but so late that nothing was left of its time.",               \
      "Use a longer --ttl, or find out why the masters or this host are slow.")                    \
    X(LOST, "lost", "The lock is not held any more, or was never held with this token.",           \
      "Stop the work that the lock protects.  redlock status NAME shows who holds it now.")        \
    X(REVOKED, "revoked", "Somebody took the lock from its holder with unlock --force.",           \
      "Ask whoever the message names, before you start the work again.")                           \
    X(INTERRUPTED, "interrupted", "A signal, or redlock_interrupt(), ended the call.",             \
      "Nothing, or run it again: whatever was acquired is released.")                              \
    X(WRONG_ARGUMENT, "wrong-argument", "An option or an argument is not allowed, or is missing.", \
      "Correct what the message names.  redlock help COMMAND shows the options.")                  \
    X(BLANK_IN_NAME, "blank-in-name",                                                              \
      "The name of a lock begins or ends with a blank, which belongs to the name.",                \
      "If it came from quotes, from a comma in a list, or from a file, remove it: with and "       \
      "without it, these are two locks.")                                                          \
    X(WRONG_STATE, "wrong-state", "A program called a function that is not allowed at this time.", \
      "Correct the program: redlock(3) says when each function may be called.")                    \
    X(NO_MEMORY, "no-memory", "This process got no memory.",                                       \
      "Look at its limits (ulimit -v, the cgroup) and at what else runs on the host.")             \
    X(SYSTEM, "system",                                                                            \
      "The system refused a timer, a thread, a process, a stack, a loop, or random numbers.",      \
      "The text behind the colon is the system's reason: look at the limits of the process.")      \
    X(FOREIGN_KEY, "foreign-key", "A key has the name of the lock, and redlock did not write it.", \
      "Use another name, or delete the key if nothing uses it.")                                   \
    X(QUEUE_FULL, "queue-full", "The queue of a fair lock has no place for another client.",       \
      "Let fewer clients wait, or split the lock into several names.")                             \
    X(OVERLOADED, "overloaded",                                                                    \
      "This client has sent a master so many commands that no more may wait.",                     \
      "Take fewer locks at a time, or find out why this master is slow.")                          \
    X(NO_CONNECTION, "no-connection", "There is no connection to this master.",                    \
      "Start the server, or correct its address, the firewall, or the bind line in redis.conf.")   \
    X(NO_ANSWER, "no-answer", "The master is connected and gives no answer in time.",              \
      "Look at its load and its disk (SLOWLOG, LATENCY DOCTOR); far masters need a longer "        \
      "--reply-timeout.")                                                                          \
    X(NO_ADDRESS, "no-address", "The name of this master has no address.",                         \
      "Correct the name in the list, or the name server of this host.")                            \
    X(TLS_CERTIFICATE, "tls-certificate", "The certificate of this master is refused.",            \
      "Give its CA by --tls-ca.  The name in the certificate must be the host of the URI, or "     \
      "--tls-server-name.")                                                                        \
    X(TLS_FAILED, "tls-failed", "This client and the master do not agree on TLS.",                 \
      "Give the port of the master that speaks TLS, and a certificate if the master wants one "    \
      "(--tls-cert, --tls-key).")                                                                  \
    X(TLS_UNVERIFIED, "tls-unverified", "Certificates are not verified (--tls-verify none).",      \
      "Never use this in production: give the CA by --tls-ca instead.")                            \
    X(WRONG_PASSWORD, "wrong-password",                                                            \
      "The master refuses the password or the user, or wants one.",                                \
      "Correct the user and the password in the list of masters (redis://USER:PASSWORD@HOST, "     \
      "with "                                                                                      \
      "TLS rediss://USER:PASSWORD@HOST).")                                                         \
    X(PASSWORD_NOT_SENT, "password-not-sent",                                                      \
      "Running clients do not send the password of their list to this new member, because their "  \
      "list does not name its host.",                                                              \
      "Give all clients a list that names it (redis://USER:PASSWORD@HOST, with TLS "               \
      "rediss://USER:PASSWORD@HOST), and restart them.")                                           \
    X(NO_COMMAND, "no-command", "The master does not know a command that redlock needs.",          \
      "Give a Redis of version 6 or later, without rename-command for what redlock acl lists.")    \
    X(NO_DATABASE, "no-database", "The master has no database of the number that the URI names.",  \
      "Correct the number in the list of masters (redis://HOST:PORT/NUMBER), or raise databases "  \
      "in redis.conf.")                                                                            \
    X(REDIS_VERSION, "redis-version",                                                              \
      "The version of this Redis is too old, or has not been tested with redlock.",                \
      "Install Redis 6 or later.")                                                                 \
    X(NOT_KNOWN, "not-known",                                                                      \
      "The master does not report its settings, so redlock cannot judge them.",                    \
      "Allow INFO and CONFIG GET, as redlock acl prints the rules, or see yourself how the "       \
      "master is set.")                                                                            \
    X(SLOW, "slow", "An answer of this master takes longer than the reply timeout.",               \
      "Use a longer --reply-timeout (reply_timeout_ms), or find out why the master or the "        \
      "network is slow.")                                                                          \
    X(KNOWN_PASSWORD, "known-password",                                                            \
      "The password of this master is the word PASSWORD, which redlock acl prints in place of "    \
      "one.",                                                                                      \
      "Choose another password, on the master and in the list.")                                   \
    X(WAS_REPLICA, "was-replica",                                                                  \
      "The master was a replica before, and may lack locks that its former master had granted.",   \
      "Usually nothing: if it was promoted while clients used it, run DEL redlock:master on it, "  \
      "and redlock init.")                                                                         \
    X(LATER_VERSION, "later-version", "A later version of redlock uses this master.",              \
      "Upgrade redlock on this host.")                                                             \
    X(MAX_TTL, "max-ttl", "A client takes longer leases than --max-ttl allows here.",              \
      "Give all clients the same --max-ttl.")                                                      \
    X(TOO_MANY, "too-many", "The list and its set are more masters than redlock can examine.",     \
      "Give a shorter list: one member is enough to find the others.")                             \
    X(REPLICA, "replica", "The server is a replica.",                                              \
      "Give the address of a master, or make it one: REPLICAOF NO ONE.")                           \
    X(CLUSTER, "cluster", "The server is a node of a Redis Cluster.",                              \
      "Give servers of their own, with cluster-enabled no.")                                       \
    X(LOADING, "loading", "The master has just started, and is still reading its data.",           \
      "Wait: it votes when it has read them.")                                                     \
    X(NOT_REDIS, "not-redis", "What answers at this address does not answer as a Redis does.",     \
      "Correct the address and the port in the list of masters.")                                  \
    X(MASTER_ERROR, "master-error",                                                                \
      "The master answered with an error that redlock does not know.",                             \
      "The text is that of the master: look into its log.")                                        \
    X(FULL, "full", "The master has no memory left (maxmemory), or cannot write to its disk.",     \
      "Make room: the log of the master says more.")                                               \
    X(EVICTION, "eviction", "The master may drop locks when its memory is full.",                  \
      "Set maxmemory-policy noeviction, also in redis.conf.")                                      \
    X(PERSISTENCE, "persistence", "The master loses its locks when it restarts.",                  \
      "Set appendonly yes and appendfsync always, or accept that it warms up after each restart.") \
    X(FEW_MASTERS, "few-masters",                                                                  \
      "So many masters survive no loss, or no more losses than one less.", "Use 3 or 5 masters.")  \
    X(SAME_SERVER, "same-server", "Two entries of the list are the same server.",                  \
      "Remove one of them, or give the address of another server.")                                \
    X(SAME_EPOCH, "same-epoch",                                                                    \
      "Two masters have the same epoch, so one has a copy of the other's data.",                   \
      "Empty the one that got the copy (FLUSHALL), and run redlock init.")                         \
    X(COUNTERS, "counters", "The fencing counters of a master are days ahead of the clock.",       \
      "Set the clocks right; if they are, delete redlock:master on this master and run redlock "   \
      "init.")                                                                                     \
    X(CLOCK, "clock",                                                                              \
      "The clock of a master was stepped, is wrong, or was not watched for long enough.",          \
      "Let chronyd or ntpd slew the clock.  The vote counts again when the time that the message " \
      "names is over.")                                                                            \
    X(NOT_STORED, "not-stored", "A master does not store the lock that its holder had.",           \
      "Find out who deleted the key, or whether the master lost its data (redlock status).")       \
    X(NO_WITNESS, "no-witness", "A master cannot report how long the others have been warming.",   \
      "Look at the error behind the colon.  Until then one client must watch for the whole time.") \
    X(NO_PUBLISH, "no-publish",                                                                    \
      "A master refuses to announce that locks are free, so waiters poll.",                        \
      "Allow the channels that redlock acl prints.")                                               \
    X(UP, "up", "A master is connected and ready.", "Nothing.")                                    \
    X(NO_SET, "no-set", "The masters belong to no set yet, or too few say so.",                    \
      "Start all masters of the list, and run redlock init.")                                      \
    X(SET_FOUNDED, "set-founded", "The masters of the list have become a set.", "Nothing.")        \
    X(SET_CHANGED, "set-changed", "The set of masters has changed, or is about to.",               \
      "Give all clients the new list: redlock members prints it.")                                 \
    X(SET_CLOSED, "set-closed", "A rescue was interrupted, and the set grants no locks.",          \
      "Run the same redlock members rescue again.")                                                \
    X(LOOPBACK, "loopback", "The members have addresses that only this host can reach.",           \
      "For more than a trial found the set with addresses that all hosts can reach.")              \
    X(BAD_MARKER, "bad-marker",                                                                    \
      "The marker of a master has something that redlock did not write.",                          \
      "Delete the key redlock:master there, and run redlock init.")                                \
    X(CANNOT_JOIN, "cannot-join", "The master cannot become a member of the set.",                 \
      "The message says why.  A server that was used elsewhere is emptied first (FLUSHALL).")      \
    X(CHANGE_REFUSED, "change-refused",                                                            \
      "This change of the set is not possible, and nothing was changed.",                          \
      "The message says what to give instead.  redlock members shows the set.")                    \
    X(CHANGE_OVERTAKEN, "change-overtaken", "Another operator has changed the set meanwhile.",     \
      "Look at the set (redlock members), and run the command again if it is still wanted.")       \
    X(NOT_TOLD, "not-told", "The change is done, but a master was not reached to be told of it.",  \
      "Keep it off, or empty it.  To tell it, run remove with a list that names it.")              \
    X(NOT_NEW, "not-new", "init --new was given a master that clients have used.",                 \
      "Run redlock init without --new.")                                                           \
    X(VERSIONS, "versions", "Two versions of one set may vote: one of them is left over.",         \
      "Empty the masters that the message names (FLUSHALL), and run redlock init.")                \
    X(NOT_SCANNED, "not-scanned", "redlock list did not read the locks of this master.",           \
      "The other identifier says why; the list may miss locks that only this master stores.")      \
    X(NOT_REVOKED, "not-revoked", "unlock --force did not take the lock.",                         \
      "The message says why.  Run it again when a majority of the masters answers.")               \
    X(TWO_HOLDERS, "two-holders", "The lock was deleted, and its old holder may still work.",      \
      "End the old holder before you start the work again.")                                       \
    X(GUARDIAN_KILLED, "guardian-killed",                                                          \
      "The guardian of redlock run was killed, and the command was ended without it.",             \
      "Find out what killed it (the OOM killer?), and whether descendants of the command still "   \
      "run.")                                                                                      \
    X(COMMAND_KILLED, "command-killed", "redlock run killed its command.",                         \
      "Look at the message before it: the lock was lost, or time ran out.")                        \
    X(LEFT_RUNNING, "left-running", "Processes that the command started were left running.",       \
      "Let the command wait for what it starts.  End what could not be killed.")                   \
    X(AT_MOST, "at-most", "The command had not ended when --hold-at-most was over.",               \
      "Find out why it hangs, or give it more time.")                                              \
    X(AT_LEAST, "at-least", "--hold-at-least does not do what it is for.",                         \
      "Give a --hold-at-least that is longer than --wait.")                                        \
    X(NOT_STARTED, "not-started", "The command of redlock run cannot be started.",                 \
      "Correct its name, its path or its permissions.")                                            \
    X(MAY_BE_HELD, "may-be-held",                                                                  \
      "No majority confirmed the release, so the lock may still be held.",                         \
      "Nothing: it ends by itself when its time is over.")                                         \
    X(NO_OUTPUT, "no-output", "Standard output cannot be written, or messages were dropped.",      \
      "Look at the disk or the pipe that standard output goes to.")                                \
    X(GAVE_UP, "gave-up", "bench got no lock for too long.",                                       \
      "Run redlock doctor, and bench again when a majority may vote.")

#define MESSAGE_NAME(name, id, happened, remedy) MSG_##name,
enum msg { MSG_NONE, MESSAGES(MESSAGE_NAME) MESSAGES_LEN };
#undef MESSAGE_NAME

/* The identifier.  MSG_NONE: "". */
const char *message_id(enum msg message);

/* The kind of a status of the library.  REDLOCK_OK, or an unknown one: MSG_NONE. */
enum msg message_of_status(int status);

/* What keeps a master from voting, by the text that says so.  Such a text is ours, or that of
 * Redis, of OpenSSL or of the system.  An unknown one is MSG_MASTER_ERROR. */
enum msg message_of_reason(const char *reason);

#endif /* REDLOCK_MESSAGE_H */
