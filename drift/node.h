/*
 * node.h - what each master's wall clock does, as seen by ours; pure.
 *
 * Redis expires keys by its wall clock.  A clock that steps forward drops locks
 * while their holders still rely on them.  The next client that asks for the lock
 * gets it, so that client must detect the step.  Each client keeps a drift_node per
 * master, and passes to it every TIME that the master reports.  It counts the
 * master's votes only while drift_node_counts().
 *
 * Two instants are known: when a command was sent, and when its answer came.  The
 * master read its clock somewhere between the two.  Everything here follows from
 * that alone.  Midpoints are not used: half of a round trip is a guess, and an
 * asymmetric network would look like a step.
 *
 * THE PROMISE.  Let n be a sample at which drift_node_counts().  For every instant
 * s of the guard's window before it, except in dips,
 *
 *     W(n) - W(s) < (1 + rate) * (n - s) + tolerance
 *
 * where W is the master's wall clock, however long the network delays.  Consider a
 * lease no longer than the window, whose key was set at s.  Its holder subtracts
 * rate * lease + tolerance, and what its own clock may differ from ours by.  Then
 * the key has not expired at n while its holder relies on it.  The clock may have
 * taken many steps in between, each too small to detect: the promise is about their
 * sum.  The proof is in node.c.
 *
 * A dip is an instant s between two consecutive useful samples a and b.  By s the
 * clock had lost time against ours since a, and it gained the time back by b, both
 * beyond the ordinary:
 *
 *     W(s) < W(a) + (s - a) - min(rate * (s - a), tolerance / 4)   and
 *     W(s) < W(b) - (1 + rate) * (b - s)
 *
 * An example is a clock that is set back and forth again within a second.  No
 * client can know what a clock did between samples.  But a dip is shorter than the
 * guard's gap.  A client that samples in the middle of a deep dip sees BACKWARD, or
 * FIRST if it knew nothing of the clock.  In both cases it does not count the
 * master for a gap: see there.  The reverse leaves no trace
 * on our side: a clock that is put forward and back between two samples, and drops
 * keys meanwhile.
 *
 * Limits: no reading of clocks, no I/O, no allocation.  A drift_node is used by one
 * thread at a time.
 */
#ifndef DRIFT_NODE_H
#define DRIFT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"

/* The sum of steps that is tolerated, and that leases subtract.  Chosen: well above the round
 * trips of a network, well below a lease.  The daemon ntpd steps a clock only if it is off by
 * more than 128 ms ("tinker step" in ntp.conf(5)), and slews it otherwise. */
#define DRIFT_TOLERANCE (100 * DRIFT_MS)

/* Offsets from the median of all masters.  Beyond DRIFT_FAR a warning is due; beyond
 * DRIFT_OUTLIER the master must not be counted.  Chosen.  Exclusion does not need them: an
 * offset that does not change does no harm.  But a clock that is this far off will be corrected
 * some day. */
#define DRIFT_FAR (500 * DRIFT_MS)
#define DRIFT_OUTLIER (5 * DRIFT_S)

/*
 * What leases subtract where each vote is checked, if clocks drift apart by this
 * much.  The next client compares the master's clock with its own, to within the
 * drift.  Its own clock may differ from the holder's by the drift as well.  And it
 * does not detect steps whose sum is below the tolerance.
 */
struct drift_bound drift_node_allowance(struct drift_bound drift);

/* The guard's parameters.  The same for all calls with one drift_node. */
struct drift_guard {
    uint32_t rate_ppm;    /* How much faster or slower than ours an honest clock may run, parts
                           * per million, at most 500000.  It must include the rates at which
                           * chrony slews both clocks. */
    drift_span tolerance; /* The sum of forward steps tolerated in one window. */
    drift_span window;    /* The longest lease that any client may hold, on our clock.  After a
                           * forward step a master is not counted for a window, because all
                           * earlier leases have ended then. */
    drift_span gap;       /* The longest time between two useful samples over which knowledge is
                           * carried.  Several sampling periods; 10 s, for example. */
};

