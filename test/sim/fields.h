/*
 * fields.h - the fields of a marker that tell its set: for the tests that compare the model with
 * a real server.
 */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "redlock/wire/ballot.h"
#include "redlock/wire/wire.h"

struct marker;
struct wire_look;

/* Room for any command. */
#define FIELDS_COMMAND_MAX (WIRE_MAX > BALLOT_MAX ? WIRE_MAX : BALLOT_MAX)

/* Append a query of the fields; compare its reply with the model. */
void fields_append(redisContext *redis);
void fields_compare(const redisReply *reply, const struct marker *marker);

/* Write a command that founds a set. */
size_t fields_draw(char *buf, const struct marker *marker);
/* Write a request of an operator that changes the set. */
size_t fields_draw_ballot(char *buf, const struct marker *marker);
/* Draw what a client knows of its set. */
void fields_draw_known(struct wire_look *look);
/* Change the set of a marker as other scripts do, on the server and in the model. */
void fields_disturb(struct marker *marker);

/* Sum of what was seen; fails if it is too little for so many commands. */
void fields_report(uint64_t commands);

#endif /* SIM_FIELDS_H */
