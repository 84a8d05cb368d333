/*
 * founder.c - answers of masters in, claims and the set out; pure.
 *
 * The rules, each next to the code that keeps it.  The numbers are those of test/models/founding.c,
 * which says why each is needed.
 *
 *  1. An attempt has a random number that is used once.  It claims each master of the list once,
 *     when all are linked.  If an answer stays away or a link breaks, the attempt is over.
 *  2. A master is claimed if it carries nothing, or a claim of the same list (claim.lua).
 *  3. Second look: when every master has answered, all are read again.  Each must carry what it
 *     carried before: the claim of this attempt, or the set of this list.
 *  4. Only then the set is written, where the claim still is (found.lua).  Its number follows from
 *     the list, so founders of one list never write two sets.  The set is founded when a majority
 *     has it.  If others were faster, the founder begins anew.  From here on nothing is withdrawn.
 *  5. The founder withdraws the claims of a failed attempt (withdraw.lua).  It leaves a claim that
 *     it took over, because the other founder may be about to write.  It withdraws even that if
 *     all masters answered, no master is a member of a set of this list, and the second look found
 *     no change.
 *  6. A master that is a member of the set of this list, at version 1, shows that another founder
 *     has decided.  The founder writes that set in place of its own.
 *  7. A claim of another list, or any other set, is in the way.  The founder withdraws, and says
 *     what it found.
 *
 * A set at a later version is in the way.  It may once have had this list.  So a second look that
 * shows one ends the exception of rule 5.
 */
#include "redlock/core/founder.h"

#include <assert.h>
#include <string.h>

static quorum_mask all(const struct founder *f)
{
    return (quorum_mask)((1u << f->config.masters) - 1);
}

static bool has_list(const struct founder *f, const struct founder_answer *answer)
{
    return answer->text_len == f->config.list_len &&
           memcmp(answer->text, f->config.list, f->config.list_len) == 0;
}

/* Rule 6. */
static bool is_of_list(const struct founder *f, const struct founder_answer *answer)
{
    return answer->word == FOUNDER_SAYS_MEMBER && answer->ver == 1 && has_list(f, answer);
}

/* Masters that have a command to answer. */
static quorum_mask owing(const struct founder *f)
{
    quorum_mask masters = 0;

    for (unsigned i = 0; i < f->config.masters; i++)
        masters |= f->asked[i] != FOUNDER_CMD_NONE ? mask_of(i) : 0;
    return masters;
}

/* Returns the masters. */
static quorum_mask ask(struct founder *f, quorum_mask masters, enum founder_command command)
{
    for (unsigned i = 0; i < f->config.masters; i++)
        if (masters & mask_of(i)) {
            assert(f->asked[i] == FOUNDER_CMD_NONE);
            f->asked[i] = (uint8_t)command;
        }
    return masters;
}

static bool is_attempt_undecided(const struct founder *f)
{
    return f->phase == FOUNDER_CLAIMING || f->phase == FOUNDER_LOOKING;
}

/* Rules 1 and 5.  Claims that are taken over later, by a command that is out, are left as well. */
static void fail(struct founder *f)
{
    if (is_attempt_undecided(f))
        f->phase = FOUNDER_WITHDRAWING;
}

/* ---- Events ---- */

void founder_init(struct founder *f, const struct founder_config *config)
{
    assert(config->masters >= 1 && config->masters <= QUORUM_MASTERS_MAX);
    assert(config->set != 0);
    assert(config->pause_min > 1 && config->pause_min <= config->pause_max);
    memset(f, 0, sizeof *f);
    f->config = *config;
}

bool founder_has_ended(const struct founder *f)
{
    return f->phase == FOUNDER_FOUNDED || f->phase == FOUNDER_REFUSED ||
           f->phase == FOUNDER_STOPPED;
}

void founder_begin(struct founder *f, drift_time now)
{
    assert(f->phase == FOUNDER_IDLE || founder_has_ended(f));
    f->phase = FOUNDER_WAITING;
    f->stopping = false;
    f->other.word = FOUNDER_SAYS_NOTHING;
    f->pause = f->config.pause_min;
    f->at = now;
}

void founder_stop(struct founder *f)
{
    f->stopping = true;
    if (f->phase == FOUNDER_WAITING || f->phase == FOUNDER_IDLE)
        f->phase = FOUNDER_STOPPED;
    fail(f);
}

void founder_on_silence(struct founder *f, unsigned master)
{
    assert(master < f->config.masters);
    if (f->asked[master] == FOUNDER_CMD_NONE)
        return;
    f->asked[master] = FOUNDER_CMD_NONE;
    fail(f);
}

void founder_on_link(struct founder *f, unsigned master, bool up)
{
    assert(master < f->config.masters);
    f->linked = mask_without(f->linked, master);
    if (up)
        f->linked |= mask_of(master);
    f->asked[master] = FOUNDER_CMD_NONE;
    fail(f);
}

/* Rules 6 and 7.  A set is named rather than a claim, which may soon be gone. */
static bool meet(struct founder *f, unsigned master, const struct founder_answer *answer)
{
    if (is_of_list(f, answer) && (f->set == 0 || f->set == answer->number)) {
        f->set = answer->number;
        return false;
    }
    if (f->other.word == FOUNDER_SAYS_MEMBER || f->other.word == answer->word)
        return false;
    f->other = (struct founder_other){answer->word, master, answer->number, answer->ver};
    return true;
}

