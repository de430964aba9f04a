/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What evidence costs: writing a log with its chain and seals, and verifying it. Prints figures beside what they ought
 * to be; exits with 1 when one is missed. Not a test: a busy machine may miss them.
 *
 *   audit_bench [DIR]   where the log is made, and removed; default /var/tmp */
#include "audit/store/store.h"
#include "audit/columns.h"
#include "audit/seal/verify.h"

#include "base/clock.h"
#include "tests/bench/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Connections, each opened and closed: two records, two links, one row. */
#define CONNECTIONS 50000
/* Records in a commit: of a busy gateway's. */
#define BATCH 256

/* Of processor time, which a busy machine does not change much. */
#define RECORD_US_MAX 60
#define VERIFY_US_MAX 20

static struct record
record_open(uint64_t counter)
{
	struct record record = {.kind = RECORD_FLOW_OPEN, .seq = counter};
	const uint8_t src[4] = {172, 16, 0, 2}, dst[4] = {45, 45, (uint8_t)(counter >> 8), (uint8_t)counter};
	struct record_flow *flow = &record.flow;

	flow->id = RECORD_ID(1700000000ull, counter);
	flow->sandbox = 1700000000000001 + (int64_t)(counter % 100);
	flow->ts_us = 1700000000000000 + (int64_t)counter * 1000;
	flow->count = 1;
	flow->src = addr_from_ipv4(src);
	flow->dst = addr_from_ipv4(dst);
	flow->sport = (uint16_t)(20000 + counter % 40000);
	flow->dport = 443;
	flow->proto = 6;
	flow->name_source = NAME_SOURCE_SNI;
	flow->generation = 1;
	flow->name_len = (uint16_t)snprintf(
	    (char *)flow->name, sizeof(flow->name), "host%llu.example.com", (unsigned long long)(counter % 5000));
	snprintf(flow->rule, sizeof(flow->rule), "allow *.example.com (task.yaml:7)");
	snprintf(flow->alpn, sizeof(flow->alpn), "h2,http/1.1");
	return record;
}

static struct record
record_close(uint64_t counter)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE, .seq = counter};

	record.close.id = RECORD_ID(1700000000ull, counter);
	record.close.ts_us = 1700000000000000 + (int64_t)counter * 1000 + 500;
	record.close.bytes_out = counter;
	record.close.bytes_in = counter * 7;
	record.close.duration_us = 500;
	record.close.end = END_FIN;
	return record;
}

static void
write_records(struct store *store)
{
	struct error err;

	for (uint64_t i = 1; i <= CONNECTIONS; i++) {
		struct record opened = record_open(i), closed = record_close(i);

		if (store_add(store, &opened, &err) < 0 || store_add(store, &closed, &err) < 0)
			fail("%s", err.text);
		if (2 * i % BATCH == 0 && store_commit(store, &err) < 0)
			fail("%s", err.text);
	}
	if (store_seal(store, true, &err) < 0 || store_commit(store, &err) < 0)
		fail("%s", err.text);
}

static double
cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void
write_bench(const char *path, const struct seal_signer *signer)
{
	struct store_opening opening;
	struct error err;
	struct store *store = store_open(path, &opening, &err);
	int64_t start_us;
	double start_cpu_us;

	if (store == NULL || store_start_checkpoints(store, &err) < 0)
		fail("%s", err.text);
	store_set_signer(store, signer);
	start_us = clock_mono_us();
	start_cpu_us = cpu_us();
	write_records(store);
	show("record, linked and sealed, written and synced", (double)(clock_mono_us() - start_us) / (2 * CONNECTIONS),
	    "us", 0);
	show("  of it processor time", (cpu_us() - start_cpu_us) / (2 * CONNECTIONS), "us", RECORD_US_MAX);
	store_close(store);
}

static void
verify_bench(const char *path, const struct seal_signer *signer)
{
	const struct verify_options options = {.keys = &signer->key, .key_count = 1};
	struct verify_result result;
	struct error err;
	int64_t start_us = clock_mono_us(), us;
	double start_cpu_us = cpu_us(), used_us;

	if (verify_run(path, &options, &result, &err) < 0)
		fail("%s", err.text);
	us = clock_mono_us() - start_us;
	used_us = cpu_us() - start_cpu_us;
	if (result.fault_count > 0 || result.links != 2 * CONNECTIONS)
		fail("the log does not verify: %s", result.first.text);
	show("verify, a link and half a row", (double)us / (double)result.links, "us", 0);
	show("  of it processor time", used_us / (double)result.links, "us", VERIFY_US_MAX);
	show("  rows in a second of it", (double)result.rows[COLUMNS_CONNECTIONS] * 1e6 / used_us, "", 0);
	show("  seals", (double)result.seals, "", 0);
}

int
main(int argc, char **argv)
{
	char dir[4096], path[sizeof(dir) + 16];
	struct seal_signer signer;
	struct error err;
	bool made;

	snprintf(dir, sizeof(dir), "%s/postern-audit-bench-XXXXXX", argc > 1 ? argv[1] : "/var/tmp");
	if (mkdtemp(dir) == NULL)
		fail("%s cannot be made", dir);
	snprintf(path, sizeof(path), "%s/seal.key", dir);
	if (seal_signer_load(&signer, path, &made, &err) < 0)
		fail("%s", err.text);
	snprintf(path, sizeof(path), "%s/audit.db", dir);
	write_bench(path, &signer);
	verify_bench(path, &signer);
	seal_signer_free(&signer);
	for (const char *const *name = (const char *const[]){"audit.db", "audit.db-wal", "audit.db-shm",
		 "audit.db.lock", "seal.key", "seal.key.pub", NULL};
	     *name != NULL; name++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *name);
		unlink(path);
	}
	rmdir(dir);
	return missed;
}
