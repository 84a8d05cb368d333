/*
 * pages.h - the entries of docs/troubleshooting.md, which the build takes into the command.
 *
 * The page is the one source.  test/tree/test-messages sees that each identifier of
 * redlock/base/message.h has an entry.
 */
#ifndef REDLOCK_PAGES_H
#define REDLOCK_PAGES_H

/* The entry of an identifier, in lines for a terminal.  NULL: there is none. */
const char *pages_find(const char *id);

#endif /* REDLOCK_PAGES_H */
