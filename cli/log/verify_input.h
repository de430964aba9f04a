/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input of postern verify: keys, and seals that were exported earlier. */
#ifndef POSTERN_CLI_VERIFY_INPUT_H
#define POSTERN_CLI_VERIFY_INPUT_H

#include "audit/seal/verify.h"

/* Largest file of exported seals; one seal each ten seconds for a month is 80 MiB. */
#define VERIFY_INPUT_MAX (256 << 20)

/* Add a verifier key: text is the key itself, or a file with one key a line. 0 or -1. */
int verify_input_key(const char *text, struct seal_key keys[VERIFY_KEYS_MAX], size_t *count, struct error *err);

/* Read all notes of a file ("-": standard input) written by postern seal export; other lines between them are ignored.
 * *ret_notes belongs to the caller. A file without notes is an error. 0 or -1. */
int verify_input_notes(const char *path, struct verify_note **ret_notes, size_t *ret_count, struct error *err);

#endif
