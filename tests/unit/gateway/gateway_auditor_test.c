/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The auditor role as a process of its own, confined as in production, with real recorders as its senders. */
#include "tests/unit/audit/audit_fixture.h"

#include "base/clock.h"
#include "gateway/auditor/auditor.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/role.h"
#include "gateway/shared/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Nothing here takes longer; a failure to progress ends the test. */
#define PATIENCE_MS 10000
/* "nobody" is who the auditor becomes when the test is root. */
#define AUDITOR_UID 65534

/* So small that a flood is beyond it at once. */
#define RETAIN_BYTES (1u << 20)
#define FLOOD_MS 2000

static uint64_t retain_bytes;
static uint32_t retain_s;
static struct loop *loop;
static struct ipc keeper;
static pid_t auditor_pid;
static bool auditor_ready;
static struct recorder keeper_recorder, control_recorder, gateway_recorder;
static uint64_t next_epoch = FIXTURE_EPOCH;
/* Reported to the keeper: how many, and the last one. */
static unsigned int bad_senders;
static uint64_t bad_epoch;
static struct msg_log_state log_state; /* the last one */

static bool
keeper_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	(void)ipc;
	if (message->header.type == MSG_SENDER_BAD) {
		bad_senders++;
		bad_epoch = ((const struct msg_sender *)message->body)->epoch;
		return true;
	}
	if (message->header.type == MSG_LOG_STATE) {
		assert_int_equal(message->header.size, sizeof(log_state));
		memcpy(&log_state, message->body, sizeof(log_state));
		return true;
	}
	assert_int_equal(message->header.type, MSG_READY);
	auditor_ready = true;
	return true;
}

static void
keeper_broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	(void)why;
}

