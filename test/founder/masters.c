/*
 * masters.c - the rules of claim.lua, found.lua and withdraw.lua.
 *
 * test/lua tests the scripts themselves.
 */
#include "founder/world.h"

#include <string.h>

const char *world_list_text(unsigned list)
{
    static char texts[1u << MASTERS][MASTERS + 1];
    char *at = texts[list];

    for (unsigned k = 0; k < MASTERS; k++)
        if (list & 1u << k)
            *at++ = (char)('1' + k);
    return texts[list];
}

/* A later version has some other text. */
static void tell(const struct master *m, struct founder_answer *answer)
{
    answer->word = m->has == HAS_SET ? FOUNDER_SAYS_MEMBER : FOUNDER_SAYS_CLAIM;
    answer->number = m->number;
    answer->ver = m->ver;
    answer->text = m->ver > 1 ? "changed" : world_list_text(m->list);
    answer->text_len = strlen(answer->text);
}

static void claim(struct master *m, uint8_t list, uint8_t number, struct founder_answer *answer)
{
    bool has_claim = m->has == HAS_CLAIM;

    if (m->has == HAS_SET) {
        tell(m, answer);
        return;
    }
    if (number == 0 || (has_claim && m->list != list)) {
        if (has_claim)
            tell(m, answer);
        return;
    }
    m->has = HAS_CLAIM;
    m->list = list;
    m->number = number;
    answer->word = has_claim ? FOUNDER_SAYS_TOOK : FOUNDER_SAYS_NEW;
}

static bool carries(const struct master *m, uint8_t list, uint8_t number)
{
    return m->has == HAS_CLAIM && m->list == list && m->number == number;
}

static bool found(struct master *m, uint8_t list, uint8_t number, uint8_t set)
{
    if (m->has == HAS_SET)
        return m->number == set;
    if (!carries(m, list, number))
        return false;
    m->has = HAS_SET;
    m->number = set;
    m->ver = 1;
    return true;
}

static bool withdraw(struct master *m, uint8_t list, uint8_t number)
{
    if (!carries(m, list, number))
        return false;
    m->has = HAS_NOTHING;
    m->list = m->number = 0;
    return true;
}

void master_execute(struct master *m, enum founder_command command, uint8_t list, uint8_t number,
                    uint8_t set, struct founder_answer *ret_answer)
{
    bool is_done;

    *ret_answer = (struct founder_answer){.text = ""};
    if (command == FOUNDER_CMD_CLAIM || command == FOUNDER_CMD_LOOK) {
        claim(m, list, command == FOUNDER_CMD_CLAIM ? number : 0, ret_answer);
        return;
    }
    is_done =
        command == FOUNDER_CMD_WRITE ? found(m, list, number, set) : withdraw(m, list, number);
    ret_answer->word = is_done ? FOUNDER_SAYS_YES : FOUNDER_SAYS_NO;
}
