/*
 * node.h - what each master's wall clock does, as seen by ours; pure.
 *
 * Redis expires keys by its wall clock: one that steps forward drops locks
 * while their holders still believe in them.  Who asks for the lock next gets
 * it, and is the one that must notice.  So each client keeps a drift_node per
 * master, shows it every TIME that the master tells, and counts the master's
 * votes only while drift_node_counts().
 *
 * What is known is the instant at which a command was sent, and at which its
 * answer came; somewhere between the two the master read its clock.  Everything
 * here follows from that alone.  No midpoints: half of a round trip is a guess,
 * and an asymmetric network would look like a step.
 *
 * THE PROMISE.  Let n be a sample at which drift_node_counts().  For every
 * instant s of the guard's window before it, dips aside,
 *
 *     W(n) - W(s) < (1 + rate) * (n - s) + tolerance
 *
 * where W is the master's wall clock, however the network delays.  So a key of
 * a lease no longer than the window, which was set at s and whose holder leaves
 * rate * lease + tolerance off its end (and what its own clock may differ from
 * ours by), has not expired at n while its holder believes in it.  However many
 * steps the clock took in between, each too small to see: the promise is about
 * their sum.  The proof is in node.c.
 *
 * A dip is an instant s between two useful samples a and b, one after the other,
 * at which the clock had lost on ours since a, and gained it back by b, both out
 * of the ordinary:
 *
 *     W(s) < W(a) + (s - a) - min(rate * (s - a), tolerance / 4)   and
 *     W(s) < W(b) - (1 + rate) * (b - s)
 *
 * as when a clock is set back and forth again within a second.  Nobody can know
 * what a clock did while nobody looked.  But a dip is shorter than the guard's
 * gap, and who looks in the middle of a deep one sees BACKWARD, and does not
 * count the master for so long: see there.  The reverse, a clock that is put
 * forward and back between two samples and drops keys meanwhile, leaves no trace
 * on our side at all.
 *
 * Limits: no reading of clocks, no I/O, no allocation; a drift_node is used by
 * one thread at a time.
 */
#ifndef DRIFT_NODE_H
#define DRIFT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"

/* A sum of steps that is put up with, and that leases leave off their ends.  A choice:
 * well above the round trips of a network, well below a lease.  ntpd steps a clock only
 * where it is off by more than 128 ms ("tinker step" in ntp.conf(5)), and slews below. */
#define DRIFT_TOLERANCE (100 * DRIFT_MS)

/* Off the median of all masters: worth a word, and not to be counted.  Choices as well,
 * and not needed for exclusion, since an offset does no harm that does not change; but a
 * clock that is that far off will be put right one day. */
#define DRIFT_FAR (500 * DRIFT_MS)
#define DRIFT_OUTLIER (5 * DRIFT_S)

/*
 * What leases leave off their ends where each vote is checked, if clocks drift apart like that.
 * Who asks next compares the master's clock with its own, to within the drift, and its own may
 * differ from the holder's by the drift as well; and steps that are below the tolerance in sum it
 * does not see.
 */
struct drift_bound drift_node_allowance(struct drift_bound drift);

/* What the guard goes by.  The same for all calls with one drift_node. */
struct drift_guard {
    uint32_t rate_ppm;    /* How much faster or slower than ours an honest clock may run, parts
                           * per million, at most 500000.  What chrony slews by must be in it. */
    drift_span tolerance; /* Forward steps put up with, in sum, in one window. */
    drift_span window;    /* The longest lease anybody may hold, on our clock; also how long a
                           * master is not counted after a step forward, since all leases of
                           * before it have ended then. */
    drift_span gap;       /* The longest time between two useful samples over which what is
                           * known is carried.  Several sampling periods; 10 s, say. */
};

/* What a master said of its clock.  The instants are those of our clock. */
struct drift_sample {
    drift_time sent;     /* Read before the command was written. */
    drift_time received; /* Read after the answer had come. */
    uint64_t node_us;    /* Its TIME, microseconds since 1970. */
};

/* Something between lo and hi, both included.  Of nanoseconds, if not said otherwise. */
struct drift_range {
    int64_t lo, hi;
};

enum drift_verdict {
    /* There is nothing to compare with: never a sample before, or none for longer
     * than a gap, or what it might be compared with lies before a step.  The master
     * does not count for a window, if it is not vouched for: drift_node_vouch(). */
    DRIFT_FIRST,

    /* The steps of a window are below the tolerance for certain.  THE PROMISE holds. */
    DRIFT_STEADY,

    /* They may be or not: the answer took too long to tell, or the sum is just about
     * the tolerance, or the TIME is none.  This vote does not count; the next may. */
    DRIFT_UNCERTAIN,

    /* They are over the tolerance for certain, at once or little by little.  Keys may
     * be gone early: not counted for a window. */
    DRIFT_FORWARD,

    /* The clock has lost more than the tolerance on one that runs at the slowest rate.
     * Keys live longer, and no harm is done by that.  It is what may come after: the
     * clock is put right again, and nobody notices whose samples lie before and after.
     * Then our key is gone early.  So the master does not count for a gap: by then
     * everybody has a sample of the clock as it is now, and will see it go forward. */
    DRIFT_BACKWARD,

    /* The clock runs faster than the rate allows for certain, over two spans in a row
     * of a second or more each; two, since a single step in one span is a rate as
     * well.  Leases are shorter than they look: not counted for a window. */
    DRIFT_FAST,
};