/* Run the loop until the condition holds. */
#define WAIT_FOR(condition)                                                                                            \
	do {                                                                                                           \
		int64_t until_ms = clock_mono_ms() + PATIENCE_MS;                                                      \
		while (!(condition)) {                                                                                 \
			if (clock_mono_ms() > until_ms)                                                                \
				fail_msg("waited in vain for: %s", #condition);                                        \
			assert_int_equal(loop_round(loop, 20), 0);                                                     \
		}                                                                                                      \
	} while (0)

static void
auditor_start(void)
{
	static const struct role role = {
	    .kind = MSG_ROLE_AUDITOR, .name = "auditor", .confinement = {.network = true, .syscalls = "auditor"}};
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	auditor_ready = false;
	next_epoch += RECORD_EPOCH_SPAN;
	auditor_pid = fork();
	assert_true(auditor_pid >= 0);
	if (auditor_pid == 0) {
		struct options options = {.state_dir = fixture_dir,
		    .role = "auditor",
		    .role_fd = fds[1],
		    .epoch = next_epoch,
		    .retain_bytes = retain_bytes,
		    .retain_s = retain_s,
		    .rootless = geteuid() != 0};

		options.uids[MSG_ROLE_AUDITOR] = geteuid() == 0 ? AUDITOR_UID : geteuid();
		options.group_gid = geteuid() == 0 ? AUDITOR_UID : getegid();
		close(fds[0]);
		_exit(auditor_run(&role, &options));
	}
	close(fds[1]);
	memset(&keeper, 0, sizeof(keeper));
	keeper.self = MSG_ROLE_KEEPER;
	keeper.peer = MSG_ROLE_AUDITOR;
	keeper.message_handler = keeper_message_handler;
	keeper.broken_handler = keeper_broken_handler;
	assert_int_equal(ipc_open(&keeper, loop, fds[0]), 0);
	WAIT_FOR(auditor_ready);
}

/* Give a recorder a channel. epoch 0: the one it has. */
static int
channel(uint32_t role, uint64_t epoch)
{
	struct msg_channel body = {.role = role, .epoch = epoch};
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(ipc_send(&keeper, MSG_CHANNEL, 0, &body, sizeof(body), &fds[0], 1), 0);
	close(fds[0]);
	return fds[1];
}

static void
connect_one(struct recorder *recorder, uint32_t role)
{
	assert_int_equal(recorder_connect(recorder, channel(role, recorder->epoch), recorder->epoch), 0);
}

static void
connect_all(void)
{
	connect_one(&keeper_recorder, MSG_ROLE_KEEPER);
	connect_one(&control_recorder, MSG_ROLE_CONTROL);
	connect_one(&gateway_recorder, MSG_ROLE_GATEWAY);
}

static int
auditor_wait(void)
{
	int status;

	ipc_close(&keeper);
	assert_int_equal(waitpid(auditor_pid, &status, 0), auditor_pid);
	auditor_pid = 0;
	return status;
}

static void
auditor_stop(void)
{
	int status;

	assert_int_equal(ipc_send(&keeper, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0), 0);
	status = auditor_wait();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
auditor_kill(void)
{
	kill(auditor_pid, SIGKILL);
	auditor_wait();
}

/* A daemon's life begins: each of its senders has an epoch of its own. */
static void
recorders_init(void)
{
	struct recorder *recorders[] = {&keeper_recorder, &control_recorder, &gateway_recorder};

	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++)
		recorder_init(recorders[i], loop, next_epoch += RECORD_EPOCH_SPAN);
}

static void
recorders_free(void)
{
	recorder_free(&keeper_recorder);
	recorder_free(&control_recorder);
	recorder_free(&gateway_recorder);
}

static int
setup(void **state)
{
	int rc = fixture_setup(state);

	if (rc < 0)
		return rc;
	fixture_shell("mkdir -m 0750 $DIR/audit && chmod 0755 $DIR");
	if (geteuid() == 0)
		fixture_shell("chown 65534:65534 $DIR/audit");
	snprintf(fixture_db, sizeof(fixture_db), "%s/audit/audit.db", fixture_dir);
	loop = loop_new();
	recorders_init();
	return loop == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	if (auditor_pid != 0)
		auditor_kill();
	recorders_free();
	loop_free(loop);
	return fixture_teardown(state);
}

static uint64_t
send_flow(struct recorder *recorder, const char *name)
{
	struct record record = fixture_flow(1, name);

	record.flow.id = recorder_id(recorder);
	record.flow.ts_us = clock_real_us();
	assert_int_equal(recorder_send(recorder, &record, NULL), 0);
	return record.flow.id;
}

static void
send_close(struct recorder *recorder, uint64_t id)
{
	struct record record = fixture_close(1);

	record.close.id = id;
	assert_int_equal(recorder_send(recorder, &record, NULL), 0);
}

static void
send_sandbox(void)
{
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task1");

	assert_int_equal(recorder_send(&control_recorder, &record, NULL), 0);
}

static bool
all_durable(const struct recorder *recorder)
{
	return recorder->durable_seq + 1 == recorder->next_seq;
}

static void
test_records_become_durable_and_it_ends_when_told(void **state)
{
	struct stat st;
	uint64_t id;
	int64_t began_ms;

	(void)state;
	auditor_start();
	connect_all();
	send_sandbox();
	id = send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder) && all_durable(&control_recorder));
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 1);
	/* A close that nobody waits for is there soon, too. */
	send_close(&gateway_recorder, id);
	began_ms = clock_mono_ms();
	WAIT_FOR(all_durable(&gateway_recorder));
	assert_true(clock_mono_ms() - began_ms < 1000);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 1"), 1);
	assert_int_equal(stat(fixture_db, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	if (geteuid() == 0)
		assert_int_equal(st.st_uid, AUDITOR_UID);
	/* What is in the channel when it is told to end is written before it does. */
	for (int i = 0; i < 500; i++)
		send_flow(&gateway_recorder, "late.example");
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE name = 'late.example'"), 500);
}

static void
case_F_25_records_survive_a_killed_auditor(void **state)
{
	uint64_t sent = 0;

	(void)state;
	for (int round = 0; round < 10; round++) {
		auditor_start();
		connect_all();
		if (round == 0)
			send_sandbox();
		for (int i = 0; i < 200; i++, sent++)
			send_close(&gateway_recorder, send_flow(&gateway_recorder, "github.com"));
		/* Some acknowledged, some on their way. */
		for (int i = 0; i < round; i++)
			assert_int_equal(loop_round(loop, 1), 0);
		auditor_kill();
		send_flow(&gateway_recorder, "between.example");
	}
	auditor_start();
	connect_all();
	WAIT_FOR(all_durable(&gateway_recorder) && all_durable(&control_recorder));
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE name = 'github.com'"), sent);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE name = 'between.example'"), 10);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 1"), sent);
}

