/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role in a process of its own, confined as it always is, between a keeper and an auditor that the test
 * plays, and an HTTP client. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_CONTROL_FAR_H
#define POSTERN_TESTS_UNIT_GATEWAY_CONTROL_FAR_H

#include "audit/record.h"
#include "base/clock.h"
#include "base/loop.h"
#include "gateway/control/control.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/role.h"
#include "policy/compiled/snapshot.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define FAR_ANSWER_MAX (1u << 20)
#define FAR_RECORDS_MAX 256
#define FAR_WAIT_MS 10000
/* Of the control role. */
#define FAR_EPOCH 3

struct far {
	struct loop *loop;
	struct ipc keeper, auditor;
	pid_t pid;
	char dir[64];
	struct options options;
	bool ready, broken; /* the role's channel to the keeper */
	/* What the keeper answers, and what it was asked. */
	enum error_code attach_code, policy_code, detach_code;
	bool hold_policy; /* keep MSG_POLICY unanswered until far_release */
	uint64_t held_tag;
	bool hold_durable; /* say of no record that it is on disk until far_release_durable */
	bool unwritable;   /* the log cannot be written */
	size_t attaches, policies, detaches, forgets;
	struct msg_forget forget; /* the last one */
	struct msg_attach attach; /* the last one */
	struct msg_policy policy;
	size_t previews;
	struct msg_status status; /* as it is answered */
	size_t rules;             /* in the last snapshot that came */
	char hash[65];
	struct msg_leases_done leases;
	struct record records[FAR_RECORDS_MAX];
	size_t record_count;
};

static inline void
far_take_snapshot(struct far *far, struct ipc_message *message)
{
	struct error err;
	struct snapshot *snapshot = snapshot_open(message->fds[0], &err);

	assert_non_null(snapshot);
	far->rules = snapshot_rule_count(snapshot);
	snapshot_hash(snapshot, far->hash);
	snapshot_free(snapshot);
}

static inline void
far_answer_policy(struct far *far, uint64_t tag)
{
	struct msg_policy_done done;

	memset(&done, 0, sizeof(done));
	done.result.code = far->policy_code;
	snprintf(done.result.text, sizeof(done.result.text), "the keeper says no");
	done.cut_count = 1;
	done.cut[0].record_id = 7;
	done.cut[0].dport = 443;
	assert_true(addr_parse("45.45.45.1", strlen("45.45.45.1"), &done.cut[0].dst));
	assert_int_equal(name_canonical("cut.example.com", strlen("cut.example.com"), &done.cut[0].name), NAME_OK);
	assert_int_equal(ipc_send(&far->keeper, MSG_POLICY_DONE, tag, &done, sizeof(done), NULL, 0), 0);
}

static inline void
far_answer_attach(struct far *far, uint64_t tag)
{
	struct msg_attached attached;

	memset(&attached, 0, sizeof(attached));
	attached.result.code = far->attach_code;
	snprintf(attached.result.text, sizeof(attached.result.text), "the keeper says no");
	snprintf(attached.netns, sizeof(attached.netns), "/run/netns/postern-%s", far->attach.name);
	memcpy(attached.ifname, far->attach.ifname, sizeof(attached.ifname));
	memcpy(attached.guest_mac, "\x06\0\xac\x10\0\x02", 6);
	attached.netns_ino = far->attach.kind == TAP_KIND_NETNS ? 4711 : 0;
	assert_int_equal(ipc_send(&far->keeper, MSG_ATTACHED, tag, &attached, sizeof(attached), NULL, 0), 0);
}

static inline void
far_answer_result(struct far *far, uint64_t tag, enum error_code code)
{
	struct msg_result result = {.code = code};

	assert_int_equal(ipc_send(&far->keeper, MSG_RESULT, tag, &result, sizeof(result), NULL, 0), 0);
}

