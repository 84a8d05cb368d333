/*
 * list_file.h - a list of masters that is kept in a file.
 *
 * The command and the library read such files by the same rules.  A list is parted by commas or
 * white space, so that it may have one line or several.  A line whose first character, after
 * blanks, is a '#' is a comment.
 */
#ifndef REDLOCK_LIST_FILE_H
#define REDLOCK_LIST_FILE_H

/*
 * Read the file at path.  *ret_list is its text, with blanks in place of the comments.  The text
 * may hold passwords: end it with list_file_free().  Gives OK; E_INVAL with a message that names
 * the file and says why it cannot be read; E_NOMEM.  On failure *ret_list is untouched.
 */
int list_file_read(const char *path, char **ret_list);

/* Wipe the text, and free it.  NULL is fine. */
void list_file_free(char *list);

#endif /* REDLOCK_LIST_FILE_H */
