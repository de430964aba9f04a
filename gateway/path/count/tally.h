/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refusals counted instead of listed: one record per kind of refusal, its count brought up to date now and then.
 *
 * A guest can send refused packets faster than any log can be written. The first one of a kind (key) is recorded at
 * once, later ones only raise a count that a timer sends again under the same record id. Each class has room for so
 * many kinds; what does not fit is counted in one row per class that names no addresses, so that the counts still add
 * up. The room is not shared: a flood in one class must not hide what is refused in another. */
#ifndef POSTERN_GATEWAY_TALLY_H
#define POSTERN_GATEWAY_TALLY_H

#include "audit/record.h"
#include "base/loop.h"
#include "gateway/path/count/account.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a stored count may lag behind. */
#define TALLY_FLUSH_MS 5000
/* A kind that was quiet for this long is forgotten; its next packet begins a new row. */
#define TALLY_IDLE_MS 60000
#define TALLY_BUCKETS 64
/* Numbers that an owner may give to classes: 0 to one less than this. */
#define TALLY_CLASSES_MAX 64

/* What makes two refused packets the same kind. */
struct tally_key {
	struct addr src, dst;
	uint8_t class; /* the owner's numbering */
	uint8_t proto;
	uint16_t dport;
};

struct tally {
	struct loop *loop;
	struct account *account; /* the rows go through it; outlives the tally */
	struct tally_entry *buckets[TALLY_BUCKETS];
	size_t max;                       /* entries that name addresses, per class */
	size_t counts[TALLY_CLASSES_MAX]; /* of them; the rows without are not counted */
	struct loop_timer timer;
};

void tally_init(struct tally *tally, struct loop *loop, struct account *account, size_t max);

/* Is there no room for another kind of this class? */
bool tally_full(const struct tally *tally, uint8_t class);

/* Send what was not sent yet, without asking whether the auditor is ready. */
void tally_flush(struct tally *tally);

/* tally_flush, and free all entries. */
void tally_close(struct tally *tally);

/* Add packets to the kind's count. False when there is no entry: then build a record and tally_open it. */
bool tally_bump(struct tally *tally, const struct tally_key *key, uint64_t packets);

/* Begin an entry with packets; flow is copied, its id, count and last_us are set here. When the class is full the
 * packets go to its row without addresses. Returns 0 or -ENOMEM (the packets are not counted then). */
int tally_open(struct tally *tally, const struct tally_key *key, const struct record_flow *flow, uint64_t packets);

/* Add packets to the class's row without addresses; flow tells sandbox, verdict, reason, end and generation. */
int tally_rest(struct tally *tally, uint8_t class, const struct record_flow *flow, uint64_t packets);

#endif
