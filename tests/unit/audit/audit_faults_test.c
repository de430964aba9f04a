/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. One fixed workload, run as the auditor runs the store (a failure: open anew if that is asked
 * for, probe, send again all that is not durable), once for each input/output call that can fail, each allocation, and
 * each write that the power can fail in. The database must then hold exactly one of the states that the workload passes
 * through without faults, whole batches, and none that is older than what was acknowledged; and the workload must go on
 * from there to its end. A storage fault is never a reason to set a database aside.
 *
 * All of them: POSTERN_TEST_LONG=1 (make test-long). Otherwise every so many, another residue for each kind of fault.
 */
#include "audit_fault_vfs.h"
#include "audit_fixture.h"

#include "audit/seal/verify.h"

#include <errno.h>

#define BATCHES 10
/* After this batch a reader's checkpoint, a full one, and an orderly reopening. */
#define BATCH_PASSIVE 3
#define BATCH_RESTART 5
#define BATCH_REOPEN 6
/* One batch in so many ends with a seal. */
#define BATCH_SEALED 3
#define BATCH_RECORDS_MAX 32
#define FLOWS 4
/* The auditor tries for ever; one fault that passes must not need more than this. */
#define TRIES_MAX 4
/* Steps in the normal suite: primes, so that different calls are met in each kind's run. */
#define STRIDE 31
#define STRIDE_MALLOC 499
#define STRIDE_POWER 17
/* The sanitizers' build takes so many times as long: it sees fewer. */
#define STRIDE_SANITIZE 12
#ifdef POSTERN_SANITIZE
#define RUNS_AT_LEAST(runs) 1
#else
#define RUNS_AT_LEAST(runs) (runs)
#endif

struct run {
	struct store *store;
	int acked;        /* batches that are durable, by store_commit's word */
	int tried;        /* batches that a commit was tried of */
	bool may_replace; /* and that may be: SQLite takes a page that was cut short for one that ends in zeroes, and
			   * builds on it; asked for is only that the log goes on */
};

static uint64_t expected[BATCHES + 1];
static struct seal_signer signer;

static int
stride(int normal)
{
#ifdef POSTERN_SANITIZE
	normal *= STRIDE_SANITIZE;
#endif
	return getenv("POSTERN_TEST_LONG") != NULL ? 1 : normal;
}

/* -- the workload ------------------------------------------------------------------------------------------------ */

static size_t
batch_flows(int batch, struct record *records)
{
	size_t n = 0;

	for (int i = 0; i < FLOWS; i++) {
		uint64_t counter = (uint64_t)(batch * 100 + i + 1);

		records[n++] = fixture_flow(counter, "files.github.com");
		if (batch > 0 && i % 2 == 0)
			records[n++] = fixture_close(counter - 100);
	}
	records[n++] = fixture_denied((uint64_t)(batch * 100 + 20), "\x01\xff bad", 6);
	/* One row that every batch counts on. */
	records[n] = fixture_denied(9999, "x", 1);
	records[n].kind = RECORD_REFUSED;
	records[n].flow.count = (uint64_t)batch + 1;
	records[n++].flow.last_us = FIXTURE_TS + batch;
	return n;
}

static size_t
batch_records(int batch, struct record *records)
{
	size_t n = 0;

	if (batch == 0)
		records[n++] = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	n += batch_flows(batch, records + n);
	for (int i = 0; i < 6; i++)
		records[n++] = fixture_dns((uint64_t)(batch * 100 + 30 + i), "registry.lab-a.com", 18);
	records[n++] = fixture_event((uint64_t)(batch * 100 + 50), EVENT_POLICY, "{\"change\":[\"+allow x.example\"]}");
	if (batch == BATCHES - 2) {
		records[n].kind = RECORD_GAP;
		records[n].gap = (struct record_gap){
		    .sender_epoch = FIXTURE_EPOCH, .ts_us = FIXTURE_TS + 9000000, .end = END_GATEWAY_CRASH};
		n++;
	}
	if (batch == BATCHES - 1) {
		records[n] = fixture_sandbox(FIXTURE_SANDBOX, "task1");
		records[n++].kind = RECORD_SANDBOX_END;
	}
	assert_true(n <= BATCH_RECORDS_MAX);
	return n;
}