static inline bool
far_keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct far *far = loop_owner(ipc, struct far, keeper);

	switch (message->header.type) {
	case MSG_READY:
		far->ready = true;
		break;
	case MSG_ATTACH:
		far->attaches++;
		memcpy(&far->attach, message->body, sizeof(far->attach));
		far_take_snapshot(far, message);
		far_answer_attach(far, message->header.tag);
		break;
	case MSG_POLICY:
		far->policies++;
		memcpy(&far->policy, message->body, sizeof(far->policy));
		far_take_snapshot(far, message);
		if (far->hold_policy)
			far->held_tag = message->header.tag;
		else
			far_answer_policy(far, message->header.tag);
		break;
	case MSG_POLICY_PREVIEW:
		far->previews++;
		far_take_snapshot(far, message);
		far_answer_policy(far, message->header.tag);
		break;
	case MSG_FORGET:
		memcpy(&far->forget, message->body, sizeof(far->forget));
		far->forgets++;
		far_answer_result(far, message->header.tag, ERROR_NONE);
		break;
	case MSG_DETACH:
		far->detaches++;
		far_answer_result(far, message->header.tag, far->detach_code);
		break;
	case MSG_LEASES:
		ipc_send(ipc, MSG_LEASES_DONE, message->header.tag, &far->leases, sizeof(far->leases), NULL, 0);
		break;
	case MSG_STATUS:
		ipc_send(ipc, MSG_STATUS_DONE, message->header.tag, &far->status, sizeof(far->status), NULL, 0);
		break;
	default:
		return false;
	}
	return true;
}

static inline bool
far_auditor_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct far *far = loop_owner(ipc, struct far, auditor);
	struct msg_durable durable = {.writable = !far->unwritable};
	struct record *record = &far->records[far->record_count++];

	assert_true(far->record_count < FAR_RECORDS_MAX);
	memset(record, 0, sizeof(*record));
	memcpy(record, message->body, message->header.size);
	assert_true(record_valid(record, message->header.size));
	durable.seq = record->seq;
	if (!far->hold_durable)
		ipc_send(ipc, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0);
	return true;
}

static inline void
far_release_durable(struct far *far)
{
	struct msg_durable durable = {.writable = 1, .seq = far->records[far->record_count - 1].seq};

	far->hold_durable = false;
	assert_int_equal(ipc_send(&far->auditor, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0), 0);
}

static inline void
far_broken_handler(struct ipc *ipc, const char *why)
{
	(void)why;
	if (ipc->self == MSG_ROLE_KEEPER)
		loop_owner(ipc, struct far, keeper)->broken = true;
}

static inline void
far_wait(struct far *far, bool (*until)(struct far *far))
{
	int64_t deadline_ms = clock_mono_ms() + FAR_WAIT_MS;

	while (!until(far)) {
		assert_true(clock_mono_ms() < deadline_ms);
		assert_int_equal(loop_round(far->loop, 20), 0);
	}
}

static inline bool
far_is_ready(struct far *far)
{
	return far->ready;
}

static inline void
far_channel(struct far *far, enum msg_role role, int fd)
{
	struct msg_channel channel = {.role = role, .epoch = FAR_EPOCH};

	assert_int_equal(ipc_send(&far->keeper, MSG_CHANNEL, 0, &channel, sizeof(channel), &fd, 1), 0);
	close(fd);
}

static inline void
far_open(struct far *far, struct ipc *ipc, enum msg_role self, enum msg_role peer,
    bool (*handler)(struct ipc *ipc, struct ipc_message *message), int fd)
{
	ipc->self = (uint8_t)self;
	ipc->peer = (uint8_t)peer;
	ipc->message_handler = handler;
	ipc->broken_handler = far_broken_handler;
	assert_int_equal(ipc_open(ipc, far->loop, fd), 0);
}

static inline void
far_socket_path(const struct far *far, struct sockaddr_un *ret_sun)
{
	memset(ret_sun, 0, sizeof(*ret_sun));
	ret_sun->sun_family = AF_UNIX;
	snprintf(ret_sun->sun_path, sizeof(ret_sun->sun_path), "%s/control.sock", far->dir);
}

