/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From one sealed head to the next, link by link, comparing the row of each. */
#include "audit/seal/verify_steps.h"

#include "audit/store/seal_table.h"

#include <stdio.h>
#include <string.h>

struct walk {
	struct verify *v;
	struct rows links, at;               /* a page of links; the link with a number */
	struct rows rows[COLUMNS_TABLE_MAX]; /* the row with an id */
	struct rows next_seal;
	int64_t seq; /* links up to here are done */
	uint8_t head[CHAIN_DIGEST];
	bool head_known;
	struct seal seal;   /* the last one met */
	int64_t hole;       /* first number of this segment without a link; 0: none */
	int64_t pruned_to;  /* rows up to here are dropped, as far as is known */
	bool pruned_sealed; /* a seal ends there */
};

/* The number after this one; a hostile file may have the largest possible one. */
static int64_t
walk_after(int64_t number)
{
	return number == INT64_MAX ? number : number + 1;
}

/* Ends the statements. 0, or -1 when one of them failed, or rc was. */
static int
walk_close(struct walk *walk, int rc)
{
	rc |= rows_finish(&walk->links) | rows_finish(&walk->at) | rows_finish(&walk->next_seal);
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++)
		rc |= rows_finish(&walk->rows[table]);
	return rc;
}

/* Prepares the statements, and begins at the seal that the run begins with. */
static void
walk_open(struct walk *walk, struct verify *v)
{
	char list[COLUMNS_TEXT_MAX], sql[COLUMNS_TEXT_MAX + 64];

	memset(walk, 0, sizeof(*walk));
	walk->v = v;
	walk->pruned_to = v->result->pruned_through;
	walk->head_known = walk->pruned_to == 0 || v->from.n > 0;
	walk->seal = v->result->newest = v->from;
	walk->seq = v->from.last_seq;
	memcpy(walk->head, v->from.head, CHAIN_DIGEST);
	if (v->from.n == 0)
		chain_begin(v->chain, v->result->log_id, walk->head);
	verify_prepare(v, &walk->links,
	    "SELECT seq, tbl, id, digest FROM chain WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3");
	verify_prepare(v, &walk->at, "SELECT tbl, id FROM chain WHERE seq = ?1");
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE id = ?1", columns_chained(table, list),
		    columns_table_name(table));
		verify_prepare(v, &walk->rows[table], sql);
	}
	seal_table_prepare(&walk->next_seal, v->file.db, v->file.path, v->err);
}

/* The row is older than the link: it has an earlier number. If that number is another row's, verify_rows names it. */
static int
walk_row_is_older(struct walk *walk, int64_t row_seq, const struct chain_link *link)
{
	bool about;

	rows_set_integer(&walk->at, 1, row_seq);
	about =
	    rows_next(&walk->at) && rows_integer(&walk->at, 0) == link->table && rows_integer(&walk->at, 1) == link->id;
	rows_again(&walk->at);
	if (about)
		verify_find(walk->v, VERIFY_ROLLED_BACK, link->table, link->id, link->seq, 0,
		    "was rolled back to before change %lld: it has number %lld", (long long)link->seq,
		    (long long)row_seq);
	return walk->at.code == 0 ? 0 : -1;
}

/* Compares the current row, which has the link's id, with the link. */
static int
walk_compare_row(struct walk *walk, struct rows *row, const struct chain_link *link)
{
	int64_t seq = rows_integer(row, 1);
	uint8_t digest[CHAIN_DIGEST];

	if (seq > link->seq)
		return 0;
	if (seq < link->seq)
		return walk_row_is_older(walk, seq, link);
	if (chain_digest(walk->v->chain, row, digest) == 0 && memcmp(digest, link->digest, CHAIN_DIGEST) != 0)
		verify_find(walk->v, VERIFY_CHANGED, link->table, link->id, link->seq, 0, "is not as it was written");
	return 0;
}

/* Looks up the link's row, and compares. */
static int
walk_check_row(struct walk *walk, const struct chain_link *link)
{
	struct rows *row = &walk->rows[link->table];
	int rc = 0;

	rows_set_integer(row, 1, link->id);
	if (rows_next(row))
		rc = walk_compare_row(walk, row, link);
	else if (row->code == 0)
		verify_find(walk->v, VERIFY_REMOVED, link->table, link->id, link->seq, 0, "is missing");
	rows_again(row);
	return row->code == 0 ? rc : -1;
}

