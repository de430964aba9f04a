/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exported seals and verifier keys: what is accepted is printed as it was read. */
#include "audit/seal/seal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
try_note(const char *text, size_t len)
{
	struct error err = {.code = ERROR_NONE};
	char log_id[SEAL_LOG_ID_MAX], again[SEAL_NOTE_MAX];
	struct seal seal;
	size_t used;

	if (seal_note_parse(text, len, &seal, log_id, &used, &err) < 0) {
		if (err.code != ERROR_USAGE)
			abort();
		return;
	}
	seal_note(&seal, log_id, again);
	if (used > len || strlen(again) != used || memcmp(again, text, used) != 0)
		abort();
}

static void
try_key(const char *text)
{
	char again[SEAL_KEY_TEXT_MAX];
	struct seal_key key, read;
	struct error err;

	if (seal_key_parse(text, &key, &err) < 0)
		return;
	seal_key_text(&key, again);
	if (seal_key_parse(again, &read, &err) < 0 || memcmp(&key, &read, sizeof(key)) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);

	if (text == NULL)
		return 0;
	/* Without a NUL behind it, for what takes a length. */
	try_note((const char *)bytes, len);
	memcpy(text, bytes, len);
	text[len] = '\0';
	try_key(text);
	free(text);
	return 0;
}
