/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the audit log's writer does, and what readers and indexes cost it: processor time for a row in batches, with and
 * without each index in turn, and how long the commit of one row takes, alone and while a reader goes through the whole
 * log over and over. The machine may be shared: each index's figure is the median of its ratios to the run with all of
 * them that came just before. Files in AUDIT_BENCH_DIR (/var/tmp), removed at the end. Figures only: nothing is missed.
 */
#include "audit/query/query.h"
#include "audit/store/store.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 512
#define BATCHES 80
#define COMMITS 400
#define ROUNDS 7
/* Rows until a connection ends. */
#define CLOSE_AFTER 300

static char path[4096];
static uint64_t counter;

static double
now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void
die(const struct error *err)
{
	fprintf(stderr, "%s\n", err->text);
	exit(2);
}

/* The end of an earlier record, if that was of a connection that was let through. */
static void
add_close(struct store *store)
{
	uint64_t earlier = counter > CLOSE_AFTER ? counter - CLOSE_AFTER : 0;
	struct record record = {.kind = RECORD_FLOW_CLOSE,
	    .seq = 1ull << 40 | counter,
	    .close = {.id = RECORD_ID(1700000000u, earlier),
		.ts_us = 1700000000000000 + (int64_t)counter * 100,
		.bytes_out = 777,
		.bytes_in = 1600,
		.duration_us = 76000,
		.end = END_FIN}};
	struct error err;

	if (earlier == 0 || earlier % 3 == 0 || earlier % 10 == 0)
		return;
	if (store_add(store, &record, &err) < 0)
		die(&err);
}

/* Connections to many names, one in ten refused, one in three a query. */
static void
add(struct store *store)
{
	static const uint8_t guest[4] = {172, 16, 0, 2};
	const uint8_t address[4] = {93, (uint8_t)(counter % 7), (uint8_t)(counter % 200), 10};
	struct record record = {.kind = counter % 3 == 2 ? RECORD_DNS : RECORD_FLOW_OPEN, .seq = ++counter};
	bool denied = counter % 10 == 0;
	char name[64];
	int len = snprintf(name, sizeof(name), "host%d.site%d.example", (int)(counter % 5), (int)(counter * 7 % 4001));
	struct error err;

	if (record.kind == RECORD_DNS) {
		record.dns = (struct record_dns){.id = RECORD_ID(1700000000u, counter),
		    .sandbox = 1700000000000001 + (int64_t)(counter * 13 % 1000),
		    .ts_us = 1700000000000000 + (int64_t)counter * 100,
		    .count = 1,
		    .src = addr_from_ipv4(guest),
		    .server = addr_from_ipv4(guest),
		    .sport = 5353,
		    .qtype = 1,
		    .transport = 17,
		    .ede = UINT16_MAX,
		    .verdict = denied ? VERDICT_DENIED : VERDICT_ALLOWED,
		    .reason = denied ? REASON_NO_RULE : REASON_ALLOWED,
		    .qname_len = (uint16_t)len};
		memcpy(record.dns.qname, name, (size_t)len);
		snprintf(record.dns.answers, sizeof(record.dns.answers), "[\"A 93.184.216.34\"]");
	} else {
		record.flow = (struct record_flow){.id = RECORD_ID(1700000000u, counter),
		    .sandbox = 1700000000000001 + (int64_t)(counter * 13 % 1000),
		    .ts_us = 1700000000000000 + (int64_t)counter * 100,
		    .count = 1,
		    .src = addr_from_ipv4(guest),
		    .dst = addr_from_ipv4(address),
		    .sport = 40000,
		    .dport = 443,
		    .proto = 6,
		    .verdict = denied ? VERDICT_DENIED : VERDICT_ALLOWED,
		    .reason = denied ? REASON_SNI_MISMATCH : REASON_ALLOWED,
		    .name_source = NAME_SOURCE_SNI,
		    .end = denied ? END_REFUSED : END_OPEN,
		    .name_len = (uint16_t)len};
		memcpy(record.flow.name, name, (size_t)len);
		snprintf(record.flow.rule, sizeof(record.flow.rule), "allow *.example (task.yaml:7)");
	}
	if (store_add(store, &record, &err) < 0)
		die(&err);
}

static struct store *
open_store(void)
{
	struct store_opening opening;
	struct error err;
	struct store *store = store_open(path, &opening, &err);

	if (store == NULL || store_start_checkpoints(store, &err) < 0)
		die(&err);
	return store;
}

/* The writer's own processor time for each row and its end; waiting for the disk and for other processes does not
 * count. */
