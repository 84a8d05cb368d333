/*
 * marker.c - writes queries of markers, and reads the answers.
 */
#include "redlock/cli/set/marker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "redlock/client/inspect.h"
#include "redlock/link/handshake.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/reply.h"

static void write_number(uint64_t number, char digits[WIRE_NUMBER + 1])
{
    (void)snprintf(digits, WIRE_NUMBER + 1, "%016" PRIx64, number);
}

static size_t write_look(char buf[WIRE_MAX], const struct master_info *info, uint64_t nonce,
                         struct wire_look *look)
{
    char random[WIRE_NUMBER + 1], seen[WIRE_NUMBER + 1] = "";
    uint64_t number;

    randombytes_buf(&number, sizeof number);
    write_number(number == 0 ? 1 : number, random);
    if (nonce != 0)
        write_number(nonce, seen);
    look->id = info->run_id;
    look->keeps = handshake_keeps(info);
    look->random = random;
    look->nonce = seen;
    return wire_look(buf, look);
}

size_t marker_look(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                   uint64_t nonce, uint64_t floor)
{
    struct wire_look look = {.max_ttl_ms = max_ttl_ms, .floor = floor};

    return write_look(buf, info, nonce, &look);
}

size_t marker_give(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                   uint64_t nonce, uint64_t floor, const char *list)
{
    struct wire_look look = {
        .max_ttl_ms = max_ttl_ms, .floor = floor, .is_new = true, .config = list};

    return write_look(buf, info, nonce, &look);
}

size_t marker_install(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                      uint64_t nonce, uint64_t floor, const struct config *config, const char *name)
{
    char text[CONFIG_TEXT_MAX + 1];
    struct wire_look look = {
        .max_ttl_ms = max_ttl_ms,
        .floor = floor,
        .set = config->set,
        .version = config->version,
        .config = text,
        .name = name,
    };

    (void)config_print(config, text);
    return write_look(buf, info, nonce, &look);
}

/* "warming NONCE MAX FRESH AGE ..." */
static uint64_t read_age(const char *text)
{
    for (unsigned i = 0; i < 4; i++)
        text = strchr(text, ' ') + 1; /* answer_look() found all fields. */
    return strtoull(text, NULL, 10);
}

bool marker_parse(const struct reply *reply, struct marker *ret_marker)
{
    struct marker marker = {.age_ms = 0};

    if (!answer_look(reply, &marker.look, NULL))
        return false;
    if (!marker.look.ready)
        marker.age_ms = read_age(reply->text);
    *ret_marker = marker;
    return true;
}

drift_span marker_left(drift_span quarantine, uint64_t age_ms)
{
    /* Compared in ms, because the age may be any number, and too large in ns. */
    if (age_ms >= quarantine / DRIFT_MS)
        return quarantine;
    return quarantine - age_ms * DRIFT_MS;
}

bool marker_wait(struct redlock *rl, unsigned m, uint64_t age_ms, struct marker_wait *ret_wait)
{
    const struct inspect_client client = inspect_client(rl);
    const struct inspect_master master = inspect_master(rl, m);
    bool is_asked = master.is_looked_at || (client.coming & mask_of(m)) != 0;

    if (master.look.number == 0 || is_asked)
        return false;
    if (!master.is_witnessed && (master.is_asked_about || client.connecting != 0))
        return false;
    *ret_wait = (struct marker_wait){
        .left = master.is_witnessed ? master.warming_left : marker_left(client.quarantine, age_ms),
        .is_witnessed = master.is_witnessed,
        .has_no_client = !master.is_witnessed && age_ms >= drift_to_ms(client.quarantine),
    };
    return true;
}