/* FNV-1a of all that the rows say, except their change numbers: those depend on how often something was sent. */
static uint64_t
fingerprint(const char *path)
{
	static const char *const queries[] = {
	    "SELECT id, ts, last_ts, count, name, hex(name_raw), verdict, end, closed_ts, bytes_in FROM connections "
	    "ORDER BY id",
	    "SELECT id, count, qname, answers FROM dns ORDER BY id",
	    "SELECT id, kind, detail FROM events WHERE id / 2147483648 = 1700000000 ORDER BY id",
	    "SELECT id, name, attached_ts, detached_ts FROM sandboxes ORDER BY id",
	};
	uint64_t hash = 0xcbf29ce484222325;
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		sqlite3_stmt *stmt;
		int rc;

		if (sqlite3_prepare_v2(db, queries[i], -1, &stmt, NULL) != SQLITE_OK)
			fail_msg("%s", sqlite3_errmsg(db));
		while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
			for (int column = 0; column < sqlite3_column_count(stmt); column++) {
				const unsigned char *text = sqlite3_column_text(stmt, column);

				for (; text != NULL && *text != '\0'; text++)
					hash = (hash ^ *text) * 0x100000001b3;
				hash = (hash ^ 0x1f) * 0x100000001b3;
			}
		assert_int_equal(rc, SQLITE_DONE);
		sqlite3_finalize(stmt);
	}
	sqlite3_close(db);
	return hash;
}

static int
state_of(const char *path)
{
	uint64_t hash = fingerprint(path);

	for (int i = 0; i <= BATCHES; i++)
		if (hash == expected[i])
			return i;
	return -1;
}

static void
finding_handler(const struct verify_finding *finding, void *context)
{
	(void)context;
	fail_msg("verify: %s", finding->text);
}

/* Whatever was rolled back or sent again, the chain and its seals are about the rows that are there. */
static void
assert_verified(void)
{
	struct verify_options options = {.keys = &signer.key, .key_count = 1, .finding_handler = finding_handler};
	struct verify_result result;
	struct error err;

	if (verify_run(fixture_db, &options, &result, &err) < 0)
		fail_msg("verify: %s", err.text);
	assert_true(result.seals > 0);
}

/* The file is sound, and its change numbers are what a follower of the log relies on. */
static void
assert_sound(void)
{
	assert_string_equal(fixture_text("PRAGMA integrity_check"), "ok");
	assert_int_equal(
	    fixture_integer("SELECT count(*) - count(DISTINCT seq) FROM (SELECT seq FROM connections UNION "
			    "ALL SELECT seq FROM dns UNION ALL SELECT seq FROM events)"),
	    0);
	assert_verified();
}

/* As the checkpoint thread does, with a connection of its own, but at a known moment. */
static void
checkpoint_now(int mode)
{
	sqlite3 *db;
	int one = 1;

	if (sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
	    sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &one) == SQLITE_OK &&
	    sqlite3_exec(db, "PRAGMA synchronous = FULL; SELECT count(*) FROM meta", NULL, NULL, NULL) == SQLITE_OK)
		sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
	sqlite3_close(db);
}

/* -- the auditor's part ------------------------------------------------------------------------------------------ */

static bool
run_open(struct run *run)
{
	struct store_opening opening;
	struct error err;

	run->store = store_open(fixture_db, &opening, &err);
	if (opening.replaced && !run->may_replace)
		fail_msg("set aside: %s", opening.why);
	/* Nobody is to be blamed for what a disk does. */
	if (opening.changed[0] != '\0')
		fail_msg("told of another program: %s", opening.changed);
	if (run->store == NULL) {
		/* The auditor ends at the start for any other code. */
		if (err.code != ERROR_SYSTEM)
			fail_msg("opening says %d: %s", err.code, err.text);
		return false;
	}
	store_set_signer(run->store, &signer);
	return true;
}

static bool
run_resume(struct run *run)
{
	struct error err;

	if (run->store != NULL && store_must_reopen(run->store)) {
		store_close(run->store);
		run->store = NULL;
	}
	if (run->store == NULL && !run_open(run))
		return false;
	return store_probe(run->store, &err) == 0 && store_commit(run->store, &err) == 0;
}