static void
test_connections_of_the_daemon_before_are_closed(void **state)
{
	(void)state;
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_kill();
	/* The auditor alone died: they stay open. */
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 2);
	auditor_kill();
	/* All died: a keeper with a new epoch comes. */
	recorders_free();
	recorders_init();
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	WAIT_FOR(fixture_integer("SELECT count(*) FROM connections WHERE end = 12") == 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 1);
	auditor_stop();
}

static void
test_a_gap_also_closes_what_was_still_in_the_channel(void **state)
{
	struct record gap = {.kind = RECORD_GAP};

	(void)state;
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	/* The keeper's word is read first: the auditor sleeps while both are sent. */
	kill(auditor_pid, SIGSTOP);
	gap.gap.sender_epoch = gateway_recorder.epoch;
	gap.gap.ts_us = clock_real_us();
	gap.gap.end = END_GATEWAY_CRASH;
	assert_int_equal(recorder_send(&keeper_recorder, &gap, NULL), 0);
	for (int i = 0; i < 300; i++)
		send_flow(&gateway_recorder, "github.com");
	ipc_close(&gateway_recorder.ipc); /* it died */
	kill(auditor_pid, SIGCONT);
	WAIT_FOR(all_durable(&keeper_recorder));
	WAIT_FOR(fixture_integer("SELECT count(*) FROM connections WHERE end = 11") == 301);
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 0);
}

static void
case_F_22_full_disk_refuses_and_recovers(void **state)
{
	char filler[96];
	uint64_t sent = 0;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(filler, sizeof(filler), "%s/audit", fixture_dir);
	assert_int_equal(mount("postern-test", filler, "tmpfs", 0, "size=2m,mode=0750,uid=65534,gid=65534"), 0);
	auditor_start();
	connect_all();
	send_sandbox();
	WAIT_FOR(all_durable(&control_recorder));
	snprintf(filler, sizeof(filler), "%s/audit/filler", fixture_dir);
	fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	for (off_t size = 0; posix_fallocate(fd, size, 4096) == 0; size += 4096)
		;
	/* New work stops being taken on; what was sent is kept by the sender. */
	for (; recorder_ready(&gateway_recorder) && sent < 5000; sent++) {
		send_flow(&gateway_recorder, "github.com");
		assert_int_equal(loop_round(loop, 1), 0);
	}
	assert_false(recorder_ready(&gateway_recorder));
	for (int i = 0; i < 50; i++, sent++)
		send_flow(&gateway_recorder, "github.com");
	assert_int_equal(loop_round(loop, 700), 0);
	assert_false(recorder_ready(&gateway_recorder));
	/* Room: by itself, nothing lost, and the log says so. */
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	WAIT_FOR(recorder_ready(&gateway_recorder) && all_durable(&gateway_recorder));
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), sent);
	assert_true(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'audit_resumed' AND "
				    "json_extract(detail, '$.lost') = 0") >= 1);
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), sent);
	snprintf(filler, sizeof(filler), "%s/audit", fixture_dir);
	assert_int_equal(umount(filler), 0);
}

static void
case_F_24_database_removed_while_running(void **state)
{
	(void)state;
	auditor_start();
	connect_all();
	send_sandbox();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder) && all_durable(&control_recorder));
	fixture_shell("rm $DB");
	/* Within a second, and without anybody sending anything. */
	WAIT_FOR(access(fixture_db, F_OK) == 0);
	WAIT_FOR(recorder_ready(&gateway_recorder));
	send_flow(&gateway_recorder, "after.example");
	WAIT_FOR(all_durable(&gateway_recorder));
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'audit_replaced'"), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE name = 'after.example'"), 1);
	/* Who is attached is known in the new file, too. */
	assert_string_equal(fixture_text("SELECT sandbox FROM v_connections"), "task1");
	auditor_stop();
}