/* Rule 2.  The attempt may be over already. */
static bool on_claim(struct founder *f, unsigned master, const struct founder_answer *answer)
{
    bool is_new = answer->word == FOUNDER_SAYS_NEW;

    if (is_new || answer->word == FOUNDER_SAYS_TOOK) {
        f->own |= mask_of(master);
        f->took |= is_new ? 0 : mask_of(master);
        return false;
    }
    if (answer->word == FOUNDER_SAYS_MEMBER ||
        (answer->word == FOUNDER_SAYS_CLAIM && !has_list(f, answer)))
        return meet(f, master, answer);
    fail(f); /* No master answers so. */
    return false;
}

/* Rules 3 and 5: what the second look must find.  It is the own claim, a member of the set of this
 * list, or still another list in the way. */
static bool is_as_before(const struct founder *f, unsigned master,
                         const struct founder_answer *answer)
{
    bool is_claim = answer->word == FOUNDER_SAYS_CLAIM;

    if (f->own & mask_of(master))
        return is_claim && answer->number == f->number && has_list(f, answer);
    if (is_claim || answer->word != FOUNDER_SAYS_MEMBER)
        return is_claim && !has_list(f, answer);
    return answer->ver == 1 && (!has_list(f, answer) || answer->number == f->set);
}

bool founder_on_answer(struct founder *f, unsigned master, const struct founder_answer *answer)
{
    enum founder_command command = (enum founder_command)f->asked[master];

    assert(master < f->config.masters);
    f->asked[master] = FOUNDER_CMD_NONE;
    switch (command) {
    case FOUNDER_CMD_CLAIM:
        return on_claim(f, master, answer);
    case FOUNDER_CMD_LOOK:
        if (!is_as_before(f, master, answer))
            fail(f);
        return false;
    case FOUNDER_CMD_WRITE:
        if (answer->word == FOUNDER_SAYS_YES)
            f->own |= mask_of(master);
        return false;
    case FOUNDER_CMD_WITHDRAW:
    case FOUNDER_CMD_NONE:
        return false;
    }
    assert(!"a command");
    return false;
}

/* ---- What is due ---- */

/* Rule 1.  The pause is at least half of what it may be.  So founders of different lists get out
 * of step, and none begins at once. */
static void wait(struct founder *f, drift_time now, uint64_t random)
{
    drift_span half = f->pause / 2;

    f->phase = FOUNDER_WAITING;
    f->at = drift_add(now, half + random % (half + 1));
    f->pause = f->pause < f->config.pause_max / 2 ? 2 * f->pause : f->config.pause_max;
}

/* Rule 1. */
static void begin_attempt(struct founder *f, drift_time now, uint64_t random,
                          struct founder_actions *act)
{
    if (f->linked != all(f) || now < f->at)
        return;
    f->phase = FOUNDER_CLAIMING;
    f->number = random;
    f->set = 0;
    f->own = f->took = 0;
    act->claim = ask(f, all(f), FOUNDER_CMD_CLAIM);
}

/* Rule 5.  A master whose link broke keeps its claim.  Another attempt can take it over. */
static void withdraw(struct founder *f, drift_time now, uint64_t random,
                     struct founder_actions *act)
{
    quorum_mask may = f->own & (quorum_mask) ~(f->took | owing(f));

    f->own &= (quorum_mask)~may;
    act->withdraw = ask(f, may & f->linked, FOUNDER_CMD_WITHDRAW);
    if (owing(f) != 0)
        return;
    if (f->other.word != FOUNDER_SAYS_NOTHING)
        f->phase = FOUNDER_REFUSED; /* Rule 7. */
    else if (f->stopping)
        f->phase = FOUNDER_STOPPED;
    else
        wait(f, now, random);
}

/* Rules 4 to 7: the second look found everything as it was. */
static void decide(struct founder *f, drift_time now, uint64_t random, struct founder_actions *act)
{
    if (f->other.word == FOUNDER_SAYS_NOTHING) {
        f->phase = FOUNDER_WRITING;
        f->set = f->set != 0 ? f->set : f->config.set;
        f->own = f->took = 0;
        act->write = ask(f, all(f), FOUNDER_CMD_WRITE);
        return;
    }
    f->phase = FOUNDER_WITHDRAWING;
    /* Rule 5: no master is a member of a set of this list, so no other founder has begun to write.
     * Claims that were taken over may be withdrawn, too. */
    if (f->set == 0)
        f->took = 0;
    withdraw(f, now, random, act);
}

/* Rule 4. */
static void conclude(struct founder *f, drift_time now, uint64_t random)
{
    if (mask_count(f->own) > f->config.masters / 2)
        f->phase = FOUNDER_FOUNDED;
    else if (f->stopping)
        f->phase = FOUNDER_STOPPED;
    else
        wait(f, now, random);
}

void founder_next(struct founder *f, drift_time now, uint64_t random,
                  struct founder_actions *ret_actions)
{
    assert(random != 0);
    *ret_actions = (struct founder_actions){.wake_at = DRIFT_NEVER};
    switch (f->phase) {
    case FOUNDER_WAITING:
        begin_attempt(f, now, random, ret_actions);
        break;
    case FOUNDER_CLAIMING:
        if (owing(f) != 0)
            break;
        f->phase = FOUNDER_LOOKING;
        ret_actions->look = ask(f, all(f), FOUNDER_CMD_LOOK);
        break;
    case FOUNDER_LOOKING:
        if (owing(f) == 0)
            decide(f, now, random, ret_actions);
        break;
    case FOUNDER_WRITING:
        if (owing(f) == 0)
            conclude(f, now, random);
        break;
    case FOUNDER_WITHDRAWING:
        withdraw(f, now, random, ret_actions);
        break;
    case FOUNDER_IDLE:
    case FOUNDER_FOUNDED:
    case FOUNDER_REFUSED:
    case FOUNDER_STOPPED:
        break;
    }
    if (f->phase == FOUNDER_WAITING && f->linked == all(f))
        ret_actions->wake_at = f->at;
}