/* Checks the current link and its row. */
static int
walk_link(struct walk *walk)
{
	struct verify *v = walk->v;
	int64_t table = rows_integer(&walk->links, 1);
	struct chain_link link = {.seq = rows_integer(&walk->links, 0), .id = rows_integer(&walk->links, 2)};
	bool whole = rows_bytes(&walk->links, 3, link.digest, CHAIN_DIGEST) && table > 0 && table < COLUMNS_TABLE_MAX;

	if (link.seq != walk_after(walk->seq) && walk->hole == 0)
		walk->hole = walk_after(walk->seq);
	walk->seq = link.seq;
	v->result->links++;
	if (!whole) {
		walk->head_known = false;
		verify_find(v, VERIFY_REWRITTEN, 0, 0, link.seq, 0, "link %lld is damaged", (long long)link.seq);
		return 0;
	}
	link.table = (unsigned int)table;
	chain_advance(v->chain, walk->head, &link);
	return walk_check_row(walk, &link);
}

/* Were rows pruned since the last page? Then the next links may be gone. */
static int
walk_notice_pruning(struct walk *walk)
{
	int64_t through;

	if (seal_table_pruned_through(walk->v->file.db, &through) != 0)
		return verify_fail(walk->v);
	if (through != walk->pruned_to) {
		walk->pruned_to = walk->v->result->pruned_through = through;
		walk->pruned_sealed = false;
	}
	if (through > walk->seq) {
		walk->seq = through;
		walk->head_known = false;
		walk->hole = 0;
	}
	return 0;
}

/* Checks a page of links up to and with last_seq. 1: there may be more; 0: done; -1. */
static int
walk_page(struct walk *walk, int64_t last_seq)
{
	int count = 0, rc;

	if (verify_begin(walk->v) < 0)
		return -1;
	rc = walk_notice_pruning(walk);
	rows_set_integer(&walk->links, 1, walk->seq);
	rows_set_integer(&walk->links, 2, last_seq);
	rows_set_integer(&walk->links, 3, VERIFY_PAGE);
	for (; rc == 0 && rows_next(&walk->links); count++)
		rc = walk_link(walk);
	rows_again(&walk->links);
	if (rc < 0 || walk->links.code != 0 || verify_end(walk->v) < 0)
		return -1;
	verify_progress(walk->v, (uint64_t)count);
	return count == VERIFY_PAGE;
}

/* Checks all links up to and with last_seq. */
static int
walk_to(struct walk *walk, int64_t last_seq)
{
	int rc;

	walk->hole = 0;
	do
		rc = walk_page(walk, last_seq);
	while (rc > 0);
	if (rc == 0 && walk->seq < last_seq && walk->hole == 0)
		walk->hole = walk->seq + 1;
	return rc;
}

/* Adds a finding: the links since the seal before do not lead to this one's head. A number without
 * a link tells where. */
static void
walk_find_segment(struct walk *walk, const struct seal *seal)
{
	struct verify *v = walk->v;

	if (walk->hole > v->last_seq)
		verify_find(v, VERIFY_TRUNCATED, 0, 0, walk->hole, 0,
		    "the chain ends with link %lld, but seal %lld covers links up to %lld", (long long)v->last_seq,
		    (long long)seal->n, (long long)seal->last_seq);
	else if (walk->hole != 0)
		verify_find(v, VERIFY_REMOVED, 0, 0, walk->hole, seal->last_seq,
		    "link %lld was removed, and perhaps its record", (long long)walk->hole);
	else
		verify_find(v, VERIFY_REWRITTEN, 0, 0, seal->first_seq, seal->last_seq,
		    "links %lld to %lld do not lead to the head that seal %lld signed: one was changed, added or "
		    "moved, perhaps with its record",
		    (long long)seal->first_seq, (long long)seal->last_seq, (long long)seal->n);
}

/* Do number and range go on where the seal before ended? */
static void
walk_check_place(struct walk *walk, const struct seal *seal)
{
	const struct seal *before = &walk->seal;

	if (seal->n != walk_after(before->n))
		verify_find(walk->v, VERIFY_BAD_SEAL, 0, 0, walk_after(before->last_seq), seal->last_seq,
		    "seal %lld is missing", (long long)walk_after(before->n));
	else if (seal->first_seq != walk_after(before->last_seq) || seal->last_seq < seal->first_seq)
		verify_find(walk->v, VERIFY_BAD_SEAL, 0, 0, walk_after(before->last_seq), seal->last_seq,
		    "seal %lld covers %lld to %lld, which does not follow seal %lld, up to %lld", (long long)seal->n,
		    (long long)seal->first_seq, (long long)seal->last_seq, (long long)before->n,
		    (long long)before->last_seq);
}

