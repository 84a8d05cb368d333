/*
 * founding.c - a set of masters is founded: can two sets share a master, or two clients hold?
 *
 * Each process has a list of masters.  It founds the set of its list, or finds it founded.  Then it
 * asks for the lock and gives it back, any number of times.  founding-check.c has the options.
 *
 * The rules, each next to the code that keeps it.  A step is one script on one master.
 *
 *  1. An attempt has a random number that is used once.  It claims each master of its list once.
 *     If an answer stays away, the attempt is over, and the next one has another number.
 *  2. claim: the script takes a master that carries nothing, or a claim of the same list.  It
 *     writes the list and the number of the attempt.  The reply tells what was there before.
 *  3. Second look: when every master of the list was claimed, every one is read again.  Each must
 *     still carry the attempt.  The claims stood side by side then: they are a decision.
 *  4. found: only then, on each master, the script compares the number and writes `set` (which is
 *     the number of the attempt) and `ver` = 1.
 *  5. withdraw: the script compares the number, and deletes the claim.  An attempt may withdraw
 *     what it claimed where nothing was.  A claim that it took over may be part of a decision that
 *     another process is about to write.  It withdraws these only after it visited all masters of
 *     the list, met no member, and a second look found all as it was: its own claims, and another
 *     list wherever it met one.  Then no other number can be written any more.
 *  6. An attempt that meets a member of the set of its list goes on, and finishes the founding: in
 *     place of its own number it writes that set.  A process that uses a set does so where masters
 *     of the set are no members.
 *  7. A process that meets another list withdraws, and names both lists.  If its own list is part
 *     of the list of a member, it uses that set.
 *  8. A vote is good if the master is a member of the set (M1: `set`, `ver`) and has an epoch.
 *     The lock is held by a majority of the set.
 *  9. A master that forgot gets an epoch when no vote that it gave is alive (guard.c).  It gets
 *     `set` and `ver` back from N - Q + 1 other members (M7), if nobody has claimed it meanwhile.
 *
 * What is checked
 *  - Two sets that have members share no master, except one that forgot its part in a decision.
 *    Such a master looks new, and nothing on the masters of another list shows that it is not.
 *    States with such sets are counted: they are `excused`.
 *  - Two processes never hold the lock, except with two such sets.
 *  - A member's set was decided: all masters of its list carried its number at one time.
 *  - A set that was reported has a majority from then on, except masters that forgot.
 *  - From every state, without more faults, a set can be founded or a message is due.
 *  - From every state, with an operator, a whole set can be founded.  The operator starts a
 *    process with the list of a claim that stands in the way, and lets it finish or withdraw.
 *
 * Made smaller without loss: a reply is read in the step that causes it, because a process may wait
 * before each step.  A message may stay away longer than its sender waits (`delays`).  Attempts
 * are numbered by the order in which a state shows them.  A number that nothing carries is free.
 */
#include "models/founding.h"

/* ---- Steps ---- */

static void emit(struct state *s, enum what what, unsigned process, unsigned master, enum kind kind)
{
    founding_settle(s);
    explorer_take(s, (char)what, process, master, kind, founding_judge(s));
}

static void set_phase(struct process *p, uint8_t phase)
{
    p->phase = phase;
    p->seen = 0;
}

static void end(struct process *p, uint8_t phase, uint8_t told)
{
    *p = (struct process){.phase = phase, .told = told};
}

/* ---- Scripts: what a master does ---- */

static void write_claim(struct master *m, uint8_t list, uint8_t number)
{
    m->has = CLAIM;
    m->list = list;
    m->number = number;
}

/* Rule 2. */
static bool script_claim(struct master *m, uint8_t list, uint8_t number)
{
    if (m->has == MEMBER || (m->has == CLAIM && m->list != list && !is_planted(TAKE_ANY)))
        return false;
    write_claim(m, list, number);
    return true;
}

static bool carries(const struct master *m, uint8_t list, uint8_t number)
{
    return founding_is_claim(m, list) && m->number == number;
}

/* Rules 4 and 6. */
static bool script_found(struct master *m, uint8_t list, uint8_t number, uint8_t set)
{
    if (founding_is_member(m, list, set))
        return true;
    if (!carries(m, list, number) && !(is_planted(FOUND_ANY) && founding_is_claim(m, list)))
        return false;
    m->has = MEMBER;
    m->number = set;
    return true;
}

/* Rule 5. */
static void script_withdraw(struct master *m, uint8_t list, uint8_t number)
{
    if (!carries(m, list, number) && !(is_planted(WITHDRAW_ANY) && m->has == CLAIM))
        return;
    m->has = NOTHING;
    m->list = m->number = 0;
}

/* ---- A process that founds ---- */