/* A master's place among the others. */
enum drift_place {
    DRIFT_PLACE_NEAR,
    DRIFT_PLACE_FAR,     /* More than DRIFT_FAR off the median for certain: tell somebody. */
    DRIFT_PLACE_OUTLIER, /* More than DRIFT_OUTLIER for certain: drift_node_bar(). */
};

/* The window is kept in so many parts, plus the one that is being filled and the one
 * that is half out of it. */
#define DRIFT_WINDOW_PARTS 8
#define DRIFT_PARTS_LEN (DRIFT_WINDOW_PARTS + 2)

/* What is known of a part of the past; see node.c for the lines. */
struct drift_part {
    uint64_t number;   /* Which part since the beginning of time, from 1 on; 0: none. */
    int64_t floor;     /* The clock was never lower, against the fast line. */
    int64_t ceiling;   /* It was once as low as this, against the fast line. */
    int64_t slow_peak; /* It was once as high as this, against the slow line. */
};

/* A master's clock.  Zeroes are one of which nothing is known.  Of the fields, those
 * above the line may be read. */
struct drift_node {
    enum drift_verdict verdict; /* On the last sample. */
    drift_time counts_from;     /* Not counted before; 0 if nothing stands against it. */
    struct drift_range advance; /* Forward beyond the rate: no more than hi in a window, and lo
                                 * of it for certain.  About INT64_MIN, or INT64_MAX: unknown. */
    struct drift_range step;    /* By how much the clock may have been put forward, or back, if
                                 * negative, between the last two samples.  Zeroes at first. */
    /* ---- */
    struct drift_sample last;   /* The last one of all.  received 0: none yet. */
    bool is_anchored;           /* The next two are meaningful. */
    drift_time anchor_sent;     /* The last useful sample, */
    int64_t anchor_offset;      /* and the lowest offset that the clock can have had then. */
    struct drift_sample span;   /* Where the present span of a second begins, for FAST. */
    unsigned fast_spans;        /* So many in a row were fast. */
    struct drift_sample far[2]; /* Useful ones, a window old or up to two, and younger. */
    struct drift_part parts[DRIFT_PARTS_LEN];
};

/*
 * Learn from a sample, and judge it.  Samples come in the order of their answers.
 * One that cannot be is UNCERTAIN, and nothing is learned from it: an answer before
 * its question, or before an earlier answer; 73 years of uptime; a TIME after 2116.
 *
 * Useful, in the sense of THE PROMISE, is a sample whose answer took no longer than
 * half of the tolerance.  With others the master can count or be found out, but
 * nobody can be compared with them later: one slow answer, taken for all that it may
 * mean, would stand against a master for a whole window.
 *
 * An honest clock, one that at no time runs faster or slower than the rate allows, is
 * never FORWARD, BACKWARD, or FAST, however the network delays.  It is STEADY if the
 * answers are useful, and any two delays, tolerance / 4, and rate * the time between two
 * samples together are below the tolerance.
 */
enum drift_verdict drift_node_sample(struct drift_node *node, const struct drift_guard *guard,
                                     const struct drift_sample *sample);

/*
 * Whether the vote counts that was asked for at sent.  If the vote came with a TIME,
 * ask right after that was learned from, with its sent: THE PROMISE holds for this
 * vote.  If not, the promise holds for the sample before the vote, which must not be
 * older than a gap; what the clock did since is left open.
 */
bool drift_node_counts(const struct drift_node *node, const struct drift_guard *guard,
                       drift_time sent);

/*
 * Somebody who has watched this clock for a window says that its offset to our clock was
 * in this range at the instant at, dips aside nothing lower (within the rate) in the
 * window before; and that nothing stands against it.  Forget what was known, and go on
 * from there: the master need not wait for a window to count, but is held to this offset
 * with its next sample, which is to come within a gap.  at is not after that is sent.
 *
 * To vouch with the range of the first sample itself (drift_sample_offset()) means to
 * trust a clock at first sight.
 */
void drift_node_vouch(struct drift_node *node, const struct drift_guard *guard, drift_time at,
                      const struct drift_range *offset);

/* Do not count this master for a window from now. */
void drift_node_bar(struct drift_node *node, const struct drift_guard *guard, drift_time now);

/* The master's clock less ours, at the instant at which it read its.  The sample is one
 * that can be: see drift_node_sample(). */
void drift_sample_offset(const struct drift_sample *sample, struct drift_range *ret_offset);

/*
 * The same now, which is not before the last answer: the range of the last sample, made
 * wider by what an honest clock may have done since.  0, or 1 if there was no sample yet.
 */
int drift_node_offset(const struct drift_node *node, const struct drift_guard *guard,
                      drift_time now, struct drift_range *ret_offset);

/*
 * How much faster than ours the clock has run on the average of the last one to two
 * windows, or since it was put forward or back if that is more recent; parts per million.
 * 0, or 1 if that is less than a second of useful samples.
 */
int drift_node_rate(const struct drift_node *node, struct drift_range *ret_ppm);

/*
 * A range with the median of the offsets in it; of the two in the middle, if their
 * number is even, it has both.  offsets_len is not 0.
 */
void drift_node_median(const struct drift_range *offsets, unsigned offsets_len,
                       struct drift_range *ret_median);

/* How far an offset is from the median, at least. */
enum drift_place drift_node_place(const struct drift_range *offset,
                                  const struct drift_range *median);

#endif /* DRIFT_NODE_H */