/* What a master reported of its clock.  The instants are those of our clock. */
struct drift_sample {
    drift_time sent;     /* Read before the command was written. */
    drift_time received; /* Read after the answer had come. */
    uint64_t node_us;    /* Its TIME, microseconds since 1970. */
};

/* A value between lo and hi, both included.  In nanoseconds, unless stated otherwise. */
struct drift_range {
    int64_t lo, hi;
};

enum drift_verdict {
    /* No step is certain, and no useful sample lies within a gap before this one, or all of them
     * lie before a step.  The master does not count for a window, and at least for a gap, as
     * after BACKWARD: the clock may be in a dip.  Exception: another client vouches for it
     * (drift_node_vouch()). */
    DRIFT_FIRST,

    /* The sum of steps in a window is certainly below the tolerance.  THE PROMISE holds. */
    DRIFT_STEADY,

    /* It is not known whether the sum is below the tolerance.  The answer took too long, or the sum
     * is close to the tolerance, or the TIME is impossible.  This vote does not count; the next
     * may. */
    DRIFT_UNCERTAIN,

    /* The sum is certainly above the tolerance, by one step or many small ones.  Keys may have
     * expired early: the master is not counted for a window. */
    DRIFT_FORWARD,

    /* The clock has lost more than the tolerance, compared with a clock at the slowest rate.
     * Keys live longer, which does no harm.  When the clock is corrected, our key may expire
     * early.  A client whose samples lie before and after both steps does not notice this.  So
     * the master does not count for a gap, and what the rate adds to it.  By then every client
     * has a sample of the present clock, and will see it go forward. */
    DRIFT_BACKWARD,

    /* The clock certainly runs faster than the rate allows, over two consecutive spans of a
     * second or more each.  Two are needed, because a single step within one span looks like a
     * rate too.  Leases are shorter than they look: the master is not counted for a window. */
    DRIFT_FAST,
};

/* How a master's clock compares with the others. */
enum drift_place {
    DRIFT_PLACE_NEAR,
    DRIFT_PLACE_FAR,     /* Certainly more than DRIFT_FAR off the median: warn. */
    DRIFT_PLACE_OUTLIER, /* Certainly more than DRIFT_OUTLIER off: drift_node_bar(). */
};

/* The window is divided into this many parts.  One more is being filled, and one is partly
 * outside. */
#define DRIFT_WINDOW_PARTS 8
#define DRIFT_PARTS_LEN (DRIFT_WINDOW_PARTS + 2)

/* What is known of one part of the past; node.c defines the lines. */
struct drift_part {
    uint64_t number;   /* The number of the part since time 0, from 1 on; 0: none. */
    int64_t floor;     /* The clock was never below this, against the fast line. */
    int64_t ceiling;   /* The clock was once at or below this, against the fast line. */
    int64_t slow_peak; /* The clock was once at or above this, against the slow line. */
};

/* A master's clock.  All zero means that nothing is known.  Callers may read only the fields
 * above the line. */
struct drift_node {
    enum drift_verdict verdict; /* The verdict on the last sample. */
    drift_time counts_from;     /* The master is not counted before this; 0: no bar. */
    struct drift_range advance; /* How far the clock went forward beyond the rate in a window:
                                 * certainly lo, at most hi.  About INT64_MIN or INT64_MAX:
                                 * unknown. */
    struct drift_range step;    /* How far the clock may have been put forward between the last
                                 * two samples; negative: back.  Zero at first. */
    /* ---- */
    struct drift_sample last;   /* The last sample of all. received 0: none yet. */
    bool is_anchored;           /* The next two fields are valid. */
    drift_time anchor_sent;     /* When the last useful sample was sent. */
    int64_t anchor_offset;      /* The lowest offset that the clock can have had then. */
    struct drift_sample span;   /* Where the present span of a second begins, for FAST. */
    unsigned fast_spans;        /* How many spans in a row were fast. */
    struct drift_sample far[2]; /* Two useful samples: one is one to two windows old, the other
                                 * is younger. */
    struct drift_part parts[DRIFT_PARTS_LEN];
};

