/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/dns/dns_budget.h"

#include "base/clock.h"
#include "gateway/path/dns/dns_query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Per process, so that a guest cannot choose names that share a slot with others. */
static uint32_t budget_key;

#define BUDGET_TEXT(number) BUDGET_WORD(number)
#define BUDGET_WORD(number) #number
const char dns_budget_why[] = "more than " BUDGET_TEXT(DNS_BUDGET_QUERIES_S) " queries a second";

const struct dns_over_answer dns_budget_answers[] = {
    [DNS_OVER_RATE] = {VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_REFUSED, DNS_EDE_BLOCKED},
    [DNS_OVER_NO_QUERY] = {VERDICT_DENIED, REASON_DNS_DENIED, DNS_REFUSED, DNS_EDE_NONE},
    [DNS_OVER_NO_ROOM] = {VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, DNS_SERVFAIL, DNS_EDE_NOT_READY},
};

/* Sends the record of a kind, if it counts anything; keeps the count when there is no room. */
static void
budget_record(struct dns_budget *budget, enum dns_over_kind kind)
{
	const struct dns_over_answer *answer = &dns_budget_answers[kind];
	struct dns_over *over = &budget->over[kind];
	struct sandbox *sandbox = budget->server->sandbox;
	struct record record;
	struct record_dns *dns = &record.dns;

	if (over->count == 0)
		return;
	dns_finish_fill_record(sandbox, &over->asker, &record);
	dns->count = over->count;
	dns->verdict = (uint8_t)answer->verdict;
	dns->reason = (uint8_t)answer->reason;
	dns->rcode = (uint8_t)answer->rcode;
	dns->ede = answer->ede;
	snprintf(dns->answers, sizeof(dns->answers), "[]");
	snprintf(dns->detail, sizeof(dns->detail), "%s", over->why);
	if (balance_send(sandbox->balance, &record, 0, NULL) == 0)
		over->count = 0;
}

/* True when all is recorded. */
static bool
budget_record_all(struct dns_budget *budget)
{
	uint64_t left = 0;

	for (enum dns_over_kind kind = 0; kind < DNS_OVER_MAX; kind++) {
		budget_record(budget, kind);
		left += budget->over[kind].count;
	}
	return left == 0;
}

/* Records what was counted; tries again later while the log takes nothing. */
static void
budget_timer_handler(struct loop_timer *timer)
{
	struct dns_budget *budget = loop_owner(timer, struct dns_budget, timer);

	if (!recorder_ready(&budget->server->sandbox->gateway->recorder) || !budget_record_all(budget))
		loop_timer_set(budget->server->sandbox->gateway->loop, timer, DNS_BUDGET_RECORD_MS);
}

/* syscalls: getrandom */
int
dns_budget_init(struct dns_budget *budget, struct dns_server *server)
{
	if (budget_key == 0 && getrandom(&budget_key, sizeof(budget_key), 0) != (ssize_t)sizeof(budget_key))
		return -EIO;
	memset(budget, 0, sizeof(*budget));
	budget->server = server;
	budget->refilled_ms = clock_mono_ms();
	budget->queries_milli = (int64_t)DNS_BUDGET_QUERIES * 1000;
	budget->name_bytes_milli = (int64_t)DNS_BUDGET_NAME_BYTES * 1000;
	budget->timer.handler = budget_timer_handler;
	return 0;
}

void
dns_budget_close(struct dns_budget *budget)
{
	(void)budget_record_all(budget);
	loop_timer_stop(budget->server->sandbox->gateway->loop, &budget->timer);
}

/* The smaller one. */
static int64_t
budget_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Adds to both buckets what the time since the last call is worth. */
static void
budget_refill(struct dns_budget *budget)
{
	int64_t now_ms = clock_mono_ms();
	/* Longer pauses fill every bucket; the bound keeps the products small. */
	int64_t passed_ms = budget_min(now_ms - budget->refilled_ms, 3600 * 1000);

	if (passed_ms <= 0)
		return;
	budget->refilled_ms = now_ms;
	budget->queries_milli =
	    budget_min((int64_t)DNS_BUDGET_QUERIES * 1000, budget->queries_milli + passed_ms * DNS_BUDGET_QUERIES_S);
	budget->name_bytes_milli = budget_min(
	    (int64_t)DNS_BUDGET_NAME_BYTES * 1000, budget->name_bytes_milli + passed_ms * DNS_BUDGET_NAME_BYTES_S);
}

bool
dns_budget_query(struct dns_budget *budget)
{
	budget_refill(budget);
	if (budget->queries_milli < 1000)
		return false;
	budget->queries_milli -= 1000;
	return true;
}

void
dns_budget_over(
    struct dns_budget *budget, enum dns_over_kind kind, const struct dns_asker *asker, uint64_t count, const char *why)
{
	struct dns_over *over = &budget->over[kind];

	over->why = why;
	over->count += count;
	over->asker = *asker;
	if (!loop_timer_armed(&budget->timer))
		loop_timer_set(budget->server->sandbox->gateway->loop, &budget->timer, DNS_BUDGET_RECORD_MS);
}

/* A keyed hash of the name, never 0. */
static uint32_t
name_hash(const struct name *name)
{
	uint32_t h = 2166136261u ^ budget_key;

	for (size_t i = 0; i < name->len; i++)
		h = (h ^ (uint8_t)name->text[i]) * 16777619u;
	h = (h ^ h >> 15) * 2246822519u;
	h ^= h >> 13;
	return h == 0 ? 1 : h; /* 0 is an empty slot */
}

bool
dns_budget_name(struct dns_budget *budget, const struct name *name)
{
	uint32_t hash = name_hash(name);
	uint32_t *slot = &budget->seen[hash % DNS_BUDGET_SEEN];

	if (*slot == hash)
		return true;
	budget_refill(budget);
	if (budget->name_bytes_milli < (int64_t)name->len * 1000)
		return false;
	budget->name_bytes_milli -= (int64_t)name->len * 1000;
	*slot = hash;
	return true;
}
