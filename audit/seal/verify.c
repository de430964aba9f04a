/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Each insert or change of a row adds a link to the chain: the row's id, the change's number seq,
 * and a digest of the whole row. The row carries the number of its newest link. Each link leads from one head to the
 * next, and a seal signs the head that all links up to its last_seq lead to. Only the keys are trusted; the file may
 * hold anything. What is proven against what, in the order of the steps:
 *
 *   schema     tables, views, triggers, indexes and words against those that postern makes. Finds what would hide or
 *              change rows from readers, and is not in the chain.
 *   walk       seals against each other and the keys: numbers and ranges have no holes, each is signed by a key that
 *              counts. Finds removed, damaged and forged seals.
 *              Links against the sealed heads: a changed, removed, added or moved link leads to another head.
 *              Rows against links: behind each link stands its row, with the link's digest if it has the link's number.
 *              Finds changed and removed rows, and rows put back to an earlier state.
 *   rows       links against rows: each row's number is that of a link about this row. Finds inserted rows and swapped
 *              numbers. Each index leads to the row.
 *   pruning    pruned_through, which is not signed, against retention's own event, which is.
 *   accounts   the rows of a sandbox against the counts that its gateway kept.
 *   notes      seals that were taken elsewhere against those in the file.
 *
 * The holder of the key can write a log that passes all steps but the last: against the owner of the machine only a
 * seal that was taken elsewhere helps. Links after the newest seal are not signed yet.
 *
 * The log may be written and pruned meanwhile. Rows, links and seals newer than the beginning of the run are not
 * checked. They change together in the writer's transactions, and each page is read in one transaction. A row whose
 * number is larger than the link's was changed again, and is met again in the last pass.
 *
 * A finding never stops the run. A step fails, and with it the run, only when the file cannot be read. */
#include "audit/seal/verify_steps.h"

#include "audit/store/prune.h"
#include "audit/store/schema.h"
#include "audit/store/schema_check.h"
#include "audit/store/seal_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
verify_fault_text(enum verify_fault fault)
{
	static const char *const texts[] = {"changed", "removed", "inserted", "reordered", "rolled back", "rewritten",
	    "truncated", "bad seal", "does not add up"};
	_Static_assert(sizeof(texts) / sizeof(texts[0]) == VERIFY_FAULT_MAX, "a word for each fault");

	return fault < VERIFY_FAULT_MAX ? texts[fault] : "?";
}

/* Does the first finding so far stay the first? One about a single record tells more than one about its segment. */
static bool
verify_first_stays(const struct verify *v, int64_t seq, int64_t segment_end)
{
	int64_t first = v->result->first.seq;

	if (v->result->fault_count == 0)
		return false;
	return segment_end != 0 ? first <= segment_end : first <= seq && seq > v->first_end;
}

void
verify_find(struct verify *v, enum verify_fault fault, unsigned int table, int64_t id, int64_t seq, int64_t segment_end,
    const char *fmt, ...)
{
	struct verify_finding finding = {.fault = fault, .table = table, .id = id, .seq = seq};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(finding.text, sizeof(finding.text), fmt, ap);
	va_end(ap);
	if (!verify_first_stays(v, seq, segment_end)) {
		v->result->first = finding;
		v->first_end = segment_end;
	}
	v->result->faults[fault]++;
	v->result->fault_count++;
	if (v->options->finding_handler != NULL)
		v->options->finding_handler(&finding, v->options->context);
}

int
verify_fail(struct verify *v)
{
	return schema_error(v->err, v->file.db, v->file.path);
}

int
verify_fail_memory(struct verify *v)
{
	return error_sys(v->err, ENOMEM, "%s", v->file.path);
}

void
verify_prepare(struct verify *v, struct rows *ret_rows, const char *sql)
{
	rows_prepare(ret_rows, v->file.db, sql, v->file.path, v->err);
}

int
verify_begin(struct verify *v)
{
	return schema_exec(v->file.db, "BEGIN", v->file.path, v->err);
}

