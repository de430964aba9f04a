/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a large policy costs: reading, compiling, opening, deciding. Prints figures beside what they ought to be; exits
 * with 1 when one is missed. Not a test: a busy machine may miss them. */
#include "policy/compiled/snapshot.h"

#include "base/clock.h"
#include "tests/bench/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RULES 100000
/* Decisions that are timed together, so that the clock costs nothing, and how many such batches. */
#define BATCH 16
#define BATCHES 20000

#define COMPILE_MS_MAX 1000
#define DECISION_NS_MAX 1000

/* Hosts, wildcards and subtrees below 997 domains, a tenth of them denied. */
static char *
text_make(size_t *ret_len)
{
	static const char *const forms[] = {"host: host%u.site%u.example", "host: '*.host%u.site%u.example'",
	    "{host: host%u.site%u.example, subdomains: true}"};
	size_t size = (size_t)RULES * 80 + 64, len = 0;
	char *text = malloc(size);

	if (text == NULL)
		fail("no memory");
	len += (size_t)snprintf(text, size, "version: 1\nallow:\n");
	for (unsigned int i = 0; i < RULES; i++) {
		if (i == RULES / 10 * 9)
			len += (size_t)snprintf(text + len, size - len, "deny:\n");
		len += (size_t)snprintf(text + len, size - len, "  - ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len += (size_t)snprintf(text + len, size - len, forms[i % 3], i, i % 997);
#pragma GCC diagnostic pop
		len += (size_t)snprintf(text + len, size - len, "\n");
	}
	*ret_len = len;
	return text;
}

static struct snapshot *
compile_bench(const struct policy *policy)
{
	int64_t start_us = clock_mono_us(), compiled_us, opened_us;
	struct snapshot *snapshot;
	struct error err;
	struct stat st;
	int fd = snapshot_compile(policy, &err);

	if (fd < 0)
		fail("%s", err.text);
	compiled_us = clock_mono_us();
	snapshot = snapshot_open(fd, &err);
	if (snapshot == NULL)
		fail("%s", err.text);
	opened_us = clock_mono_us();
	if (fstat(fd, &st) < 0)
		fail("fstat");
	close(fd);
	show("compile", (double)(compiled_us - start_us) / 1000, "ms", COMPILE_MS_MAX);
	show("map and verify, in each role", (double)(opened_us - compiled_us) / 1000, "ms", 0);
	show("block, shared by all that map it", (double)st.st_size / (1 << 20), "MiB", 0);
	return snapshot;
}

static int
number_compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Names that hit and miss at several depths, in a row that the processor cannot foresee. */
static void
names_make(struct name names[BATCH], unsigned int *seed)
{
	static const char *const forms[] = {
	    "host%u.site%u.example", "a.host%u.site%u.example", "a.b.c.host%u.site%u.example", "www%u.other%u.example"};
	char text[128];

	for (size_t i = 0; i < BATCH; i++) {
		unsigned int n = (unsigned int)rand_r(seed) % RULES;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), forms[(unsigned int)rand_r(seed) % 4], n, n % 997);
#pragma GCC diagnostic pop
		if (name_canonical(text, strlen(text), &names[i]) != NAME_OK)
			fail("%s", text);
	}
}

enum question { QUESTION_HOST, QUESTION_DNS, QUESTION_PORTS };

static int64_t
batch_time(const struct snapshot *s, const struct name names[BATCH], enum question question, size_t *allowed)
{
	struct proto_port ports[RULE_HOST_PORTS_MAX];
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (size_t i = 0; i < BATCH; i++) {
		switch (question) {
		case QUESTION_HOST:
			*allowed += snapshot_decide_host(s, &names[i], IPPROTO_TCP, 443, 1).verdict == VERDICT_ALLOWED;
			break;
		case QUESTION_DNS:
			*allowed += snapshot_ports_any(s, &names[i], 1).verdict == VERDICT_ALLOWED;
			break;
		case QUESTION_PORTS:
			*allowed += snapshot_ports_list(s, &names[i], ports, RULE_HOST_PORTS_MAX, 1) > 0;
			break;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec) / BATCH;
}

static void
decide_bench(const struct snapshot *s, enum question question, const char *what, double most_ns)
{
	static int64_t times_ns[BATCHES];
	struct name names[BATCH];
	unsigned int seed = 1;
	size_t allowed = 0;
	char label[64];

	for (size_t i = 0; i < BATCHES; i++) {
		names_make(names, &seed);
		times_ns[i] = batch_time(s, names, question, &allowed);
	}
	qsort(times_ns, BATCHES, sizeof(times_ns[0]), number_compare);
	snprintf(label, sizeof(label), "%s, median", what);
	show(label, (double)times_ns[BATCHES / 2], "ns", most_ns);
	snprintf(label, sizeof(label), "%s, 99 %%", what);
	show(label, (double)times_ns[BATCHES / 100 * 99], "ns", 0);
	if (allowed == 0 || allowed == (size_t)BATCHES * BATCH)
		fail("%s: the names test nothing", what);
}

int
main(void)
{
	struct policy policy;
	struct snapshot *snapshot;
	struct error err;
	int64_t start_us;
	size_t len;
	char *text = text_make(&len);

	printf("%d rules for hosts\n", RULES);
	start_us = clock_mono_us();
	if (policy_parse(text, len, "bench.yaml", &policy, &err) < 0)
		fail("%s", err.text);
	show("read the text", (double)(clock_mono_us() - start_us) / 1000, "ms", 0);
	free(text);
	snapshot = compile_bench(&policy);
	policy_free(&policy);
	decide_bench(snapshot, QUESTION_HOST, "decide a name and port", DECISION_NS_MAX);
	decide_bench(snapshot, QUESTION_DNS, "decide a DNS question", 0);
	decide_bench(snapshot, QUESTION_PORTS, "list a name's ports", 0);
	snapshot_free(snapshot);
	return missed ? 1 : 0;
}
