/*
 * tell.c - steps of a world, for people.
 */
#include <stdio.h>
#include <string.h>

#include "change/machines.h"

static const char *const asks[] = {
    [CHANGE_ASK_NOTHING] = "nothing", [CHANGE_ASK_LOOK] = "look",
    [CHANGE_ASK_PREPARE] = "prepare", [CHANGE_ASK_ACCEPT] = "accept",
    [CHANGE_ASK_WRITE] = "write",     [CHANGE_ASK_COUNT] = "count on",
};

static void tell_list(unsigned list)
{
    for (unsigned m = 0; m < MASTERS; m++)
        if (list >> m & 1)
            printf("%u", m + 1);
}

static void tell_request(const struct request *r)
{
    printf("%s", asks[r->kind]);
    if (r->kind == CHANGE_ASK_PREPARE || r->kind == CHANGE_ASK_ACCEPT)
        printf(" %u.%u", r->ballot >> 2, r->ballot & 3);
    if (r->version != 0) {
        printf(" v%u ", r->version);
        tell_list(r->from);
        printf(r->from == r->to ? "" : ">");
        if (r->from != r->to)
            tell_list(r->to);
    }
}

static void tell_machines(const struct world *w)
{
    if (scenario->rescued != 0) {
        printf("  [%s]", rescuer_text(w));
        return;
    }
    for (unsigned i = 0; i < MACHINES; i++) {
        struct change c;

        if (w->machines[i] == 0)
            continue;
        machine_load(w, i, &c);
        printf("  [%c: ", 'A' + i);
        if (c.status != CHANGE_GOES_ON)
            printf("%s]", change_status_text(c.status));
        else
            printf("%s, v%u]", change_phase_text(c.phase), (unsigned)c.newest.version);
    }
}

static void tell_draw(const struct drawn_master *m, char kind, unsigned master)
{
    printf("the client %s %u: ",
           kind == 'c'   ? "has counted at"
           : kind == 'p' ? "gets the proof of"
           : kind == 'q' ? "queries"
           : kind == 'r' ? "raises"
           : kind == 'u' ? "loses the link, and its command, to"
                         : "loses the link to",
           master + 1);
    printf("number %u of %u, text %u.%u", m->number, m->counted, m->epoch, m->version);
    if (m->shows)
        printf(".%u", m->floor);
}

void world_tell(const void *from, const void *to, struct move step)
{
    const struct world *w = from;
    unsigned a = step.a, b = step.b;
    char kind = step.kind;

    switch (kind) {
    case 'x':
    case 's':
    case 'b':
    case 'B':
    case 'l':
    case 'H':
        printf("%c asks %u: ", 'A' + a, b + 1);
        tell_request(&w->out[a][b]);
        printf("%s", kind == 'x'   ? ""
                     : kind == 's' ? " (the answer is slow)"
                     : kind == 'H' ? " (hangs)"
                     : kind == 'b' ? " (lost; the link breaks)"
                     : kind == 'B' ? " (the answer is lost; the link breaks)"
                                   : " (late; the link breaks)");
        break;
    case 'S':
        printf("%c gets the slow answer of %u", 'A' + a, b + 1);
        break;
    case 'L':
        printf("the late request reaches %u: ", a + 1);
        tell_request(&w->late);
        break;
    case 'K':
        printf("%c dies%s", 'A' + a, b < MASTERS ? ", and a request of it is late" : "");
        break;
    case 'w':
        printf("%c wakes", 'A' + a);
        break;
    case 'T':
        printf("a tick");
        break;
    case 'F':
        if (a == MASTERS)
            printf("all members lose their data");
        else
            printf("%u loses its data", a + 1);
        break;
    case 'I':
        printf("%u is restored from ", a + 1);
        tell_list(b);
        break;
    case 'h':
        printf("a client writes v%u to %u", b, a + 1);
        break;
    case 'n':
        printf("a token is drawn under v%u from ", a);
        tell_list(b);
        break;
    case 'd':
        printf("the client begins to draw a token, under v%u", w->drawer.version);
        break;
    case 'c':
    case 'p':
    case 'q':
    case 'r':
    case 'u':
    case 'U':
        tell_draw(&((const struct world *)to)->drawer.masters[a], kind, a);
        break;
    default:
        printf("?");
    }
    tell_machines(to);
    printf("\n");
}
