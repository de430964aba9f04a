/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much one sandbox may ask: queries a second, and fresh name bytes that reach a name server (tunnelling).
 *
 * Below an allowed wildcard a guest can write data into the labels of names that it makes up; the zone's servers read
 * them (CASES C-21). Names asked for again carry nothing new and cost nothing. */
#ifndef POSTERN_GATEWAY_DNS_BUDGET_H
#define POSTERN_GATEWAY_DNS_BUDGET_H

#include "base/loop.h"
#include "gateway/path/dns/dns_asker.h"
#include "policy/names/name.h"
#include "policy/reason.h"

#include <stdbool.h>
#include <stdint.h>

/* Queries a second, and how many at once after a pause: far above any program, below what would fill the log's
 * queue. */
#define DNS_BUDGET_QUERIES_S 4000
#define DNS_BUDGET_QUERIES 8000
/* Bytes of names not seen lately that may go upstream: a browser needs 2 to 6 KB for a large page. */
#define DNS_BUDGET_NAME_BYTES_S 256
#define DNS_BUDGET_NAME_BYTES 32768
/* Names remembered as seen (by hash, newest in its slot). */
#define DNS_BUDGET_SEEN 1024
/* Queries over the rate, and what is none, are counted in one record of their kind in this time. */
#define DNS_BUDGET_RECORD_MS 1000

struct dns_server;

/* What is counted instead of listed, each kind for itself. */
enum dns_over_kind {
	DNS_OVER_RATE,     /* beyond the rate */
	DNS_OVER_NO_QUERY, /* no query at all: never answered */
	DNS_OVER_NO_ROOM,  /* the log is out, and the recorder keeps the rest of its room for what is open */
	DNS_OVER_MAX
};

/* What each kind is answered with, and how it is recorded. */
struct dns_over_answer {
	enum verdict verdict;
	enum reason reason;
	uint16_t rcode; /* enum dns_rcode */
	uint16_t ede;   /* DNS_EDE_* */
};
extern const struct dns_over_answer dns_budget_answers[DNS_OVER_MAX];

struct dns_over {
	uint64_t count;         /* not yet recorded */
	const char *why;        /* static text */
	struct dns_asker asker; /* of the last one */
};

struct dns_budget {
	struct dns_server *server;
	int64_t refilled_ms;   /* clock_mono_ms */
	int64_t queries_milli; /* thousandths of a query left */
	int64_t name_bytes_milli;
	uint32_t seen[DNS_BUDGET_SEEN];
	struct dns_over over[DNS_OVER_MAX];
	struct loop_timer timer;
};

/* 0 or -EIO. */
int dns_budget_init(struct dns_budget *budget, struct dns_server *server);
/* Record what is still counted, whether or not the auditor is ready; stop the timer. */
void dns_budget_close(struct dns_budget *budget);

/* May one more query be looked at? False: refuse it, and tell dns_budget_over. */
bool dns_budget_query(struct dns_budget *budget);
/* Messages that get no record of their own: they are counted in their kind's next one. why: static text. */
void dns_budget_over(
    struct dns_budget *budget, enum dns_over_kind kind, const struct dns_asker *asker, uint64_t count, const char *why);
/* More than DNS_BUDGET_QUERIES_S. */
extern const char dns_budget_why[];
/* May this name go upstream? */
bool dns_budget_name(struct dns_budget *budget, const struct name *name);

#endif