/* An auditor, at first or in place of one that is gone. */
static inline void
far_open_auditor(struct far *far)
{
	int auditor[2];

	assert_int_equal(ipc_pair(auditor), 0);
	far_open(far, &far->auditor, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, far_auditor_handler, auditor[0]);
	far_channel(far, MSG_ROLE_AUDITOR, auditor[1]);
}

/* Start the role on the state that is in far->dir. */
static inline void
far_start(struct far *far)
{
	static const struct role role = {
	    .kind = MSG_ROLE_CONTROL, .name = "control", .confinement = {.syscalls = "control"}};
	int keeper[2], listener;
	struct sockaddr_un sun;

	assert_int_equal(ipc_pair(keeper), 0);
	far->loop = loop_new();
	far->ready = far->broken = false;
	far->pid = fork();
	assert_true(far->pid >= 0);
	if (far->pid == 0) {
		close(keeper[0]);
		far->options.role_fd = keeper[1];
		exit(control_run(&role, &far->options));
	}
	close(keeper[1]);
	far_open(far, &far->keeper, MSG_ROLE_KEEPER, MSG_ROLE_CONTROL, far_keeper_handler, keeper[0]);
	far_wait(far, far_is_ready);
	far_socket_path(far, &sun);
	unlink(sun.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(listener, 16), 0);
	far_open_auditor(far);
	far_channel(far, MSG_ROLE_CONTROL, listener);
}

/* Stop it in order; it must end well. */
static inline void
far_stop(struct far *far)
{
	int status;

	assert_int_equal(ipc_send(&far->keeper, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0), 0);
	for (int i = 0; i < 300 && waitpid(far->pid, &status, WNOHANG) == 0; i++)
		loop_round(far->loop, 10);
	assert_int_equal(status, 0);
	ipc_close(&far->keeper);
	ipc_close(&far->auditor);
	loop_free(far->loop);
}

static inline int
far_setup(void **state)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	snprintf(far->dir, sizeof(far->dir), "/tmp/postern-control.XXXXXX");
	assert_non_null(mkdtemp(far->dir));
	far->options.state_dir = far->options.runtime_dir = far->dir;
	far->options.uids[MSG_ROLE_CONTROL] = geteuid();
	far->options.group_gid = getegid();
	far->options.epoch = FAR_EPOCH;
	far->status.keeper.pid = getpid();
	far->status.audit_ok = far->status.confined = far->status.host_chain = far->status.gateway_count = 1;
	far_start(far);
	*state = far;
	return 0;
}

static inline int
far_teardown(void **state)
{
	struct far *far = *state;
	char command[128];

	far_stop(far);
	snprintf(command, sizeof(command), "rm -rf %s", far->dir);
	assert_int_equal(system(command), 0);
	free(far);
	return 0;
}

/* -- HTTP ---------------------------------------------------------------------------------------------------------- */

/* Send a request; the answer is read by far_receive. */
static inline int
far_send(struct far *far, const char *method, const char *path, const char *body)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun;
	char head[512];
	size_t len = body == NULL ? 0 : strlen(body), sent = 0;

	far_socket_path(far, &sun);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
	    method, path, len);
	assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
	while (sent < len) {
		ssize_t n = send(fd, body + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EPIPE)
			break; /* refused before it was sent */
		if (n > 0)
			sent += (size_t)n;
		loop_round(far->loop, 0);
	}
	return fd;
}

/* Head and body, to the end. */
static inline void
far_receive_text(struct far *far, int fd, char ret_text[FAR_ANSWER_MAX])
{
	int64_t deadline_ms = clock_mono_ms() + FAR_WAIT_MS;
	size_t len = 0;

	for (;;) {
		ssize_t n = recv(fd, ret_text + len, FAR_ANSWER_MAX - 1 - len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET && len > 0))
			break;
		if (n > 0)
			len += (size_t)n;
		else
			assert_int_equal(loop_round(far->loop, 5), 0);
		assert_true(clock_mono_ms() < deadline_ms);
	}
	close(fd);
	ret_text[len] = '\0';
}

