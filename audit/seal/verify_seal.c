/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals against the keys, and against the seals that were taken elsewhere. */
#include "audit/seal/verify_steps.h"

#include "audit/store/seal_table.h"

#include <string.h>

/* Two keys can have the same id, which is only four bytes of a SHA-256: each is tried. */
bool
verify_seal_counts(const struct verify *v, const struct seal *seal)
{
	for (size_t i = 0; i < v->key_count; i++)
		if (seal_verify(seal, v->result->log_id, &v->keys[i]))
			return true;
	return false;
}

bool
verify_seal_signed(struct verify *v, const struct seal *seal)
{
	bool known = false;

	if (verify_seal_counts(v, seal))
		return true;
	for (size_t i = 0; i < v->key_count; i++)
		known |= v->keys[i].id == seal->key_id;
	if (known)
		verify_find(v, VERIFY_BAD_SEAL, 0, 0, seal->first_seq, seal->last_seq,
		    "seal %lld has a wrong signature: it was changed, or made without the key", (long long)seal->n);
	else
		verify_find(v, VERIFY_BAD_SEAL, 0, 0, seal->first_seq, seal->last_seq,
		    "seal %lld is signed with key %08x, which is not among the keys that count", (long long)seal->n,
		    seal->key_id);
	return false;
}

/* One seal that was taken elsewhere. newest: the number of the newest seal in the file. */
static int
verify_note(struct verify *v, struct rows *next, const struct verify_note *note, int64_t newest)
{
	const struct seal *seal = &note->seal;
	struct seal here;
	bool whole, found;

	if (strcmp(note->log_id, v->result->log_id) != 0) {
		v->result->notes_of_others++;
		return 0;
	}
	/* A note without a valid signature proves nothing; verify_seal_signed adds the finding. */
	if (!verify_seal_signed(v, seal))
		return 0;
	found = seal->n >= 1 && seal_table_next(next, seal->n - 1, &here, &whole);
	if (next->code != 0)
		return -1;
	if ((!found || here.n != seal->n) && seal->n > newest)
		verify_find(v, VERIFY_TRUNCATED, 0, 0, seal->first_seq, 0,
		    "seal %lld was taken elsewhere, but the newest here is %lld: records up to number %lld are missing",
		    (long long)seal->n, (long long)newest, (long long)seal->last_seq);
	else if (!found || here.n != seal->n)
		verify_find(v, VERIFY_BAD_SEAL, 0, 0, seal->first_seq, seal->last_seq,
		    "seal %lld was taken elsewhere, and is missing here", (long long)seal->n);
	else if (!whole || here.last_seq != seal->last_seq || memcmp(here.head, seal->head, CHAIN_DIGEST) != 0)
		verify_find(v, VERIFY_REWRITTEN, 0, 0, seal->first_seq, seal->last_seq,
		    "seal %lld differs from the one taken elsewhere: records %lld to %lld were rewritten",
		    (long long)seal->n, (long long)seal->first_seq, (long long)seal->last_seq);
	else
		v->result->notes_matched++;
	return 0;
}

int
verify_seal_notes(struct verify *v)
{
	struct seal newest;
	struct rows next;
	bool whole;
	int rc = 0;

	if (v->options->note_count == 0)
		return 0;
	/* Read again: the writer went on since the run began, and a newer seal may have been taken. */
	if (seal_table_newest(v->file.db, &newest, &whole) != 0)
		return verify_fail(v);
	seal_table_prepare(&next, v->file.db, v->file.path, v->err);
	for (size_t i = 0; rc == 0 && i < v->options->note_count; i++)
		rc = verify_note(v, &next, &v->options->notes[i], newest.n);
	if (rows_finish(&next) < 0)
		return -1;
	if (rc == 0 && v->result->notes_of_others == v->options->note_count)
		verify_find(v, VERIFY_TRUNCATED, 0, 0, 0, 0,
		    "all seals that were taken elsewhere are of another log, which this one replaced");
	return rc;
}