static bool
run_batch(struct run *run, int batch)
{
	struct record records[BATCH_RECORDS_MAX] = {0};
	size_t n = batch_records(batch, records);
	struct error err;

	for (size_t i = 0; i < n; i++) {
		if (store_add(run->store, &records[i], &err) == 0)
			continue;
		if (err.code == ERROR_USAGE)
			fail_msg("batch %d, record %zu: %s", batch, i, err.text);
		assert_false(store_has_batch(run->store));
		return false;
	}
	if (batch % BATCH_SEALED == 0 && store_seal(run->store, true, &err) < 0)
		return false;
	if (batch >= run->tried)
		run->tried = batch + 1;
	if (store_commit(run->store, &err) == 0) {
		run->acked = batch + 1;
		return true;
	}
	assert_false(store_has_batch(run->store));
	return false;
}

static void
run_between(struct run *run, int batch)
{
	if (batch == BATCH_PASSIVE)
		checkpoint_now(SQLITE_CHECKPOINT_PASSIVE);
	if (batch == BATCH_RESTART)
		checkpoint_now(SQLITE_CHECKPOINT_RESTART);
	if (batch == BATCH_REOPEN) {
		store_close(run->store);
		run->store = NULL;
	}
}

/* From what is durable to the end; false after too many failures in a row. */
static bool
run_workload(struct run *run)
{
	int tries = 0;

	while (run->acked < BATCHES || run->store == NULL) {
		bool ready = run->store != NULL && tries == 0;

		if (ready || (ready = run_resume(run))) {
			int batch = run->acked;

			if (batch == BATCHES)
				break;
			if (run_batch(run, batch)) {
				tries = 0;
				run_between(run, batch);
				continue;
			}
		}
		if (++tries == TRIES_MAX)
			return false;
	}
	return true;
}

/* The faults are over. What is there, and does it go on from there? */
static void
run_finish(struct run *run, const char *what, uint64_t at)
{
	int state;

	store_close(run->store);
	run->store = NULL;
	if (!run_open(run))
		fail_msg("%s at %llu: cannot be opened afterwards", what, (unsigned long long)at);
	state = run->may_replace ? run->acked : state_of(fixture_db);
	if (state < run->acked || state > run->tried)
		fail_msg("%s at %llu: state %d of %d acknowledged, %d tried", what, (unsigned long long)at, state,
		    run->acked, run->tried);
	if (!run_workload(run))
		fail_msg("%s at %llu: does not go on", what, (unsigned long long)at);
	store_close(run->store);
	run->store = NULL;
	if (run->may_replace)
		return;
	assert_int_equal(state_of(fixture_db), BATCHES);
	assert_sound();
}

static void
database_remove(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
	char path[128];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", fixture_db, suffixes[i]);
		unlink(path);
	}
}

/* The states without any fault. */
static void
learn(void)
{
	struct run run = {0};

	assert_true(run_open(&run));
	expected[0] = fingerprint(fixture_db);
	for (int i = 0; i < BATCHES; i++) {
		assert_true(run_batch(&run, i));
		expected[i + 1] = fingerprint(fixture_db);
		assert_true(expected[i + 1] != expected[i]);
	}
	store_close(run.store);
	assert_sound();
	database_remove();
}

/* -- faults of single calls -------------------------------------------------------------------------------------- */

/* Returns false when there is no at-th call. */
static bool
fault_once(enum fault_kind kind, uint64_t at, bool forever)
{
	struct run run = {.may_replace = kind == FAULT_SHORT_READ};
	bool hit, done;

	fault_arm(kind, at, forever ? UINT64_MAX : 1);
	done = run_workload(&run);
	store_close(run.store);
	run.store = NULL;
	hit = fault.hits > 0;
	fault_disarm();
	if (!done && !forever)
		fail_msg("%s at %llu: one fault stops the log", fault_kind_texts[kind], (unsigned long long)at);
	run_finish(&run, fault_kind_texts[kind], at);
	if (run.may_replace)
		fixture_shell("rm -f $DB.corrupt-*");
	database_remove();
	return hit;
}

static void
fault_each(enum fault_kind kind)
{
	uint64_t step = (uint64_t)stride(STRIDE), at = 1 + (uint64_t)kind % step, runs = 0;

	learn();
	for (; fault_once(kind, at, false); at += step)
		runs++;
	for (uint64_t until = at, last = 1 + (uint64_t)kind * 3 % step; last < until; last += step)
		runs += fault_once(kind, last, true);
	assert_true(runs >= RUNS_AT_LEAST(3));
	print_message(
	    "# %s: %llu runs, %llu calls\n", fault_kind_texts[kind], (unsigned long long)runs, (unsigned long long)at);
}