int
verify_end(struct verify *v)
{
	return schema_exec(v->file.db, "COMMIT", v->file.path, v->err);
}

void
verify_progress(struct verify *v, uint64_t done)
{
	v->done += done;
	if (v->options->progress_handler != NULL)
		v->options->progress_handler(v->done, v->total < v->done ? v->done : v->total, v->options->context);
}

int
verify_pruning(struct verify *v)
{
	int64_t through;
	bool told;
	int rc = prune_told(v->file.db, &through, &told);

	if (rc != 0)
		return verify_fail(v);
	if (!told && through != v->pruned_told)
		verify_find(v, VERIFY_REMOVED, 0, 0, 1, through,
		    "rows up to number %lld were pruned, but no event of retention says so", (long long)through);
	v->pruned_told = v->result->pruned_through = through;
	return 0;
}

int
verify_integer(struct verify *v, const char *sql, int64_t a, int64_t b, int64_t *ret_value)
{
	struct rows rows;

	verify_prepare(v, &rows, sql);
	rows_set_named(&rows, "?1", a);
	rows_set_named(&rows, "?2", b);
	*ret_value = rows_next(&rows) ? rows_integer(&rows, 0) : 0;
	return rows_finish(&rows);
}

/* How far this run goes, and about how much there is to do: links from the beginning of the run on, and all rows; there
 * is at least a link for each row. */
static int
verify_measure(struct verify *v)
{
	int64_t first, oldest;

	/* In one transaction: else a link whose seal came a moment later would count as unsealed. */
	if (verify_begin(v) < 0 || verify_integer(v, "SELECT max(n) FROM seals", 0, 0, &v->last_n) < 0 ||
	    verify_integer(v, "SELECT max(seq) FROM chain", 0, 0, &v->last_seq) < 0 || verify_end(v) < 0 ||
	    verify_integer(v, "SELECT min(seq) FROM chain WHERE seq > ?1", v->from.last_seq, 0, &first) < 0 ||
	    verify_integer(v, "SELECT min(seq) FROM chain WHERE seq > 0", 0, 0, &oldest) < 0)
		return -1;
	if (first > 0 && v->last_seq >= first)
		v->total = (uint64_t)(v->last_seq - first) + (uint64_t)(v->last_seq - oldest) + 2;
	return 0;
}

/* Finds the newest seal before the range asked for, unless it is before what was pruned. */
static int
verify_find_beginning(struct verify *v)
{
	/* The one before the first seal that is not older: after the clock was set back, later ones look older. */
	static const char by_time[] =
	    "SELECT max(n) FROM seals WHERE n < coalesce((SELECT min(n) FROM seals WHERE ts >= "
	    "?1), 9223372036854775807) AND last_seq > ?2";
	static const char by_seq[] = "SELECT max(n) FROM seals WHERE last_seq < ?1 AND last_seq > ?2";
	const struct verify_options *options = v->options;
	struct rows next;
	int64_t n = 0;
	bool whole = false;

	if (options->since_us != 0 && verify_integer(v, by_time, options->since_us, v->result->pruned_through, &n) < 0)
		return -1;
	if (options->since_seq != 0 && verify_integer(v, by_seq, options->since_seq, v->result->pruned_through, &n) < 0)
		return -1;
	if (n <= 0)
		return 0;
	seal_table_prepare(&next, v->file.db, v->file.path, v->err);
	seal_table_next(&next, n - 1, &v->from, &whole);
	if (rows_finish(&next) < 0)
		return -1;
	/* A seal that proves nothing is no beginning. */
	if (!whole || !verify_seal_counts(v, &v->from))
		v->from = (struct seal){.n = 0};
	return 0;
}

/* The keys that count: the given ones, or, without any, those in the file. */
static int
verify_load_keys(struct verify *v)
{
	int rc;

	v->keys = v->options->keys;
	v->key_count = v->options->key_count;
	v->result->pinned = v->key_count > 0;
	if (v->key_count > 0)
		return 0;
	rc = seal_table_keys(v->file.db, v->own_keys, VERIFY_KEYS_MAX, &v->key_count);
	v->keys = v->own_keys;
	return rc == 0 ? 0 : verify_fail(v);
}