static void use_set(struct process *p, uint8_t list, uint8_t set, bool reported)
{
    *p = (struct process){.phase = USES, .list = list, .number = set, .told = reported};
}

/* Rule 6. */
static void go_found(struct process *p)
{
    if (p->set == 0)
        p->set = p->number;
    p->clash = p->own = p->took = 0;
    set_phase(p, FOUNDS);
}

/* Rule 5.  What it may not withdraw is left. */
static void go_back(struct process *p, bool looked_again)
{
    bool visited = p->phase != CLAIMS || p->seen == p->list;

    if (!looked_again && !is_planted(WITHDRAW_TOOK) && !(is_planted(WITHDRAW_VISITED) && visited))
        p->own &= (uint8_t)~p->took;
    if (is_planted(NO_WITHDRAW))
        p->own = 0;
    p->took = 0;
    set_phase(p, BACKS);
}

static void give_up(const struct state *s, unsigned i)
{
    struct state n = *s;

    go_back(&n.processes[i], false);
    emit(&n, GIVE_UP, i, 0, n.processes[i].clash ? PLAIN : OPERATOR);
}

static void begin(const struct state *s, unsigned i, unsigned list)
{
    struct state n = *s;

    n.processes[i] =
        (struct process){.phase = CLAIMS, .list = (uint8_t)list, .number = founding_free_number(s)};
    emit(&n, BEGIN, i, 0, PLAIN);
}

/* Rule 7. */
static void follow(const struct state *s, unsigned i, unsigned k)
{
    const struct master *m = &s->masters[k];
    struct state n = *s;

    if (!(bounds.lists[i] & 1u << k) || m->has != MEMBER || bounds.lists[i] & ~m->list)
        return;
    use_set(&n.processes[i], m->list, m->number, false);
    emit(&n, FOLLOW, i, k, PLAIN);
}

/* Rules 6 and 7. */
static void meet(struct process *p, const struct master *m)
{
    bool same = m->has == MEMBER && m->list == p->list && (p->set == 0 || p->set == m->number);

    if (same && !is_planted(NO_FINISH))
        p->set = m->number;
    else
        p->clash = 1;
}

/* Rule 2, at one master. */
static void claim(const struct state *s, unsigned i, unsigned k)
{
    struct state n = *s;
    struct process *p = &n.processes[i];
    struct master *m = &n.masters[k];
    uint8_t bit = (uint8_t)(1u << k);

    p->seen |= bit;
    if (m->has == CLAIM)
        p->took |= bit;
    if (is_planted(SAME_NUMBER) && founding_is_claim(m, p->list) && p->own == 0) {
        p->number = m->number;
        p->own |= bit;
    } else if (script_claim(m, p->list, p->number)) {
        p->own |= bit;
    } else {
        p->took &= (uint8_t)~bit;
        meet(p, m);
    }
    emit(&n, DO_CLAIM, i, k, PLAIN);
}

static void claims(const struct state *s, unsigned i)
{
    const struct process *p = &s->processes[i];
    struct state n = *s;

    for (unsigned k = 0; k < bounds.masters; k++)
        if (p->list & ~p->seen & 1u << k)
            claim(s, i, k);
    if (p->seen == p->list || (is_planted(MAJORITY) && founding_is_majority(p->list, p->own))) {
        if (is_planted(MAJORITY) && founding_is_majority(p->list, p->own))
            n.processes[i].clash = 0;
        set_phase(&n.processes[i], LOOKS);
        if (is_planted(NO_SECOND_LOOK) && p->own == p->list)
            go_found(&n.processes[i]);
        emit(&n, ALL_CLAIMED, i, 0, PLAIN);
    }
    give_up(s, i);
}

/* Rules 3 and 5: a second look at all masters found all as it was. */
static void decide(const struct state *s, unsigned i)
{
    struct state n = *s;

    if (!s->processes[i].clash) {
        go_found(&n.processes[i]);
        emit(&n, DECIDE, i, 0, PLAIN);
        n = *s;
    }
    go_back(&n.processes[i], n.processes[i].set == 0 || is_planted(WITHDRAW_MET));
    emit(&n, GIVE_UP, i, 0, n.processes[i].clash ? PLAIN : OPERATOR);
}

/* What a second look must find: the own claim, the member, or still another list in the way. */
static bool is_as_before(const struct process *p, const struct master *m, uint8_t bit)
{
    if (p->own & bit)
        return carries(m, p->list, p->number) ||
               (is_planted(LOOK_AT_LIST) && founding_is_claim(m, p->list));
    if (is_planted(LOOK_AT_OWN) || is_planted(MAJORITY) || is_planted(NO_FINISH))
        return true;
    return (m->has != NOTHING && m->list != p->list) || (m->has == MEMBER && m->number == p->set);
}