/*
 * Learn from a sample, and judge it.  Samples must come in the order of their
 * answers.  An impossible sample is UNCERTAIN, and is otherwise ignored.
 * Impossible are an answer before its question or before an earlier answer, 73
 * years of uptime, and a TIME after 2116.
 *
 * A sample is *useful*, in the sense of THE PROMISE, if its answer took no longer
 * than half of the tolerance.  Other samples can make the master count or expose
 * it.  But later samples are not compared with them: a slow answer fits so many
 * offsets that it would bar the master for a whole window.
 *
 * An honest clock never runs faster or slower than the rate allows.  It is never
 * FORWARD, BACKWARD, or FAST, however long the network delays.  It is STEADY if its
 * answers are useful, and this sum is below the tolerance: any two delays,
 * tolerance / 4, and rate * the time between two samples.
 */
enum drift_verdict drift_node_sample(struct drift_node *node, const struct drift_guard *guard,
                                     const struct drift_sample *sample);

/*
 * True: a vote counts whose command was sent at sent.  If the vote came with a
 * TIME, first learn from that sample, then call this with its sent: THE PROMISE
 * holds for this vote.  Without a TIME, the promise holds for the sample before the
 * vote, which must not be older than a gap.  It then says nothing about the clock
 * since that sample.
 */
bool drift_node_counts(const struct drift_node *node, const struct drift_guard *guard,
                       drift_time sent);

/*
 * Accept the word of another client that has watched this clock for a window.  That
 * client says that the clock's offset to ours was in this range at the instant at.
 * It also says that in the window before, except in dips, the offset was never lower
 * (within the rate), and that nothing bars the master.  Forget what was known, and
 * continue from there.  The master counts without waiting for a window.  Its next
 * sample is compared with this offset, must come within a gap, and must not be sent
 * before at.
 *
 * Vouching with the range of the first sample itself (drift_sample_offset()) means
 * trusting a clock at first sight.
 */
void drift_node_vouch(struct drift_node *node, const struct drift_guard *guard, drift_time at,
                      const struct drift_range *offset);

/* How long a clock that was not known before is watched until it counts. */
drift_span drift_node_watch(const struct drift_guard *guard);

/* Do not count this master for a window from now. */
void drift_node_bar(struct drift_node *node, const struct drift_guard *guard, drift_time now);

/* The master's clock minus ours, at the instant at which it read its clock.  The sample must be
 * possible: see drift_node_sample(). */
void drift_sample_offset(const struct drift_sample *sample, struct drift_range *ret_offset);

/*
 * The same offset at now, which must not be before the last answer.  It is the
 * range of the last sample, widened by what an honest clock may have done since.
 * Returns 0, or 1 if there was no sample yet.
 */
int drift_node_offset(const struct drift_node *node, const struct drift_guard *guard,
                      drift_time now, struct drift_range *ret_offset);

/*
 * How much faster than ours the clock has run, on average, in parts per million.
 * The average is over the last one to two windows, or since the last step of the
 * clock, if that is more recent.  Returns 0, or 1 if there is less than a second of
 * useful samples.
 */
int drift_node_rate(const struct drift_node *node, struct drift_range *ret_ppm);

/*
 * A range that contains the median of the offsets.  For an even number of offsets
 * it contains both middle ones. offsets_len must not be 0.
 */
void drift_node_median(const struct drift_range *offsets, unsigned offsets_len,
                       struct drift_range *ret_median);

/* How far an offset is from the median, at least. */
enum drift_place drift_node_place(const struct drift_range *offset,
                                  const struct drift_range *median);

#endif /* DRIFT_NODE_H */