static void
case_F_22_input_output_errors(void **state)
{
	(void)state;
	fault_each(FAULT_IOERR);
}

static void
case_F_22_disk_full_in_the_middle_of_a_write(void **state)
{
	(void)state;
	fault_each(FAULT_FULL);
}

static void
case_F_23_busy(void **state)
{
	(void)state;
	fault_each(FAULT_BUSY);
}

static void
test_no_memory_in_the_system(void **state)
{
	(void)state;
	fault_each(FAULT_NOMEM);
}

static void
case_F_24_short_reads(void **state)
{
	(void)state;
	fault_each(FAULT_SHORT_READ);
}

/* Many faults, any number of them in a row, with the checkpoint thread at work. */
static void
case_F_22_storms(void **state)
{
	uint64_t seeds = getenv("POSTERN_TEST_LONG") != NULL ? 600 : 24;

	(void)state;
	learn();
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		static const enum fault_kind kinds[] = {FAULT_IOERR, FAULT_FULL, FAULT_BUSY, FAULT_NOMEM};
		struct run run = {0};
		struct error err;

		fault_arm_storm(kinds[seed % 4], 10 + (uint32_t)seed * 7 % 90, seed);
		for (int i = 0; i < 10 && !run_workload(&run); i++)
			if (run.store != NULL && !store_must_reopen(run.store))
				store_start_checkpoints(run.store, &err);
		store_close(run.store);
		run.store = NULL;
		fault_disarm();
		run_finish(&run, "storm", seed);
		database_remove();
	}
}

/* -- power cuts -------------------------------------------------------------------------------------------------- */

/* Go on, on another machine so to say, from what the disk had. */
static void
power_on(struct run *run, const char *what, uint64_t at)
{
	char kept[sizeof(fixture_db)], from[128], to[128];

	store_close(run->store);
	run->store = NULL;
	fault_power_on();
	memcpy(kept, fixture_db, sizeof(kept));
	snprintf(fixture_db, sizeof(fixture_db), "%s/image/audit.db", fixture_dir);
	/* The lock file does not go through SQLite; a -shm file may hold anything after a cut. */
	snprintf(from, sizeof(from), "%s.lock", kept);
	snprintf(to, sizeof(to), "%s.lock", fixture_db);
	assert_int_equal(rename(from, to), 0);
	snprintf(from, sizeof(from), "%s-shm", kept);
	snprintf(to, sizeof(to), "%s-shm", fixture_db);
	rename(from, to);
	run_finish(run, what, at);
	database_remove();
	memcpy(fixture_db, kept, sizeof(kept));
	database_remove();
}

static bool
power_cut(uint64_t at, enum fault_keep keep, uint64_t seed)
{
	struct run run = {0};
	char dir[96];
	bool cut;

	snprintf(dir, sizeof(dir), "%s/image", fixture_dir);
	assert_true(mkdir(dir, 0755) == 0 || errno == EEXIST);
	fault_power(at, keep, seed, dir);
	run_workload(&run);
	cut = fault.off;
	if (!cut)
		fault_power_cut();
	power_on(&run, "power cut", at);
	return cut;
}

static void
case_F_25_power_cut_at_each_write(void **state)
{
	uint64_t step = (uint64_t)stride(STRIDE_POWER), runs = 0;

	(void)state;
	learn();
	for (unsigned int keep = 0; keep < FAULT_KEEP_MAX; keep++)
		for (uint64_t at = 1 + keep % step; power_cut(at, keep, at); at += step)
			runs++;
	assert_true(runs >= RUNS_AT_LEAST(50));
	print_message("# %llu power cuts\n", (unsigned long long)runs);
}

static bool
failed_sync(uint64_t at, uint64_t times)
{
	struct run run = {0};
	char dir[96];
	bool hit;

	snprintf(dir, sizeof(dir), "%s/image", fixture_dir);
	assert_true(mkdir(dir, 0755) == 0 || errno == EEXIST);
	fault_power(0, FAULT_KEEP_NOTHING, at, dir);
	fault_arm(FAULT_SYNC, at, times);
	run_workload(&run);
	hit = fault.hits > 0;
	fault_disarm();
	fault_power_cut();
	power_on(&run, "failed sync", at);
	return hit;
}

