/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log/verify_input.h"

#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First words of a verifier key and of a note. */
#define INPUT_KEY "postern+"
#define INPUT_NOTE "postern-audit/"
/* Largest file of keys. */
#define INPUT_KEYS_MAX (64 << 10)

static int
input_add_key(const char *line, struct seal_key keys[VERIFY_KEYS_MAX], size_t *count, struct error *err)
{
	if (*count == VERIFY_KEYS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d keys", VERIFY_KEYS_MAX);
	if (seal_key_parse(line, &keys[*count], err) < 0)
		return -1;
	++*count;
	return 0;
}

static int
input_key_file(const char *path, struct seal_key keys[VERIFY_KEYS_MAX], size_t *count, struct error *err)
{
	size_t len, before = *count;
	char *text = input_read(path, INPUT_KEYS_MAX, &len, err), *rest = text, *line;
	int rc = 0;

	if (text == NULL)
		return -1;
	while (rc == 0 && (line = strsep(&rest, "\n")) != NULL)
		if (line[strspn(line, " \t\r")] != '\0')
			rc = input_add_key(line, keys, count, err);
	free(text);
	if (rc == 0 && *count == before)
		rc = error_set(err, ERROR_USAGE, "no key in it");
	return rc == 0 ? 0 : error_prefix(err, "%s", path);
}

int
verify_input_key(const char *text, struct seal_key keys[VERIFY_KEYS_MAX], size_t *count, struct error *err)
{
	if (strncmp(text, INPUT_KEY, strlen(INPUT_KEY)) == 0)
		return input_add_key(text, keys, count, err);
	return input_key_file(text, keys, count, err);
}

/* The next line that begins as a note does; NULL when there is none. */
static const char *
input_next_note(const char *text, const char *end)
{
	while (text != NULL && text < end && strncmp(text, INPUT_NOTE, strlen(INPUT_NOTE)) != 0) {
		text = memchr(text, '\n', (size_t)(end - text));
		text = text == NULL ? NULL : text + 1;
	}
	return text != NULL && text < end ? text : NULL;
}

static int
input_add_note(
    const char *text, size_t len, struct verify_note **notes, size_t *count, size_t *ret_used, struct error *err)
{
	struct verify_note *larger, note;

	if (seal_note_parse(text, len, &note.seal, note.log_id, ret_used, err) < 0)
		return error_set(err, ERROR_USAGE, "the note after %zu good ones is damaged", *count);
	if ((*count & (*count - 1)) == 0) {
		larger = reallocarray(*notes, *count == 0 ? 1 : 2 * *count, sizeof(note));
		if (larger == NULL)
			return error_sys(err, ENOMEM, "notes");
		*notes = larger;
	}
	(*notes)[(*count)++] = note;
	return 0;
}

int
verify_input_notes(const char *path, struct verify_note **ret_notes, size_t *ret_count, struct error *err)
{
	struct verify_note *notes = NULL;
	size_t len, used, count = 0;
	char *text = input_read(path, VERIFY_INPUT_MAX, &len, err);
	const char *at, *end;
	int rc = 0;

	if (text == NULL)
		return -1;
	end = text + len;
	for (at = text; rc == 0 && (at = input_next_note(at, end)) != NULL; at += used)
		rc = input_add_note(at, (size_t)(end - at), &notes, &count, &used, err);
	free(text);
	if (rc == 0 && count == 0)
		rc = error_set(err, ERROR_USAGE, "no seal in it");
	if (rc == 0) {
		*ret_notes = notes;
		*ret_count = count;
		return 0;
	}
	free(notes);
	return error_prefix(err, "%s", path);
}
