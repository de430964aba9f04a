/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long the usual questions to a large audit log take. Makes a file of AUDIT_BENCH_ROWS rows (1000000) in
 * AUDIT_BENCH_DIR (/var/tmp), 1,000 sandboxes and 30 days, asks it, and removes it; AUDIT_BENCH_KEEP=1 keeps it. Each
 * question is asked once cold (the file dropped from the page cache) and then warm. Exits with 1 when a warm one took
 * more than a second; those that no index leads to are shown without that. */
#include "tests/bench/audit_fill.h"

#include "audit/query/query.h"
#include "audit/query/stats.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUESTION_MS_MAX 1000.0

static bool missed;

static double
clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1e6;
}

static double
now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* Out of the page cache. */
static void
chill(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static void
die(const struct error *err)
{
	fprintf(stderr, "%s\n", err->text);
	exit(2);
}

struct question {
	const char *what;
	struct query_term terms[3];
	size_t count;
	int64_t since_us, until_us;
	uint64_t last;
	bool follow;
	unsigned int kinds;
	bool unled; /* no index leads to the rows: all of the time are read */
};

/* Milliseconds from opening the file to its last row. */
static double
ask(const char *path, const struct question *question, uint64_t *ret_rows)
{
	struct query_filter filter = {.kinds = question->kinds,
	    .terms = question->terms,
	    .term_count = question->count,
	    .since_us = question->since_us,
	    .until_us = question->until_us,
	    .last = question->last,
	    .will_follow = question->follow};
	const struct query_row *row;
	double start = now_ms();
	struct query *query;
	struct error err;
	int rc;

	*ret_rows = 0;
	query = query_open(path, &err);
	if (query == NULL || query_start(query, &filter, &err) < 0)
		die(&err);
	while ((rc = query_next(query, &row, &err)) == 1)
		++*ret_rows;
	if (rc == 0 && question->follow)
		while ((rc = query_follow(query, &row, &err)) == 1)
			++*ret_rows;
	if (rc < 0)
		die(&err);
	query_close(query);
	return now_ms() - start;
}

/* cpu: of the warm one; what it takes where nobody else wants the processor. */
static void
show_took(const char *what, uint64_t rows, double cold, double warm, double cpu, bool led)
{
	bool slow = led && warm > QUESTION_MS_MAX;

	printf("%-48s %7" PRIu64 " rows %8.1f ms cold %7.1f ms warm (%7.1f ms of processor time)%s\n", what, rows, cold,
	    warm, cpu,
	    slow      ? "  MISSED"
		: led ? ""
		      : "  no index");
	fflush(stdout);
	missed = missed || slow;
}

static void
show(const char *path, const struct question *question)
{
	uint64_t rows;
	double cold, warm, cpu;

	chill(path);
	cold = ask(path, question, &rows);
	ask(path, question, &rows);
	cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
	warm = ask(path, question, &rows);
	cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	show_took(question->what, rows, cold, warm, cpu, !question->unled);
}

static void
take_row(const struct stats_row *row, void *context)
{
	(void)row;
	++*(uint64_t *)context;
}

/* The other two questions: who talked most on a day, and that day's totals. */
static double
ask_sums(const char *path, bool top, enum stats_group group, uint64_t *ret_rows)
{
	const int64_t day = FILL_START_US + 20 * FILL_DAY_US;
	const struct query_filter filter = {.since_us = day, .until_us = day + FILL_DAY_US};
	double start = now_ms();
	struct query *query;
	struct stats stats;
	struct error err;

	*ret_rows = 0;
	query = query_open(path, &err);
	if (query == NULL || query_start(query, &filter, &err) < 0)
		die(&err);
	if (top && stats_top(query, group, STATS_BY_BYTES, 20, take_row, ret_rows, &err) < 0)
		die(&err);
	if (!top && stats_read(query, 0, &stats, &err) < 0)
		die(&err);
	if (!top) {
		*ret_rows = stats.step_count;
		stats_free(&stats);
	}
	query_close(query);
	return now_ms() - start;
}

static void
show_sums(const char *path, const char *what, bool top, enum stats_group group)
{
	uint64_t rows;
	double cold, warm, cpu;

	chill(path);
	cold = ask_sums(path, top, group, &rows);
	cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
	warm = ask_sums(path, top, group, &rows);
	cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	show_took(what, rows, cold, warm, cpu, true);
}

static struct query_term
host_term(const char *text, bool below)
{
	struct query_term term = {.field = QUERY_FIELD_HOST, .below = below};

	name_canonical(text, strlen(text), &term.name);
	return term;
}

static struct query_term
ip_term(const char *text)
{
	struct query_term term = {.field = QUERY_FIELD_IP};

	if (!addr_prefix_parse(text, strlen(text), &term.prefix))
		abort();
	return term;
}

static void
ask_all(const char *path)
{
	char busiest[32];
	const struct query_term denied = {.field = QUERY_FIELD_DENIED, .low = 1, .high = INT64_MAX};
	const struct query_term ech = {.field = QUERY_FIELD_REASON, .low = REASON_ECH, .high = REASON_ECH};
	const struct query_term mismatch = {
	    .field = QUERY_FIELD_REASON, .low = REASON_SNI_MISMATCH, .high = REASON_SNI_MISMATCH};
	const struct query_term sandbox = {.field = QUERY_FIELD_SANDBOX, .text = busiest};
	const struct query_term label = {.field = QUERY_FIELD_LABEL, .text = "team", .value = "t7"};
	const int64_t day = FILL_START_US + 20 * FILL_DAY_US, hour = FILL_DAY_US / 24;
	const struct question questions[] = {
	    {.what = "one sandbox's busy hour",
		.terms = {sandbox},
		.count = 1,
		.since_us = day,
		.until_us = day + hour},
	    {.what = "one sandbox's day",
		.terms = {sandbox},
		.count = 1,
		.since_us = day,
		.until_us = day + FILL_DAY_US},
	    {.what = "the last 50", .last = 50},
	    {.what = "-f: the last 200 and what follows", .last = 200, .follow = true},
	    {.what = "the last 50 denials", .terms = {denied}, .count = 1, .last = 50},
	    {.what = "all denials of a day",
		.terms = {denied},
		.count = 1,
		.since_us = day,
		.until_us = day + FILL_DAY_US},
	    {.what = "all denials of a popular name",
		.terms = {host_term("host0.site0.example", false), denied},
		.count = 2},
	    {.what = "all denials of a name always refused",
		.terms = {host_term("host0.site9.example", false), denied},
		.count = 2},
	    {.what = "all of a rare name", .terms = {host_term("host4.site3999.example", false)}, .count = 1},
	    {.what = "a name that nobody asked for", .terms = {host_term("no.such.example", false)}, .count = 1},
	    {.what = "all below a rare domain", .terms = {host_term("site3990.example", true)}, .count = 1},
	    {.what = "the last 200 below a popular domain",
		.terms = {host_term("site1.example", true)},
		.count = 1,
		.last = 200},
	    {.what = "connections to one address",
		.terms = {ip_term("93.10.0.10")},
		.count = 1,
		.kinds = QUERY_CONNECTION},
	    {.what = "connections to an address that nobody dialled",
		.terms = {ip_term("9.9.9.9")},
		.count = 1,
		.kinds = QUERY_CONNECTION},
	    {.what = "connections into a /24",
		.terms = {ip_term("96.10.0.0/24")},
		.count = 1,
		.kinds = QUERY_CONNECTION},
	    {.what = "connections into a /48 of IPv6, last 200",
		.terms = {ip_term("2606:4700:8::/48")},
		.count = 1,
		.kinds = QUERY_CONNECTION,
		.last = 200},
	    {.what = "one address, queries, too, a day",
		.terms = {ip_term("93.10.0.10")},
		.count = 1,
		.since_us = day,
		.until_us = day + FILL_DAY_US},
	    {.what = "one address, queries, too, 30 days", .terms = {ip_term("93.10.0.10")}, .count = 1, .unled = true},
	    {.what = "a reason that never came", .terms = {ech}, .count = 1},
	    {.what = "a frequent reason, last 200", .terms = {mismatch}, .count = 1, .last = 200},
	    {.what = "a label's sandboxes, an hour",
		.terms = {label},
		.count = 1,
		.since_us = day,
		.until_us = day + hour},
	    {.what = "a label's denials of a name, a day",
		.terms = {label, host_term("host0.site9.example", false), denied},
		.count = 3,
		.since_us = day,
		.until_us = day + FILL_DAY_US},
	};

	/* As fill_sandbox chooses. */
	snprintf(busiest, sizeof(busiest), "task%d", (int)(day / hour * 37 % FILL_SANDBOXES));
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		show(path, &questions[i]);
	show_sums(path, "top talkers of a day, by name", true, STATS_GROUP_NAME);
	show_sums(path, "top talkers of a day, by sandbox", true, STATS_GROUP_SANDBOX);
	show_sums(path, "totals of a day", false, STATS_GROUP_NAME);
}

int
main(void)
{
	const char *dir = getenv("AUDIT_BENCH_DIR"), *rows_text = getenv("AUDIT_BENCH_ROWS");
	uint64_t rows = rows_text == NULL ? 1000000 : strtoull(rows_text, NULL, 10);
	char path[4096];
	struct stat st;
	double start = now_ms();

	snprintf(path, sizeof(path), "%s/postern-audit-bench.db", dir == NULL ? "/var/tmp" : dir);
	if (stat(path, &st) < 0) {
		fill_make(path, rows);
		if (stat(path, &st) < 0)
			return 2;
		printf("%" PRIu64 " rows, %.1f GB, made in %.0f s\n", rows, (double)st.st_size / 1e9,
		    (now_ms() - start) / 1000);
	}
	ask_all(path);
	if (getenv("AUDIT_BENCH_KEEP") == NULL) {
		char beside[4200];

		unlink(path);
		snprintf(beside, sizeof(beside), "%s-wal", path);
		unlink(beside);
		snprintf(beside, sizeof(beside), "%s-shm", path);
		unlink(beside);
	}
	return missed ? 1 : 0;
}
