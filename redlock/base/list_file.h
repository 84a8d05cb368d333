/*
 * list_file.h - a list of masters in a file.
 *
 * The command and the library read such files by the same rules.  Commas or white space separate
 * the masters, so the list may have one line or several.  A line whose first character, after
 * blanks, is a '#' is a comment.
 */
#ifndef REDLOCK_LIST_FILE_H
#define REDLOCK_LIST_FILE_H

/*
 * Read the file at path into *ret_list, with blanks in place of the comments.  The text may hold
 * passwords: free it with list_file_free().  Returns OK, E_NOMEM, or E_INVAL with a message that
 * names the file and says why it cannot be read.  On failure *ret_list is untouched.
 */
int list_file_read(const char *path, char **ret_list);

/* Wipe and free the text.  NULL is allowed. */
void list_file_free(char *list);

#endif /* REDLOCK_LIST_FILE_H */