static double
cpu_us_a_row(struct store *store)
{
	double start = now_us(CLOCK_THREAD_CPUTIME_ID);
	struct error err;

	for (int i = 0; i < BATCHES; i++) {
		for (int j = 0; j < BATCH; j++) {
			add(store);
			add_close(store);
		}
		if (store_commit(store, &err) < 0)
			die(&err);
	}
	return (now_us(CLOCK_THREAD_CPUTIME_ID) - start) / (BATCH * BATCHES);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
show_commits(struct store *store, const char *what)
{
	static double took[COMMITS];
	struct error err;

	for (int i = 0; i < COMMITS; i++) {
		double start = now_us(CLOCK_MONOTONIC);

		add(store);
		if (store_commit(store, &err) < 0)
			die(&err);
		took[i] = now_us(CLOCK_MONOTONIC) - start;
	}
	qsort(took, COMMITS, sizeof(took[0]), compare);
	printf("%-56s p50 %7.0f us  p99 %7.0f us  most %7.0f us\n", what, took[COMMITS / 2], took[COMMITS * 99 / 100],
	    took[COMMITS - 1]);
	fflush(stdout);
}

/* Until it is ended. */
static pid_t
start_reader(void)
{
	const struct query_filter filter = {.kinds = 0};
	const struct query_row *row;
	pid_t pid = fork();

	while (pid == 0) {
		struct error err;
		struct query *query = query_open(path, &err);

		if (query == NULL || query_start(query, &filter, &err) < 0)
			die(&err);
		while (query_next(query, &row, &err) == 1)
			;
		query_close(query);
	}
	return pid;
}

static void
drop(const char *name)
{
	char sql[128];
	sqlite3 *db;

	snprintf(sql, sizeof(sql), "DROP INDEX %s", name);
	if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void
remove_files(void)
{
	static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
	char name[4200];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
	counter = 0;
}

/* Processor time for a row in a fresh database without these indexes. They go when it is open: opening makes them anew.
 */
static double
cpu_us_without(const char *const *names)
{
	struct store *store = open_store();
	double took;

	for (; *names != NULL; names++)
		drop(*names);
	took = cpu_us_a_row(store);
	store_close(store);
	remove_files();
	return took;
}

#define INDEXES_MAX 13

/* What only questions need stands first. */
static const struct {
	const char *what, *names[INDEXES_MAX];
} without[] = {
    {"domains", {"connections_domain", "dns_domain"}},
    {"addresses dialled", {"connections_dst"}},
    {"refused rows", {"connections_reason", "dns_reason"}},
    {"names", {"connections_name", "dns_name"}},
    {"sandboxes", {"connections_sandbox", "dns_sandbox"}},
    {"time", {"connections_ts", "dns_ts"}},
    {"domains, addresses and refused rows",
	{"connections_domain", "dns_domain", "connections_dst", "connections_reason", "dns_reason"}},
    {"all of these",
	{"connections_domain", "dns_domain", "connections_dst", "connections_reason", "dns_reason", "connections_name",
	    "dns_name", "connections_sandbox", "dns_sandbox", "connections_ts", "dns_ts"}},
};
#define WITHOUT (sizeof(without) / sizeof(without[0]))

static void
show_indexes(void)
{
	static const char *const none[] = {NULL};
	double all[WITHOUT * ROUNDS], ratio[WITHOUT][ROUNDS], typical;

	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < WITHOUT; i++) {
			double with = cpu_us_without(none);

			all[round * WITHOUT + i] = with;
			ratio[i][round] = cpu_us_without(without[i].names) / with;
		}
	}
	qsort(all, WITHOUT * ROUNDS, sizeof(all[0]), compare);
	typical = all[WITHOUT * ROUNDS / 2];
	printf("%-56s %10.1f us of processor time a row\n", "batches of 512 rows, every index", typical);
	for (size_t i = 0; i < WITHOUT; i++) {
		qsort(ratio[i], ROUNDS, sizeof(ratio[i][0]), compare);
		printf("  the indexes of %-41s %10.1f us of them (%.0f to %.0f %%)\n", without[i].what,
		    typical * (1 - ratio[i][ROUNDS / 2]), 100 * (1 - ratio[i][ROUNDS - 1]), 100 * (1 - ratio[i][0]));
	}
	fflush(stdout);
}

int
main(void)
{
	const char *dir = getenv("AUDIT_BENCH_DIR");
	struct store *store;
	pid_t reader;

	snprintf(path, sizeof(path), "%s/postern-writer-bench.db", dir == NULL ? "/var/tmp" : dir);
	remove_files();
	show_indexes();
	store = open_store();
	cpu_us_a_row(store);
	show_commits(store, "commit of one row, nobody reads");
	reader = start_reader();
	show_commits(store, "commit of one row, a reader in a loop");
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	show_commits(store, "commit of one row, nobody reads any more");
	store_close(store);
	remove_files();
	return 0;
}
