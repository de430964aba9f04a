/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/tally.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally_entry {
	struct tally_entry *next_in_bucket;
	struct tally_key key;
	bool rest;            /* the class's row without addresses */
	bool dirty;           /* count or last_us are newer than what was sent */
	int64_t last_mono_ms; /* last packet, for forgetting */
	uint64_t sent;        /* the count that was sent last */
	struct record_flow flow;
};

/* The key is hashed and compared as bytes. */
static_assert(sizeof(struct tally_key) == 2 * sizeof(struct addr) + 4, "struct tally_key must have no padding");

static struct tally_entry **
tally_bucket(struct tally *tally, const struct tally_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 2166136261u; /* FNV-1a: the table is bounded, a guest that makes it collide slows only itself */

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return &tally->buckets[hash % TALLY_BUCKETS];
}

static struct tally_entry *
tally_find(struct tally *tally, const struct tally_key *key, bool rest)
{
	for (struct tally_entry *e = *tally_bucket(tally, key); e != NULL; e = e->next_in_bucket)
		if (e->rest == rest && memcmp(&e->key, key, sizeof(*key)) == 0)
			return e;
	return NULL;
}

/* While the auditor cannot take records the entry stays dirty: it keeps counting and loses nothing. */
static void
tally_send(struct tally *tally, struct tally_entry *entry, bool force)
{
	struct record record = {.kind = RECORD_REFUSED};

	if (!force && !recorder_ready(tally->account->recorder))
		return;
	record.flow = entry->flow;
	if (account_send(tally->account, &record, entry->sent, NULL) < 0)
		return;
	entry->sent = entry->flow.count;
	entry->dirty = false;
}

static void
tally_drop(struct tally *tally, struct tally_entry **at)
{
	struct tally_entry *entry = *at;

	*at = entry->next_in_bucket;
	if (!entry->rest)
		tally->counts[entry->key.class]--;
	free(entry);
}

static void
tally_timer_handler(struct loop_timer *timer)
{
	struct tally *tally = loop_owner(timer, struct tally, timer);
	int64_t now_ms = clock_mono_ms();
	bool left = false;

	for (size_t i = 0; i < TALLY_BUCKETS; i++) {
		struct tally_entry **at = &tally->buckets[i];

		while (*at != NULL) {
			if ((*at)->dirty)
				tally_send(tally, *at, false);
			if (!(*at)->dirty && now_ms - (*at)->last_mono_ms >= TALLY_IDLE_MS) {
				tally_drop(tally, at);
				continue;
			}
			left = true;
			at = &(*at)->next_in_bucket;
		}
	}
	if (left)
		(void)loop_timer_set(tally->loop, timer, TALLY_FLUSH_MS); /* without memory: the next packet arms it */
}

static void
tally_arm(struct tally *tally)
{
	if (!loop_timer_armed(&tally->timer))
		(void)loop_timer_set(tally->loop, &tally->timer, TALLY_FLUSH_MS);
}

static void
tally_count(struct tally *tally, struct tally_entry *entry, uint64_t packets)
{
	entry->flow.count += packets;
	entry->flow.last_us = clock_real_us();
	entry->last_mono_ms = clock_mono_ms();
	entry->dirty = true;
	tally_arm(tally);
}

static int
tally_insert(
    struct tally *tally, const struct tally_key *key, bool rest, const struct record_flow *flow, uint64_t packets)
{
	struct tally_entry **at = tally_bucket(tally, key);
	struct tally_entry *entry = calloc(1, sizeof(*entry));

	if (entry == NULL)
		return -ENOMEM;
	entry->key = *key;
	entry->rest = rest;
	entry->flow = *flow;
	entry->flow.id = recorder_id(tally->account->recorder);
	entry->flow.ts_us = clock_real_us();
	entry->flow.count = 0;
	entry->next_in_bucket = *at;
	*at = entry;
	if (!rest)
		tally->counts[key->class]++;
	tally_count(tally, entry, packets);
	tally_send(tally, entry, false);
	return 0;
}

void
tally_init(struct tally *tally, struct loop *loop, struct account *account, size_t max)
{
	*tally = (struct tally){.loop = loop, .account = account, .max = max};
	tally->timer.handler = tally_timer_handler;
}

bool
tally_full(const struct tally *tally, uint8_t class)
{
	assert(class < TALLY_CLASSES_MAX);
	return tally->counts[class] >= tally->max;
}

void
tally_flush(struct tally *tally)
{
	for (size_t i = 0; i < TALLY_BUCKETS; i++)
		for (struct tally_entry *e = tally->buckets[i]; e != NULL; e = e->next_in_bucket)
			if (e->dirty)
				tally_send(tally, e, true);
}

void
tally_close(struct tally *tally)
{
	loop_timer_stop(tally->loop, &tally->timer);
	tally_flush(tally);
	for (size_t i = 0; i < TALLY_BUCKETS; i++)
		while (tally->buckets[i] != NULL)
			tally_drop(tally, &tally->buckets[i]);
}

bool
tally_bump(struct tally *tally, const struct tally_key *key, uint64_t packets)
{
	struct tally_entry *entry = tally_find(tally, key, false);

	if (entry == NULL)
		return false;
	tally_count(tally, entry, packets);
	return true;
}

int
tally_open(struct tally *tally, const struct tally_key *key, const struct record_flow *flow, uint64_t packets)
{
	if (tally_full(tally, key->class))
		return tally_rest(tally, key->class, flow, packets);
	return tally_insert(tally, key, false, flow, packets);
}

int
tally_rest(struct tally *tally, uint8_t class, const struct record_flow *flow, uint64_t packets)
{
	struct tally_key key = {.class = class};
	struct tally_entry *entry = tally_find(tally, &key, true);
	struct record_flow rest;

	if (entry != NULL) {
		tally_count(tally, entry, packets);
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
	return tally_insert(tally, &key, true, &rest, packets);
}
