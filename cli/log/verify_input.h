/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What postern verify is given: keys, and seals that were taken elsewhere. */
#ifndef POSTERN_CLI_VERIFY_INPUT_H
#define POSTERN_CLI_VERIFY_INPUT_H

#include "audit/seal/verify.h"

/* A file of exported seals is not read beyond this: a seal each ten seconds for a month is 80 MiB. */
#define VERIFY_INPUT_MAX (256 << 20)

/* Add the verifier key that text is, or those in the file it names, one a line. 0 or -1. */
int verify_input_key(const char *text, struct seal_key keys[VERIFY_KEYS_MAX], size_t *count, struct error *err);

/* Read all notes of a file ("-": standard input), which postern seal export has written; what stands between them does
 * not count. *ret_notes belongs to the caller. A file without any is an error. 0 or -1. */
int verify_input_notes(const char *path, struct verify_note **ret_notes, size_t *ret_count, struct error *err);

#endif