/* A sync fails, and what it should have written is gone for good, though it can still be read: what is acknowledged
 * afterwards must not rest on it. */
static void
case_F_25_a_sync_that_failed_has_lost_its_writes(void **state)
{
	(void)state;
	learn();
	/* At the second failure it is the checkpoint of closing that fails: what was not synced stays in the log. */
	for (uint64_t times = 1; times <= 3; times++) {
		uint64_t at = 1;

		while (failed_sync(at, times))
			at++;
		assert_true(at > 10);
	}
}

/* -- allocations ------------------------------------------------------------------------------------------------- */

static sqlite3_mem_methods memory_real;
static struct {
	bool armed, forever;
	uint64_t at, calls, hits;
} memory;

static bool
memory_fails(void)
{
	bool hit;

	if (!memory.armed)
		return false;
	memory.calls++;
	hit = memory.calls == memory.at || (memory.forever && memory.calls > memory.at);
	memory.hits += hit;
	return hit;
}

static void *
memory_malloc(int size)
{
	return memory_fails() ? NULL : memory_real.xMalloc(size);
}

static void *
memory_realloc(void *block, int size)
{
	return memory_fails() ? NULL : memory_real.xRealloc(block, size);
}

static bool
memory_once(uint64_t at, bool forever)
{
	struct run run = {0};
	bool done;

	memory.at = at;
	memory.forever = forever;
	memory.calls = memory.hits = 0;
	memory.armed = true;
	done = run_workload(&run);
	store_close(run.store);
	run.store = NULL;
	memory.armed = false;
	if (!done && !forever)
		fail_msg("allocation %llu: its failure stops the log", (unsigned long long)at);
	run_finish(&run, "no memory", at);
	database_remove();
	return memory.hits > 0;
}

static void
test_each_allocation_that_fails(void **state)
{
	uint64_t step = (uint64_t)stride(STRIDE_MALLOC), runs = 0, at;

	(void)state;
	learn();
	for (at = 1; memory_once(at, false); at += step)
		runs++;
	for (uint64_t last = 2; last < at; last += step * 2)
		runs += memory_once(last, true);
	assert_true(runs >= RUNS_AT_LEAST(50));
	print_message("# %llu runs, %llu allocations\n", (unsigned long long)runs, (unsigned long long)at);
}

static void
memory_register(void)
{
	sqlite3_mem_methods methods;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory_real) != SQLITE_OK)
		abort();
	methods = memory_real;
	methods.xMalloc = memory_malloc;
	methods.xRealloc = memory_realloc;
	if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK)
		abort();
}

/* In memory where that is possible: the disk that matters is the one modelled. */
static int
setup(void **state)
{
	(void)state;
	snprintf(fixture_dir, sizeof(fixture_dir), "/dev/shm/postern-audit-test-XXXXXX");
	if (mkdtemp(fixture_dir) == NULL)
		return fixture_setup(state);
	snprintf(fixture_db, sizeof(fixture_db), "%s/audit.db", fixture_dir);
	return 0;
}

static int
teardown(void **state)
{
	memory.armed = false;
	fault_disarm();
	fault_power_on();
	return fixture_teardown(state);
}

/* One key for all of it. */
static bool
make_signer(void)
{
	char dir[] = "/tmp/postern-audit-test-XXXXXX", path[64];
	struct error err;
	bool made;
	int rc;

	if (mkdtemp(dir) == NULL)
		return false;
	snprintf(path, sizeof(path), "%s/seal.key", dir);
	rc = seal_signer_load(&signer, path, &made, &err);
	unlink(path);
	strcat(path, ".pub");
	unlink(path);
	rmdir(dir);
	return rc == 0;
}

#define FAULTS_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAULTS_TEST(case_F_22_input_output_errors),
	    FAULTS_TEST(case_F_22_disk_full_in_the_middle_of_a_write),
	    FAULTS_TEST(case_F_23_busy),
	    FAULTS_TEST(test_no_memory_in_the_system),
	    FAULTS_TEST(case_F_24_short_reads),
	    FAULTS_TEST(case_F_22_storms),
	    FAULTS_TEST(case_F_25_power_cut_at_each_write),
	    FAULTS_TEST(case_F_25_a_sync_that_failed_has_lost_its_writes),
	    FAULTS_TEST(test_each_allocation_that_fails),
	};

	memory_register();
	fault_register();
	if (!make_signer())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