/* Checks a seal, and the links that it covers. */
static int
walk_seal(struct walk *walk, const struct seal *seal)
{
	bool is_signed = verify_seal_signed(walk->v, seal);

	walk_check_place(walk, seal);
	if (seal->last_seq > walk->pruned_to && walk_to(walk, seal->last_seq) < 0)
		return -1;
	if (seal->last_seq == walk->pruned_to)
		walk->pruned_sealed = true;
	if (seal->last_seq > walk->pruned_to && walk->head_known && memcmp(walk->head, seal->head, CHAIN_DIGEST) != 0)
		walk_find_segment(walk, seal);
	/* A fault here says nothing about later links: those go on from the signed head. */
	walk->head_known = is_signed;
	memcpy(walk->head, seal->head, CHAIN_DIGEST);
	walk->seq = seal->last_seq > walk->seq ? seal->last_seq : walk->seq;
	walk->seal = *seal;
	walk->v->result->seals++;
	walk->v->result->newest = *seal;
	return 0;
}

/* Checks the next seal and its links. 1: there was one; 0: there is none left; -1. */
static int
walk_next_seal(struct walk *walk)
{
	struct verify *v = walk->v;
	struct seal seal;
	bool whole;

	if (walk->seal.n >= v->last_n)
		return 0;
	if (!seal_table_next(&walk->next_seal, walk->seal.n, &seal, &whole))
		return walk->next_seal.code == 0 ? 0 : -1;
	if (whole)
		return walk_seal(walk, &seal) < 0 ? -1 : 1;
	verify_find(
	    v, VERIFY_BAD_SEAL, 0, 0, walk_after(walk->seal.last_seq), 0, "seal %lld is damaged", (long long)seal.n);
	/* Treated as missing; the next one's range tells what it covered. */
	walk->seal.n = seal.n;
	walk->head_known = false;
	return 1;
}

/* After the newest seal there must be no more than a writer leaves there: nothing when it stopped in order, and always
 * fewer links than make a seal due. */
static int
walk_check_tail(struct walk *walk)
{
	struct verify *v = walk->v;
	const struct seal *newest = &v->result->newest;
	bool closes;

	if (seal_table_closes(v->file.db, newest, &closes) != 0)
		return verify_fail(v);
	if (v->result->unsealed > 0 && closes)
		verify_find(v, VERIFY_INSERTED, 0, 0, walk_after(newest->last_seq), v->last_seq,
		    "changes %lld to %lld were added after the log was closed, with seal %lld",
		    (long long)walk_after(newest->last_seq), (long long)v->last_seq, (long long)newest->n);
	else if (v->result->unsealed >= SEAL_LINKS)
		verify_find(v, VERIFY_BAD_SEAL, 0, 0, walk_after(newest->last_seq), v->last_seq,
		    "changes %lld to %lld have no seal, more than postern leaves without one: seals were removed, or "
		    "changes added",
		    (long long)walk_after(newest->last_seq), (long long)v->last_seq);
	return 0;
}

/* Checks the links that are not sealed yet. */
static int
walk_tail(struct walk *walk)
{
	struct verify *v = walk->v;
	uint64_t before = v->result->links;

	if (walk_to(walk, v->last_seq) < 0)
		return -1;
	v->result->unsealed = v->result->links - before;
	/* Without any seal the whole chain may have been made anew: a hole in it proves nothing. */
	if (walk->hole != 0 && walk->hole <= v->last_seq && v->result->newest.n > 0)
		verify_find(v, VERIFY_REMOVED, 0, 0, walk->hole, v->last_seq,
		    "link %lld was removed, and perhaps its record", (long long)walk->hole);
	return walk_check_tail(walk);
}

/* The walk begins at 1, and would not meet seals or links before that. */
static int
walk_check_front(struct verify *v)
{
	int64_t seals, links;

	if (verify_integer(v, "SELECT count(*) FROM seals WHERE n < 1", 0, 0, &seals) < 0 ||
	    verify_integer(v, "SELECT count(*) FROM chain WHERE seq < 1", 0, 0, &links) < 0)
		return -1;
	if (seals > 0)
		verify_find(v, VERIFY_BAD_SEAL, 0, 0, 0, 0, "%lld seals have numbers below 1", (long long)seals);
	if (links > 0)
		verify_find(v, VERIFY_REORDERED, 0, 0, 0, 0, "%lld links have numbers below 1", (long long)links);
	return 0;
}

int
verify_walk(struct verify *v)
{
	struct walk walk;
	int rc;

	walk_open(&walk, v);
	rc = walk_check_front(v);
	while (rc == 0 && (rc = walk_next_seal(&walk)) > 0)
		rc = 0;
	if (rc == 0)
		rc = walk_tail(&walk);
	if (rc == 0 && walk.pruned_to > v->from.last_seq && !walk.pruned_sealed)
		verify_find(v, VERIFY_REMOVED, 0, 0, 1, walk.pruned_to,
		    "records up to number %lld are marked as pruned, but no seal ends there",
		    (long long)walk.pruned_to);
	return walk_close(&walk, rc);
}
