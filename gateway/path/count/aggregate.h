/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refusals counted instead of listed: one record per kind of refusal, its count brought up to date now and then.
 *
 * A guest can send refused packets faster than any log can be written. The first one of a kind (key) is recorded at
 * once, later ones only raise a count that a timer sends again under the same record id. Each class has room for so
 * many kinds; what does not fit is counted in one row per class that names no addresses, so that the counts still add
 * up. The room is not shared: a flood in one class must not hide what is refused in another. */
#ifndef POSTERN_GATEWAY_AGGREGATE_H
#define POSTERN_GATEWAY_AGGREGATE_H

#include "audit/record.h"
#include "base/loop.h"
#include "gateway/path/count/balance.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a stored count may lag behind. */
#define AGGREGATE_FLUSH_MS 5000
/* A kind that was quiet for this long is forgotten; its next packet begins a new row. */
#define AGGREGATE_IDLE_MS 60000
#define AGGREGATE_BUCKETS 64
/* Numbers that an owner may give to classes: 0 to one less than this. */
#define AGGREGATE_CLASSES_MAX 64

/* What makes two refused packets the same kind. */
struct aggregate_key {
	struct addr src, dst;
	uint8_t class; /* the owner's numbering */
	uint8_t proto;
	uint16_t dport;
};

struct aggregate {
	struct loop *loop;
	struct balance *balance; /* the rows go through it; outlives the aggregate */
	struct aggregate_entry *buckets[AGGREGATE_BUCKETS];
	size_t max;                           /* entries that name addresses, per class */
	size_t counts[AGGREGATE_CLASSES_MAX]; /* of them; the rows without are not counted */
	struct loop_timer timer;
};

void aggregate_init(struct aggregate *aggregate, struct loop *loop, struct balance *balance, size_t max);

/* Is there no room for another kind of this class? */
bool aggregate_full(const struct aggregate *aggregate, uint8_t class);

/* Send what was not sent yet, without asking whether the auditor is ready. */
void aggregate_flush(struct aggregate *aggregate);

/* aggregate_flush, and free all entries. */
void aggregate_close(struct aggregate *aggregate);

/* Add packets to the kind's count. False when there is no entry: then build a record and aggregate_open it. */
bool aggregate_bump(struct aggregate *aggregate, const struct aggregate_key *key, uint64_t packets);

/* Begin an entry with packets; flow is copied, its id, count and last_us are set here. When the class is full the
 * packets go to its row without addresses. Returns 0 or -ENOMEM (the packets are not counted then). */
int aggregate_open(
    struct aggregate *aggregate, const struct aggregate_key *key, const struct record_flow *flow, uint64_t packets);

/* Add packets to the class's row without addresses; flow tells sandbox, verdict, reason, end and generation. */
int aggregate_rest(struct aggregate *aggregate, uint8_t class, const struct record_flow *flow, uint64_t packets);

#endif
