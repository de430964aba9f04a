/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/aggregate.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aggregate_entry {
	struct aggregate_entry *next_in_bucket;
	struct aggregate_key key;
	bool rest;            /* the class's row without addresses */
	bool dirty;           /* count or last_us are newer than what was sent */
	int64_t last_mono_ms; /* last packet, for forgetting */
	uint64_t sent;        /* the count that was sent last */
	struct record_flow flow;
};

/* The key is hashed and compared as bytes. */
static_assert(sizeof(struct aggregate_key) == 2 * sizeof(struct addr) + 4, "struct aggregate_key must have no padding");

/* The list that the key hashes to. */
static struct aggregate_entry **
aggregate_bucket(struct aggregate *aggregate, const struct aggregate_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 2166136261u; /* FNV-1a: the table is bounded, a guest that makes it collide slows only itself */

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return &aggregate->buckets[hash % AGGREGATE_BUCKETS];
}

/* The entry of the key, or the class's row without addresses; NULL: none. */
static struct aggregate_entry *
aggregate_find(struct aggregate *aggregate, const struct aggregate_key *key, bool rest)
{
	for (struct aggregate_entry *e = *aggregate_bucket(aggregate, key); e != NULL; e = e->next_in_bucket)
		if (e->rest == rest && memcmp(&e->key, key, sizeof(*key)) == 0)
			return e;
	return NULL;
}

/* While the auditor cannot take records the entry stays dirty: it keeps counting and loses nothing. */
static void
aggregate_send(struct aggregate *aggregate, struct aggregate_entry *entry, bool force)
{
	struct record record = {.kind = RECORD_REFUSED};

	if (!force && !recorder_ready(aggregate->balance->recorder))
		return;
	record.flow = entry->flow;
	if (balance_send(aggregate->balance, &record, entry->sent, NULL) < 0)
		return;
	entry->sent = entry->flow.count;
	entry->dirty = false;
}

/* Unlinks and frees an entry. */
static void
aggregate_drop(struct aggregate *aggregate, struct aggregate_entry **at)
{
	struct aggregate_entry *entry = *at;

	*at = entry->next_in_bucket;
	if (!entry->rest)
		aggregate->counts[entry->key.class]--;
	free(entry);
}

/* Sends what changed and forgets what was quiet; runs again while anything is left. */
static void
aggregate_timer_handler(struct loop_timer *timer)
{
	struct aggregate *aggregate = loop_owner(timer, struct aggregate, timer);
	int64_t now_ms = clock_mono_ms();
	bool left = false;

	for (size_t i = 0; i < AGGREGATE_BUCKETS; i++) {
		struct aggregate_entry **at = &aggregate->buckets[i];

		while (*at != NULL) {
			if ((*at)->dirty)
				aggregate_send(aggregate, *at, false);
			if (!(*at)->dirty && now_ms - (*at)->last_mono_ms >= AGGREGATE_IDLE_MS) {
				aggregate_drop(aggregate, at);
				continue;
			}
			left = true;
			at = &(*at)->next_in_bucket;
		}
	}
	if (left)
		(void)loop_timer_set(
		    aggregate->loop, timer, AGGREGATE_FLUSH_MS); /* without memory: the next packet arms it */
}

/* Adds packets to an entry and arms the timer that sends it. */
static void
aggregate_count(struct aggregate *aggregate, struct aggregate_entry *entry, uint64_t packets)
{
	entry->flow.count += packets;
	entry->flow.last_us = clock_real_us();
	entry->last_mono_ms = clock_mono_ms();
	entry->dirty = true;
	if (!loop_timer_armed(&aggregate->timer))
		(void)loop_timer_set(aggregate->loop, &aggregate->timer, AGGREGATE_FLUSH_MS);
}

/* Makes an entry with a record of its own and sends it. 0 or -ENOMEM. */
static int
aggregate_insert(struct aggregate *aggregate, const struct aggregate_key *key, bool rest,
    const struct record_flow *flow, uint64_t packets)
{
	struct aggregate_entry **at = aggregate_bucket(aggregate, key);
	struct aggregate_entry *entry = calloc(1, sizeof(*entry));

	if (entry == NULL)
		return -ENOMEM;
	entry->key = *key;
	entry->rest = rest;
	entry->flow = *flow;
	entry->flow.id = recorder_id(aggregate->balance->recorder);
	entry->flow.ts_us = clock_real_us();
	entry->flow.count = 0;
	entry->next_in_bucket = *at;
	*at = entry;
	if (!rest)
		aggregate->counts[key->class]++;
	aggregate_count(aggregate, entry, packets);
	aggregate_send(aggregate, entry, false);
	return 0;
}

void
aggregate_init(struct aggregate *aggregate, struct loop *loop, struct balance *balance, size_t max)
{
	*aggregate = (struct aggregate){.loop = loop, .balance = balance, .max = max};
	aggregate->timer.handler = aggregate_timer_handler;
}

bool
aggregate_full(const struct aggregate *aggregate, uint8_t class)
{
	assert(class < AGGREGATE_CLASSES_MAX);
	return aggregate->counts[class] >= aggregate->max;
}

void
aggregate_flush(struct aggregate *aggregate)
{
	for (size_t i = 0; i < AGGREGATE_BUCKETS; i++)
		for (struct aggregate_entry *e = aggregate->buckets[i]; e != NULL; e = e->next_in_bucket)
			if (e->dirty)
				aggregate_send(aggregate, e, true);
}

void
aggregate_close(struct aggregate *aggregate)
{
	loop_timer_stop(aggregate->loop, &aggregate->timer);
	aggregate_flush(aggregate);
	for (size_t i = 0; i < AGGREGATE_BUCKETS; i++)
		while (aggregate->buckets[i] != NULL)
			aggregate_drop(aggregate, &aggregate->buckets[i]);
}

bool
aggregate_bump(struct aggregate *aggregate, const struct aggregate_key *key, uint64_t packets)
{
	struct aggregate_entry *entry = aggregate_find(aggregate, key, false);

	if (entry == NULL)
		return false;
	aggregate_count(aggregate, entry, packets);
	return true;
}

int
aggregate_open(
    struct aggregate *aggregate, const struct aggregate_key *key, const struct record_flow *flow, uint64_t packets)
{
	if (aggregate_full(aggregate, key->class))
		return aggregate_rest(aggregate, key->class, flow, packets);
	return aggregate_insert(aggregate, key, false, flow, packets);
}

int
aggregate_rest(struct aggregate *aggregate, uint8_t class, const struct record_flow *flow, uint64_t packets)
{
	struct aggregate_key key = {.class = class};
	struct aggregate_entry *entry = aggregate_find(aggregate, &key, true);
	struct record_flow rest;

	if (entry != NULL) {
		aggregate_count(aggregate, entry, packets);
		return 0;
	}
	rest = (struct record_flow){
	    .sandbox = flow->sandbox,
	    .proto = flow->proto,
	    .verdict = flow->verdict,
	    .reason = flow->reason,
	    .end = flow->end,
	    .generation = flow->generation,
	};
	snprintf(rest.detail, sizeof(rest.detail), "packets not logged one by one");
	return aggregate_insert(aggregate, &key, true, &rest, packets);
}