static void
case_F_24_corrupt_database_is_set_aside_at_start(void **state)
{
	(void)state;
	fixture_shell("head -c 50000 /dev/urandom > $DB && chmod 0640 $DB");
	if (geteuid() == 0)
		fixture_shell("chown 65534:65534 $DB");
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'audit_replaced'"), 1);
	auditor_stop();
	fixture_shell("ls $DB.corrupt-* > /dev/null");
}

struct raw_peer {
	struct ipc ipc;
	bool broken;
};
#define RAW_PEER                                                                                                       \
	{                                                                                                              \
		.ipc = {.self = MSG_ROLE_SENDER,                                                                       \
			.peer = MSG_ROLE_AUDITOR,                                                                      \
			.message_handler = raw_message_handler,                                                        \
			.broken_handler = raw_broken_handler }                                                         \
	}

static bool
raw_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	(void)ipc;
	return message->header.type == MSG_DURABLE;
}

static void
raw_broken_handler(struct ipc *ipc, const char *why)
{
	(void)why;
	loop_owner(ipc, struct raw_peer, ipc)->broken = true;
}

/* Sends what ipc_send would not. */
static void
raw_send(struct raw_peer *peer, uint16_t type, const struct record *record, uint32_t size)
{
	struct {
		struct ipc_header header;
		struct record record;
	} message = {.header = {.type = type, .size = size}, .record = *record};

	assert_int_equal(
	    send(peer->ipc.source.fd, &message, sizeof(message.header) + size, 0), sizeof(message.header) + size);
}

/* What the keeper is told is what is on disk. */
static void
test_the_keeper_is_told_how_the_log_stands(void **state)
{
	(void)state;
	memset(&log_state, 0, sizeof(log_state));
	auditor_start();
	connect_all();
	send_sandbox();
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder) && all_durable(&control_recorder));
	WAIT_FOR((int64_t)log_state.changes == fixture_integer("SELECT max(seq) FROM chain"));
	assert_true(log_state.bytes > 0 && log_state.wal_bytes > 0 && log_state.wal_bytes < log_state.bytes);
	/* The first seal is due at once, there being none. */
	WAIT_FOR(log_state.unsealed == 0 && log_state.sealed_us == fixture_integer("SELECT max(ts) FROM seals"));
	auditor_stop();
}

static void
test_a_malformed_record_costs_its_sender_the_channel(void **state)
{
	struct record good = fixture_flow(1, "github.com");
	const uint32_t size = record_size(RECORD_FLOW_OPEN);

	(void)state;
	good.flow.id = RECORD_ID(77, 1);
	auditor_start();
	connect_all();
	for (int i = 0; i < 5; i++) {
		struct raw_peer peer = RAW_PEER;
		struct record bad = good;

		if (i == 0)
			bad.flow.verdict = 200;
		if (i == 1)
			memset(bad.flow.rule, 'x', sizeof(bad.flow.rule));
		if (i == 2)
			bad.seq = 0;
		assert_int_equal(ipc_open(&peer.ipc, loop, channel(MSG_ROLE_GATEWAY, 77)), 0);
		raw_send(&peer, i == 4 ? MSG_SHUTDOWN : MSG_RECORD, &bad, i == 3 ? size - 1 : size);
		WAIT_FOR(peer.broken);
	}
	/* The others do not notice. */
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1);
}

