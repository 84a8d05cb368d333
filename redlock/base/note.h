/*
 * note.h - the note beside a lock: a text behind the token, which says who holds it.
 *
 * Masters store "TOKEN:NOTE" where they would store the token, and compare the whole text.  So the
 * note comes with the lock and goes with it, and needs no key, command or script of its own.
 */
#ifndef REDLOCK_NOTE_H
#define REDLOCK_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/redlock.h"

/* At most REDLOCK_NOTE_MAX bytes, none of them a control character. */
bool note_is_valid(const char *note);

/* Find the note in what a master stores.  Returns NULL if this is no token of ours, or has none. */
const char *note_find(const char *stored, size_t len, size_t *ret_len);

#endif /* REDLOCK_NOTE_H */
