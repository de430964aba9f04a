/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Accounting. A gateway counts attempts where they come in, apart from the records that it makes of them, and logs both
 * counts; the rows must match. A final account must match exactly. After one that is not final the gateway went on, or
 * crashed: there must not be more rows before it than it says, and not fewer rows in all. */
#include "audit/seal/verify_steps.h"

#include "audit/query/saturate.h"
#include "policy/verdict.h"

#include "audit/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct account {
	int64_t id, seq, sandbox;
	uint64_t epoch; /* of the sender */
	bool final;
	int64_t attempts[RECORD_ATTEMPT_MAX];
	int64_t recorded[RECORD_ATTEMPT_MAX][VERDICT_MAX];
	int64_t rows[RECORD_ATTEMPT_MAX][VERDICT_MAX]; /* found, by counts */
	int64_t before[RECORD_ATTEMPT_MAX];            /* of these, not changed since the account */
};

struct verify_accounts {
	struct account *items; /* by sandbox and epoch */
	size_t count, size;
};

static const char *const account_things[] = {"connections", "queries", "refused packets"};
_Static_assert(sizeof(account_things) / sizeof(account_things[0]) == RECORD_ATTEMPT_MAX, "a word for each kind");

/* Columns before the counts, in this file's statement. */
#define ACCOUNT_COUNTS 4

/* A sum is about all records: a finding about one of them takes precedence as the first. */
#define ACCOUNT_ABOUT_ALL INT64_MAX

/* Attempts of all verdicts. */
static int64_t
account_total(const int64_t counts[VERDICT_MAX])
{
	int64_t total = 0;

	for (size_t i = 0; i < VERDICT_MAX; i++)
		total = saturate_add(total, counts[i]);
	return total;
}

/* Order of accounts: by sandbox, then epoch. */
static int
account_compare(const void *a, const void *b)
{
	const struct account *left = a, *right = b;

	if (left->sandbox != right->sandbox)
		return left->sandbox < right->sandbox ? -1 : 1;
	return left->epoch < right->epoch ? -1 : left->epoch > right->epoch;
}

/* Reads an account from the current row. */
static void
account_read(struct rows *row, struct account *ret_account)
{
	int column = ACCOUNT_COUNTS;

	*ret_account = (struct account){.id = rows_integer(row, 0),
	    .seq = rows_integer(row, 1),
	    .sandbox = rows_integer(row, 2),
	    .final = rows_integer(row, 3) != 0};
	ret_account->epoch = (uint64_t)ret_account->id >> 31;
	for (size_t attempt = 0; attempt < RECORD_ATTEMPT_MAX; attempt++) {
		ret_account->attempts[attempt] = rows_integer(row, column++);
		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			ret_account->recorded[attempt][verdict] = rows_integer(row, column++);
	}
}

/* Appends the current row. 0 or -ENOMEM. */
static int
accounts_push(struct verify_accounts *accounts, struct rows *row)
{
	struct account *items;

	if (accounts->count == accounts->size) {
		accounts->size = accounts->size == 0 ? 256 : 2 * accounts->size;
		items = reallocarray(accounts->items, accounts->size, sizeof(*items));
		if (items == NULL)
			return -ENOMEM;
		accounts->items = items;
	}
	account_read(row, &accounts->items[accounts->count++]);
	return 0;
}

struct verify_accounts *
verify_accounts_load(struct verify *v)
{
	/* Newest first: of more than can be kept these are the ones to keep. */
	static const char sql[] =
	    "SELECT id, seq, sandbox_id, final, connections, connections_allowed, connections_denied, "
	    "connections_limited, connections_failed, queries, queries_allowed, queries_denied, queries_limited, "
	    "queries_failed, packets, packets_allowed, packets_denied, packets_limited, packets_failed FROM accounts "
	    "WHERE ?1 IS NULL OR sandbox_id IN (SELECT id FROM sandboxes WHERE name = ?1) ORDER BY id DESC";
	struct verify_accounts *accounts = calloc(1, sizeof(*accounts));
	struct rows rows;
	int rc = 0;

	if (accounts == NULL) {
		verify_fail_memory(v);
		return NULL;
	}
	verify_prepare(v, &rows, sql);
	rows_set_text(&rows, 1, v->options->sandbox);
	while (rc == 0 && rows_next(&rows)) {
		if (accounts->count == VERIFY_ACCOUNTS_MAX)
			v->result->accounts_left_out++;
		else if (accounts_push(accounts, &rows) < 0)
			rc = verify_fail_memory(v);
	}
	if (rows_finish(&rows) < 0 || rc < 0) {
		verify_accounts_free(accounts);
		return NULL;
	}
	if (accounts->count > 0)
		qsort(accounts->items, accounts->count, sizeof(*accounts->items), account_compare);
	return accounts;
}