/* What a gateway says of others, and others of what is a gateway's: nobody hears it. */
static void
test_nobody_writes_anothers_history(void **state)
{
	uint64_t open, gateway, other = UINT64_C(1) << 30;
	struct record close, gap = {.kind = RECORD_GAP}, sandbox = fixture_sandbox(FIXTURE_SANDBOX, "task2"), event,
			     flow, mark;
	const struct {
		uint32_t role;
		struct record *record;
	} forged[] = {{MSG_ROLE_GATEWAY, &close}, {MSG_ROLE_GATEWAY, &gap}, {MSG_ROLE_GATEWAY, &sandbox},
	    {MSG_ROLE_GATEWAY, &event}, {MSG_ROLE_GATEWAY, &mark}, {MSG_ROLE_GATEWAY, &flow}, {MSG_ROLE_CONTROL, &flow},
	    {MSG_ROLE_CONTROL, &gap}, {MSG_ROLE_KEEPER, &sandbox}};

	(void)state;
	bad_senders = 0;
	auditor_start();
	connect_all();
	open = send_flow(&gateway_recorder, "github.com");
	gateway = gateway_recorder.epoch;
	WAIT_FOR(all_durable(&gateway_recorder));
	close = fixture_close(1);
	close.close.id = open;
	gap.gap = (struct record_gap){.sender_epoch = gateway, .ts_us = clock_real_us(), .end = END_GATEWAY_CRASH};
	event = fixture_event(1, EVENT_DETACH, "");
	event.event.id = RECORD_ID(other, 1);
	mark = fixture_event(1, EVENT_MARK, "{\"text\":\"not the agent's word\"}");
	mark.event.id = RECORD_ID(other, 1);
	/* The id of the other gateway's next record: it would be lost. */
	flow = fixture_flow(1, "elsewhere.example");
	flow.flow.id = open + 1;
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct raw_peer peer = RAW_PEER;
		struct record *record = forged[i].record;

		record->seq = 1;
		assert_int_equal(ipc_open(&peer.ipc, loop, channel(forged[i].role, other)), 0);
		assert_int_equal(ipc_send(&peer.ipc, MSG_RECORD, 0, record, record_size(record->kind), NULL, 0), 0);
		WAIT_FOR(peer.broken && bad_senders == i + 1);
		assert_int_equal(bad_epoch, other);
	}
	/* What is its own to say. */
	send_flow(&gateway_recorder, "github.com");
	event.event.kind = EVENT_GRANT_USED_UP;
	event.event.id = recorder_id(&gateway_recorder);
	assert_int_equal(recorder_send(&gateway_recorder, &event, NULL), 0);
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM events WHERE kind = 12"), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0 AND name = 'github.com'"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes WHERE name = 'task2'"), 0);
}

/* Records that find no room: the flow is not to be recorded, and that is. */
static void
send_flows_without_room(int count)
{
	struct record record = fixture_flow(1, "lost.example");
	size_t room = gateway_recorder.queue_len;

	gateway_recorder.queue_len = RECORDER_MAX;
	for (int i = 0; i < count; i++) {
		record.flow.id = recorder_id(&gateway_recorder);
		assert_int_equal(recorder_send(&gateway_recorder, &record, NULL), -ENOBUFS);
	}
	gateway_recorder.queue_len = room;
}

/* F-22: what a sender had no room for is a hole in its numbers, and the log says so, once, wherever the hole is. */
static void
case_F_22_what_is_lost_is_marked(void **state)
{
	(void)state;
	/* Before the first record. */
	send_flows_without_room(2);
	send_flow(&gateway_recorder, "github.com");
	auditor_start();
	connect_all();
	WAIT_FOR(all_durable(&gateway_recorder));
	/* Between others. */
	send_flow(&gateway_recorder, "github.com");
	send_flows_without_room(3);
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	/* Right behind the last durable one, when the auditor dies: the next one must still find it. */
	auditor_kill();
	send_flows_without_room(4);
	send_flow(&gateway_recorder, "github.com");
	auditor_start();
	connect_all();
	WAIT_FOR(all_durable(&gateway_recorder));
	send_flow(&gateway_recorder, "github.com");
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 5);
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'records_lost'"), 3);
	assert_int_equal(
	    fixture_integer("SELECT sum(detail ->> '$.count') FROM v_events WHERE event = 'records_lost'"), 9);
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'records_lost' AND "
					 "detail ->> '$.from' = 5 AND detail ->> '$.to' = 7"),
	    1);
	assert_int_equal(fixture_integer("SELECT detail ->> '$.epoch' FROM v_events WHERE event = 'records_lost'"),
	    (int64_t)gateway_recorder.epoch);
}

static void
daemon_says(enum event_kind kind)
{
	struct record record = fixture_event(1, kind, kind == EVENT_DAEMON_START ? "{\"version\":\"9\"}" : "{}");

	record.event.id = recorder_id(&keeper_recorder);
	assert_int_equal(recorder_send(&keeper_recorder, &record, NULL), 0);
}