static inline json_t *
far_receive(struct far *far, int fd, int *ret_status)
{
	static char text[FAR_ANSWER_MAX];
	char *body;
	json_t *json;

	far_receive_text(far, fd, text);
	assert_int_equal(sscanf(text, "HTTP/1.1 %d", ret_status), 1);
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	json = json_loads(body + 4, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	return json;
}

/* Exchange, with the status that must come. The answer is the caller's. */
static inline json_t *
far_http(struct far *far, const char *method, const char *path, const char *body, int status)
{
	int got;
	json_t *json = far_receive(far, far_send(far, method, path, body), &got);

	if (got != status)
		print_message(
		    "%s %s: %d: %s\n", method, path, got, json_string_value(json_object_get(json, "message")));
	assert_int_equal(got, status);
	return json;
}

/* The same, when only a member's text matters: it must hold part. */
static inline void
far_expect(struct far *far, const char *method, const char *path, const char *body, int status, const char *member,
    const char *part)
{
	json_t *json = far_http(far, method, path, body, status);
	const char *text = json_string_value(json_object_get(json, member));

	assert_non_null(text);
	if (strstr(text, part) == NULL)
		print_message("\"%s\" is \"%s\", expected \"%s\" in it\n", member, text, part);
	assert_non_null(strstr(text, part));
	json_decref(json);
}

/* A stored file's text, "" when it is not there. Static storage. */
static inline const char *
far_file(const struct far *far, const char *name)
{
	static char text[65536];
	char path[256];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/sandboxes/%s", far->dir, name);
	file = fopen(path, "re");
	if (file == NULL)
		return "";
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static inline void
far_write_file(const struct far *far, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sandboxes/%s", far->dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* -- what the tests have in common --------------------------------------------------------------------------------- */

#define FAR_TEST(test) cmocka_unit_test_setup_teardown(test, far_setup, far_teardown)

/* A sandbox with a policy file that allows example.com. */
#define FAR_ATTACH                                                                                                     \
	"{\"name\":\"vm1\",\"kind\":\"tap\",\"policy\":\"version: 1\\nallow:\\n  - host: "                             \
	"example.com\\n\",\"policy_file\":\"p.yaml\"}"

static inline void
far_attach(struct far *far, const char *body)
{
	json_decref(far_http(far, "POST", "/v1/sandboxes", body, 201));
}

/* The last event of a kind, NULL when there was none; how many there were. */
static inline const struct record_event *
far_event(const struct far *far, enum event_kind kind)
{
	for (size_t i = far->record_count; i-- > 0;)
		if (far->records[i].kind == RECORD_EVENT && far->records[i].event.kind == kind)
			return &far->records[i].event;
	return NULL;
}

static inline size_t
far_events(const struct far *far, enum event_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < far->record_count; i++)
		count += far->records[i].kind == RECORD_EVENT && far->records[i].event.kind == kind;
	return count;
}

/* Wait until the log has an event of the kind. */
static inline const struct record_event *
far_wait_event(struct far *far, enum event_kind kind)
{
	int64_t deadline_ms = clock_mono_ms() + FAR_WAIT_MS;

	while (far_event(far, kind) == NULL) {
		assert_true(clock_mono_ms() < deadline_ms);
		assert_int_equal(loop_round(far->loop, 20), 0);
	}
	return far_event(far, kind);
}

static inline bool
far_holds_policy(struct far *far)
{
	return far->held_tag != 0;
}

/* Is there a text with part in a member that is an array of texts? */
static inline bool
far_lists(const json_t *json, const char *member, const char *part)
{
	const json_t *list = json_object_get(json, member);

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strstr(json_string_value(json_array_get(list, i)), part) != NULL)
			return true;
	return false;
}

static inline void
far_add_lease(struct far *far, const char *name, const char *addr)
{
	struct msg_lease_row *row = &far->leases.rows[far->leases.count++];

	row->left_s = 50;
	assert_true(addr_parse(addr, strlen(addr), &row->addr));
	assert_int_equal(name_canonical(name, strlen(name), &row->name), NAME_OK);
}

#endif