/* Rule 3, at one master. */
static void look(const struct state *s, unsigned i, unsigned k)
{
    struct state n = *s;
    struct process *p = &n.processes[i];
    uint8_t bit = (uint8_t)(1u << k);

    p->seen |= bit;
    if (!is_as_before(p, &s->masters[k], bit))
        go_back(p, false);
    emit(&n, DO_LOOK, i, k, PLAIN);
}

static void looks(const struct state *s, unsigned i)
{
    const struct process *p = &s->processes[i];

    for (unsigned k = 0; k < bounds.masters; k++)
        if (p->list & ~p->seen & 1u << k)
            look(s, i, k);
    if (p->seen == p->list)
        decide(s, i);
    else
        give_up(s, i);
}

/* Rule 4.  It reports the set when a majority has it.  If others were faster, it begins anew. */
static void founds(const struct state *s, unsigned i)
{
    const struct process *p = &s->processes[i];
    unsigned enough =
        is_planted(REPORT_EARLY) ? p->own != 0 : founding_is_majority(p->list, p->own);
    struct state n;

    for (unsigned k = 0; k < bounds.masters; k++) {
        uint8_t bit = (uint8_t)(1u << k);

        if (!(p->list & ~p->seen & bit))
            continue;
        n = *s;
        n.processes[i].seen |= bit;
        if (script_found(&n.masters[k], p->list, p->number, p->set))
            n.processes[i].own |= bit;
        emit(&n, DO_FOUND, i, k, PLAIN);
    }
    n = *s;
    if (enough) {
        use_set(&n.processes[i], p->list, p->set, true);
        emit(&n, REPORT, i, 0, PLAIN);
    } else if (p->seen == p->list) {
        end(&n.processes[i], IDLE, 0);
        emit(&n, NOT_FOUNDED, i, 0, PLAIN);
    }
}

/* Rule 5. */
static void backs(const struct state *s, unsigned i)
{
    const struct process *p = &s->processes[i];
    struct state n = *s;

    if (p->own == 0) {
        end(&n.processes[i], IDLE, p->clash);
        emit(&n, WITHDRAWN, i, 0, PLAIN);
    }
    for (unsigned k = 0; k < bounds.masters; k++) {
        if (!(p->own & 1u << k))
            continue;
        n = *s;
        n.processes[i].own &= (uint8_t) ~(1u << k);
        script_withdraw(&n.masters[k], p->list, p->number);
        emit(&n, DO_WITHDRAW, i, k, PLAIN);
    }
}

/* ---- A process that uses a set ---- */

/* Rule 9. */
static void restore(const struct state *s, unsigned i, unsigned k)
{
    const struct process *p = &s->processes[i];
    struct state n = *s;
    unsigned others = founding_members(s, p->list, p->number), size = founding_count(p->list);

    if (s->masters[k].has != NOTHING || founding_count(others) < size - size / 2)
        return;
    write_claim(&n.masters[k], p->list, p->number);
    n.masters[k].has = MEMBER;
    emit(&n, DO_RESTORE, i, k, PLAIN);
}

/* Rule 8. */
static void uses(const struct state *s, unsigned i)
{
    const struct process *p = &s->processes[i];
    struct state n = *s;

    for (unsigned k = 0; k < bounds.masters; k++) {
        const struct master *m = &s->masters[k];

        if (!(p->list & 1u << k))
            continue;
        restore(s, i, k);
        if (!founding_is_member(m, p->list, p->number) || !m->epoch || m->holder || !bounds.locks)
            continue;
        n = *s;
        n.masters[k].holder = (uint8_t)(i + 1);
        n.processes[i].own |= (uint8_t)(1u << k);
        emit(&n, VOTE, i, k, PLAIN);
    }
    if (p->own == 0) { /* Rule 6. */
        if (!is_planted(NO_FINISH) && founding_members(s, p->list, p->number) != p->list)
            begin(s, i, p->list);
        return;
    }
    n = *s;
    n.processes[i].own = 0;
    for (unsigned k = 0; k < bounds.masters; k++)
        if (n.masters[k].holder == i + 1)
            n.masters[k].holder = 0;
    emit(&n, RELEASE, i, 0, PLAIN);
}

/* ---- Faults, and what repairs them ---- */

/* A decision for this list was made, and may still be written, or was. */
static bool is_list_decided(const struct state *s, unsigned list)
{
    bool is = s->mail.list == list && founding_is_decided(s, s->mail.number);

    for (unsigned k = 0; k < bounds.masters; k++)
        is = is || (s->masters[k].list == list && founding_is_decided(s, s->masters[k].number));
    for (unsigned i = 0; i < bounds.processes; i++)
        is = is ||
             (s->processes[i].list == list && (founding_is_decided(s, s->processes[i].number) ||
                                               founding_is_decided(s, s->processes[i].set)));
    return is;
}