/* F-25: a daemon that did not end in order left no word; the next one's first word tells. */
static void
case_F_25_a_start_tells_of_the_crash_before_it(void **state)
{
	static const bool in_order[] = {true, false, false, true, true};

	(void)state;
	for (size_t i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
		recorders_free();
		recorders_init();
		auditor_start();
		connect_all();
		daemon_says(EVENT_DAEMON_START);
		WAIT_FOR(all_durable(&keeper_recorder));
		if (in_order[i])
			daemon_says(EVENT_DAEMON_STOP);
		/* Whoever says something later is heard first: the end is the last in the log, and sealed. */
		send_flow(&gateway_recorder, "late.example");
		auditor_stop();
		assert_int_equal(
		    fixture_integer("SELECT count(*) FROM events WHERE kind = 2 AND seq = (SELECT max(seq) "
				    "FROM chain) AND seq = (SELECT max(last_seq) FROM seals)"),
		    in_order[i]);
	}
	assert_string_equal(fixture_text("SELECT group_concat(coalesce(detail ->> '$.after', '-'), ' ') FROM "
					 "(SELECT detail FROM v_events WHERE event = 'daemon_start' ORDER BY id)"),
	    "- - crash crash -");
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'daemon_start' AND "
					 "detail ->> '$.version' = '9'"),
	    5);
}

/* Refusals as fast as the log takes them. Returns how many. */
static int64_t
flood(int64_t ms)
{
	int64_t sent = 0;
	struct record record = fixture_flow(1, "flood.example");
	int64_t end_ms = clock_mono_ms() + ms;

	record.flow.verdict = VERDICT_DENIED;
	record.flow.reason = REASON_NO_RULE;
	record.flow.end = END_REFUSED;
	while (clock_mono_ms() < end_ms) {
		while (gateway_recorder.queue_len < RECORDER_BUSY / 2) {
			record.flow.id = recorder_id(&gateway_recorder);
			assert_int_equal(recorder_send(&gateway_recorder, &record, NULL), 0);
			sent++;
		}
		assert_int_equal(loop_round(loop, 20), 0);
	}
	return sent;
}

/* Refusals that come without a pause are no reason to keep everything: of a log that is too large, segments go all the
 * time, in what of the time is retention's. */
static void
test_retention_goes_on_in_a_flood(void **state)
{
	int64_t patient_ms, before = 0, pruned;

	(void)state;
	auditor_start();
	connect_all();
	send_sandbox();
	flood(FLOOD_MS / 2);
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	recorders_free();
	recorders_init();
	retain_bytes = RETAIN_BYTES;
	auditor_start();
	retain_bytes = 0;
	connect_all();
	for (int i = 0; i < 3; i++, before = pruned) {
		patient_ms = clock_mono_ms() + PATIENCE_MS / 2;
		do {
			flood(FLOOD_MS / 8);
			pruned = fixture_integer("SELECT value FROM meta WHERE key = 'pruned_through'");
		} while (pruned <= before && clock_mono_ms() < patient_ms);
		assert_true(pruned > before);
	}
	auditor_stop();
}

/* Floods until the question has an answer above floor; returns how many were sent. */
static int64_t
flood_until_above(const char *sql, int64_t floor)
{
	int64_t patient_ms = clock_mono_ms() + 2 * PATIENCE_MS, sent = 0;

	while (fixture_integer(sql) <= floor) {
		if (clock_mono_ms() > patient_ms)
			fail_msg("waited in vain for more than %lld: %s", (long long)floor, sql);
		sent += flood(FLOOD_MS / 16);
	}
	return sent;
}

/* Rows that are gone without a word would be a hole that nobody sees: the drop is undone, and not counted by the next.
 */