/* Is there a sandbox of the name asked for? Without a name there is nothing to check. */
static int
verify_check_sandbox(struct verify *v)
{
	struct rows rows;
	bool found;

	if (v->options->sandbox == NULL)
		return 0;
	verify_prepare(v, &rows, "SELECT 1 FROM sandboxes WHERE name = ?1 LIMIT 1");
	rows_set_text(&rows, 1, v->options->sandbox);
	found = rows_next(&rows);
	if (rows_finish(&rows) < 0)
		return -1;
	return found
	    ? 0
	    : error_set(v->err, ERROR_NOT_FOUND, "%s: no sandbox in this log had that name", v->options->sandbox);
}

/* Adds a finding about the file as a whole; any about a record takes precedence as the first. */
static void
verify_find_in_file(struct verify *v, const char *what, const char *meaning)
{
	if (what[0] != '\0')
		verify_find(v, VERIFY_CHANGED, 0, 0, 0, INT64_MAX, "%s: %s", what, meaning);
}

/* Compares views, triggers, indexes and words with postern's: no seal covers them, and readers rely on them. */
static int
verify_schema(struct verify *v)
{
	char what[SCHEMA_CHECK_TEXT_MAX];
	bool table;
	int rc;

	v->reference = schema_check_reference(v->err);
	if (v->reference == NULL)
		return -1;
	rc = schema_check(v->file.db, v->reference, what, &table);
	if (rc != 0)
		return verify_fail(v);
	if (what[0] != '\0' && table)
		return error_set(
		    v->err, ERROR_CORRUPT, "%s: %s; it cannot be read as an audit log", v->file.path, what);
	v->schema_ours = what[0] == '\0';
	verify_find_in_file(v, what, "queries may give wrong answers");
	rc = schema_check_words(v->file.db, v->reference, what);
	verify_find_in_file(v, what, "views show a wrong word");
	return rc == 0 ? 0 : verify_fail(v);
}

/* Schema, log id, keys and the range of the run. */
static int
verify_start(struct verify *v)
{
	if (verify_schema(v) < 0)
		return -1;
	if (seal_table_log_id(v->file.db, v->result->log_id) != 0)
		return verify_fail(v);
	if (v->result->log_id[0] == '\0')
		return error_set(
		    v->err, ERROR_CORRUPT, "%s has lost its log_id: nothing in it can be verified", v->file.path);
	if (verify_pruning(v) < 0 || verify_load_keys(v) < 0 || verify_check_sandbox(v) < 0 ||
	    verify_find_beginning(v) < 0)
		return -1;
	v->result->from_seq =
	    v->from.last_seq > v->result->pruned_through ? v->from.last_seq : v->result->pruned_through;
	v->result->from_us = v->from.ts_us;
	return verify_measure(v);
}

/* All steps in their order. */
static int
verify_all(struct verify *v)
{
	if (verify_start(v) < 0)
		return -1;
	v->accounts = verify_accounts_load(v);
	if (v->accounts == NULL || verify_walk(v) < 0 || verify_rows(v) < 0 || verify_accounts_check(v) < 0)
		return -1;
	return verify_seal_notes(v);
}

int
verify_run(const char *path, const struct verify_options *options, struct verify_result *ret_result, struct error *err)
{
	struct verify v = {.options = options, .result = ret_result, .err = err, .pruned_told = -1};
	int rc;

	memset(ret_result, 0, sizeof(*ret_result));
	if (open_read_only(&v.file, path, err) < 0)
		return -1;
	v.chain = chain_new();
	rc = v.chain == NULL ? error_sys(err, ENOMEM, "%s", path) : verify_all(&v);
	verify_accounts_free(v.accounts);
	chain_free(v.chain);
	schema_check_reference_close(v.reference);
	open_close(&v.file);
	return rc;
}