void
verify_accounts_free(struct verify_accounts *accounts)
{
	if (accounts == NULL)
		return;
	free(accounts->items);
	free(accounts);
}

/* Finds the account of this sandbox whose sender gave out the id: the last one that is not after it. NULL: none. */
static struct account *
accounts_find(struct verify_accounts *accounts, int64_t sandbox, int64_t id)
{
	struct account key = {.sandbox = sandbox, .epoch = (uint64_t)id >> 31};
	size_t low = 0, high = accounts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (account_compare(&accounts->items[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || accounts->items[low - 1].sandbox != sandbox ||
	    !record_id_is_of((uint64_t)id, accounts->items[low - 1].epoch))
		return NULL;
	return &accounts->items[low - 1];
}

void
verify_accounts_add(struct verify_accounts *accounts, enum record_attempt attempt, int64_t sandbox, int64_t id,
    int64_t seq, unsigned int verdict, int64_t count)
{
	struct account *account = accounts_find(accounts, sandbox, id);

	if (account == NULL)
		return;
	account->rows[attempt][verdict] = saturate_add(account->rows[attempt][verdict], count);
	if (seq <= account->seq)
		account->before[attempt] = saturate_add(account->before[attempt], count);
}

/* Adds a finding: the gateway counted this many, and the log has another number. */
static void
account_find(struct verify *v, const struct account *account, const char *things, const char *what, int64_t counted,
    int64_t found)
{
	verify_find(v, VERIFY_ACCOUNT, COLUMNS_ACCOUNTS, account->id, account->seq, ACCOUNT_ABOUT_ALL,
	    "%s of sandbox %lld: the gateway %s %lld, the log has %lld", things, (long long)account->sandbox, what,
	    (long long)counted, (long long)found);
}

/* One kind of attempts. True if it adds up. */
static bool
account_check(struct verify *v, const struct account *account, size_t attempt)
{
	const int64_t *recorded = account->recorded[attempt], *rows = account->rows[attempt];
	int64_t total = account_total(recorded), found = account_total(rows), attempts = account->attempts[attempt];
	const char *things = account_things[attempt];

	if (total > attempts || (account->final && total != attempts)) {
		account_find(v, account, things, "saw", attempts, total);
		return false;
	}
	if (!account->final && (account->before[attempt] > total || found < total)) {
		account_find(v, account, things, "had recorded", total, found);
		return false;
	}
	for (size_t verdict = 0; account->final && verdict < VERDICT_MAX; verdict++) {
		if (rows[verdict] == recorded[verdict])
			continue;
		verify_find(v, VERIFY_ACCOUNT, COLUMNS_ACCOUNTS, account->id, account->seq, ACCOUNT_ABOUT_ALL,
		    "%s of sandbox %lld that were %s: the gateway recorded %lld, the log has %lld", things,
		    (long long)account->sandbox, verdict_text((unsigned int)verdict), (long long)recorded[verdict],
		    (long long)rows[verdict]);
		return false;
	}
	return true;
}

int
verify_accounts_check(struct verify *v)
{
	int64_t dropped_us = 0, replaced_us = 0;

	if (v->result->pruned_through > 0 &&
	    verify_integer(v, "SELECT ts FROM seals WHERE last_seq = ?1", v->result->pruned_through, 0, &dropped_us) <
		0)
		return -1;
	/* A file that took another's place has none of the rows before it. */
	if (verify_integer(v, "SELECT coalesce(max(ts), 0) FROM events WHERE kind = ?1", EVENT_AUDIT_REPLACED, 0,
		&replaced_us) < 0)
		return -1;
	if (dropped_us < replaced_us)
		dropped_us = replaced_us;
	for (size_t i = 0; i < v->accounts->count; i++) {
		const struct account *account = &v->accounts->items[i];
		bool whole = true;

		/* A sandbox's id is when it was attached: before that it had no rows to drop. */
		if (account->sandbox <= dropped_us) {
			v->result->accounts_pruned++;
			continue;
		}
		for (size_t attempt = 0; attempt < RECORD_ATTEMPT_MAX; attempt++)
			whole &= account_check(v, account, attempt);
		if (whole)
			v->result->accounts++;
	}
	return 0;
}