static void
test_a_drop_that_cannot_be_told_of_is_undone(void **state)
{
	static const char pruned[] = "SELECT value FROM meta WHERE key = 'pruned_through'";
	static const char told[] = "SELECT count(*) FROM v_events WHERE event = 'tampered' AND detail LIKE '%no_more%'";
	int64_t sent, before;

	(void)state;
	auditor_start();
	connect_all();
	/* Retention looks at once, and then every ten seconds: it must have something to do. */
	sent = flood(FLOOD_MS);
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_kill();
	retain_bytes = RETAIN_BYTES;
	auditor_start();
	retain_bytes = 0;
	connect_all();
	sent += flood_until_above(pruned, 0);
	/* Soon no event of this kind can be written any more. Who opens the file anew finds why, and mends it. */
	fixture_shell("sqlite3 \"$DB\" '.timeout 5000' \"CREATE INDEX no_more ON events (CASE WHEN kind = 16 AND seq > "
		      "$(sqlite3 \"$DB\" 'SELECT max(seq) + 5000 FROM chain') THEN zeroblob(2000000000) END)\"");
	sent += flood_until_above(told, 0);
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'audit_resumed' AND "
					 "detail LIKE '%takes no event%'"),
	    1);
	before = fixture_integer(pruned);
	sent += flood_until_above(pruned, before);
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	assert_true(fixture_integer("SELECT sum(detail ->> '$.rows') FROM v_events WHERE event = 'pruned'") <=
	    sent - fixture_integer("SELECT count(*) FROM connections") + 20);
}

/* A log whose newest record is three years old: who knows whether that is right? */
static void
test_age_waits_for_the_clock(void **state)
{
	struct record record = fixture_denied(1, "a.example", 9);

	(void)state;
	auditor_start();
	connect_all();
	for (int i = 0; i < 1500; i++) {
		record.flow.id = recorder_id(&gateway_recorder);
		assert_int_equal(recorder_send(&gateway_recorder, &record, NULL), 0);
	}
	WAIT_FOR(all_durable(&gateway_recorder));
	auditor_stop();
	fixture_shell("sqlite3 \"$DB\" 'UPDATE seals SET ts = 1700000001000000'");
	assert_true(fixture_integer("SELECT count(*) FROM seals") > 1);
	retain_s = 90 * 24 * 3600;
	for (int i = 0; i < 2; i++) {
		auditor_start();
		connect_all();
		/* It looks at once. */
		WAIT_FOR(fixture_integer("SELECT count(*) FROM v_events WHERE event = 'audit_alarm' AND "
					 "detail ->> '$.ahead_s' > 60000000") == 1);
		WAIT_FOR(log_state.unsealed == 0);
		auditor_stop();
		assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1500);
	}
	retain_s = 0;
}

static void
test_it_ends_with_its_keeper(void **state)
{
	int status;

	(void)state;
	auditor_start();
	connect_all();
	send_flow(&gateway_recorder, "github.com");
	status = auditor_wait(); /* closes the keeper's end */
	assert_true(WIFEXITED(status));
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1);
}

#define AUDITOR_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    AUDITOR_TEST(test_records_become_durable_and_it_ends_when_told),
	    AUDITOR_TEST(test_the_keeper_is_told_how_the_log_stands),
	    AUDITOR_TEST(case_F_25_records_survive_a_killed_auditor),
	    AUDITOR_TEST(test_connections_of_the_daemon_before_are_closed),
	    AUDITOR_TEST(test_a_gap_also_closes_what_was_still_in_the_channel),
	    AUDITOR_TEST(case_F_22_full_disk_refuses_and_recovers),
	    AUDITOR_TEST(case_F_22_what_is_lost_is_marked),
	    AUDITOR_TEST(case_F_25_a_start_tells_of_the_crash_before_it),
	    AUDITOR_TEST(case_F_24_database_removed_while_running),
	    AUDITOR_TEST(case_F_24_corrupt_database_is_set_aside_at_start),
	    AUDITOR_TEST(test_a_malformed_record_costs_its_sender_the_channel),
	    AUDITOR_TEST(test_nobody_writes_anothers_history),
	    AUDITOR_TEST(test_retention_goes_on_in_a_flood),
	    AUDITOR_TEST(test_a_drop_that_cannot_be_told_of_is_undone),
	    AUDITOR_TEST(test_age_waits_for_the_clock),
	    AUDITOR_TEST(test_it_ends_with_its_keeper),
	};

	/* Mounts of the tests stay ours. */
	if (geteuid() == 0 && (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