static void forget(const struct state *s, unsigned k)
{
    const struct master *m = &s->masters[k];
    struct state n = *s;
    struct master *f = &n.masters[k];

    if (s->forgets >= bounds.forgets)
        return;
    n.forgets++;
    f->holder = 0;
    f->forgot = 1;
    if (!is_planted(KEEP_VER)) {
        f->excused |= m->has != NOTHING && is_list_decided(s, m->list);
        f->has = NOTHING;
        f->list = f->number = f->epoch = 0;
    }
    emit(&n, FORGET, 0, k, FAULT);
}

/* Rule 9. */
static void install(const struct state *s, unsigned k)
{
    struct state n = *s;

    if (s->masters[k].epoch)
        return;
    for (unsigned i = 0; i < bounds.processes && !is_planted(NO_GUARD); i++)
        if (s->processes[i].phase == USES && s->processes[i].own & 1u << k)
            return;
    n.masters[k].epoch = 1;
    emit(&n, INSTALL, 0, k, PLAIN);
}

/* A message of process i to master k stays away.  Rule 1: of a claim, the attempt is over. */
static void delay_one(const struct state *s, unsigned i, unsigned k)
{
    const struct process *p = &s->processes[i];
    struct state n = *s;
    uint8_t bit = (uint8_t)(1u << k);

    n.delays++;
    n.mail =
        (struct mail){.master = (uint8_t)k, .list = p->list, .number = p->number, .set = p->set};
    if (p->phase == CLAIMS && p->list & ~p->seen & bit) {
        n.mail.what = MAIL_CLAIM;
        if (!is_planted(CLAIM_AGAIN))
            go_back(&n.processes[i], false);
    } else if (p->phase == FOUNDS && p->list & ~p->seen & bit) {
        n.mail.what = MAIL_FOUND;
        n.processes[i].seen |= bit;
    } else if (p->phase == BACKS && p->own & bit) {
        n.mail.what = MAIL_WITHDRAW;
        n.processes[i].own &= (uint8_t)~bit;
    } else {
        return;
    }
    emit(&n, DELAY, i, k, FAULT);
}

static void arrive(const struct state *s)
{
    const struct mail *mail = &s->mail;
    struct state n = *s;
    struct master *m = &n.masters[mail->master];

    switch (mail->what) {
    case NO_MAIL:
        return;
    case MAIL_CLAIM:
        script_claim(m, mail->list, mail->number);
        break;
    case MAIL_FOUND:
        script_found(m, mail->list, mail->number, mail->set);
        break;
    default:
        script_withdraw(m, mail->list, mail->number);
        break;
    }
    n.mail = (struct mail){.what = NO_MAIL};
    emit(&n, ARRIVE, 0, mail->master, PLAIN);
}

/* A process that dies while it founds leaves its claims.  A holder that dies is as one that
 * releases when its lease is over. */
static void crash(const struct state *s, unsigned i)
{
    uint8_t phase = s->processes[i].phase;
    struct state n = *s;

    if (phase == DEAD) {
        end(&n.processes[i], IDLE, 0);
        emit(&n, REVIVE, i, 0, OPERATOR);
    } else if (phase != IDLE && phase != USES && s->crashes < bounds.crashes) {
        n.crashes++;
        end(&n.processes[i], DEAD, 0);
        emit(&n, CRASH, i, 0, FAULT);
    }
}

/* ---- All of it ---- */

void founding_begin(void *state)
{
    struct state *s = state;

    for (unsigned k = 0; k < bounds.masters; k++)
        s->masters[k].epoch = 1;
}

static void process_steps(const struct state *s, unsigned i)
{
    switch (s->processes[i].phase) {
    case IDLE:
        begin(s, i, bounds.lists[i]);
        for (unsigned k = 0; k < bounds.masters; k++)
            follow(s, i, k);
        break;
    case CLAIMS:
        claims(s, i);
        break;
    case LOOKS:
        looks(s, i);
        break;
    case FOUNDS:
        founds(s, i);
        break;
    case BACKS:
        backs(s, i);
        break;
    case USES:
        uses(s, i);
        break;
    default:
        break;
    }
}

void founding_steps(const void *state)
{
    const struct state *s = state;

    for (unsigned i = 0; i < bounds.processes; i++) {
        process_steps(s, i);
        crash(s, i);
        for (unsigned k = 0; k < bounds.masters; k++)
            if (s->delays < bounds.delays && s->mail.what == NO_MAIL)
                delay_one(s, i, k);
    }
    for (unsigned k = 0; k < bounds.masters; k++) {
        forget(s, k);
        install(s, k);
    }
    arrive(s);
}
