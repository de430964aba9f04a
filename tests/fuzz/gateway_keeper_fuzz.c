/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the keeper's children send it, in any order and with any bytes: nothing is read beyond a message, every request
 * of control gets one answer of the right kind, gateways hear of their own sandboxes only, and no descriptor stays
 * open.
 *
 * The keeper has two gateways with a sandbox each, whose namespace is gone, so that what reaches the kernel fails
 * there. A message of the input is who sends it, its type, its tag, how its length differs from the right one, and
 * patches to a body that an honest child would send: where, how many bytes, the bytes. */
#include "base/reader.h"
#include "gateway/keeper/keeper.h"
#include "tests/unit/gateway/gateway_roles.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define GATEWAYS 2
#define MESSAGES_MAX 16
/* Descriptors that are looked at. */
#define FDS_MAX 64
/* Bodies are no longer, whatever a length's difference. */
#define BODY_MAX (IPC_BODY_MAX - 256)

/* What waits for an answer: control's requests, and the keeper's at a gateway. */
struct tags {
	uint64_t tags[4 * MESSAGES_MAX];
	uint16_t types[4 * MESSAGES_MAX];
	size_t count;
};

static const struct options options = {.netns_dir = "/nonexistent/postern-fuzz", .gateways = GATEWAYS};
static struct keeper keeper;
static int snapshot_fd = -1;
static int far_control, far_gateways[GATEWAYS];
static struct tags asked, passed_on[GATEWAYS];
static int64_t ids[GATEWAYS]; /* a sandbox of each gateway */

static void
must(bool good)
{
	if (!good)
		abort();
}

static int
role_open(struct keeper_role *role)
{
	int fds[2];

	must(ipc_pair(fds) == 0 && ipc_open(&role->ipc, keeper.loop, fds[0]) == 0);
	role->ready = true;
	return fds[1];
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char policy_text[] = "version: 1\nallow:\n  - host: a.example\n    uses: 2\n";
	struct policy policy;
	struct error err;

	(void)argc, (void)argv;
	keeper_init(&keeper, test_roles, &options, NULL);
	keeper.loop = loop_new();
	must(keeper.loop != NULL);
	far_control = role_open(keeper.control);
	close(role_open(keeper.auditor));
	for (unsigned int i = 0; i < GATEWAYS; i++) {
		far_gateways[i] = role_open(&keeper.gateways[i]);
		while (keeper_sandbox_turn(++ids[i]) % GATEWAYS != i)
			;
	}
	keeper.recorder.ipc.source.fd = -1;
	must(policy_parse(policy_text, strlen(policy_text), "fuzz", &policy, &err) == 0);
	policy_resolve(&policy, 0);
	snapshot_fd = snapshot_compile(&policy, &err);
	must(snapshot_fd >= 0);
	policy_free(&policy);
	return 0;
}

static void
sandbox_add(unsigned int gateway)
{
	struct keeper_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	struct tap_config config;
	struct error err;

	tap_config_init(&config);
	snprintf(config.name, sizeof(config.name), "vm%u", gateway);
	must(sandbox != NULL);
	sandbox->id = ids[gateway];
	sandbox->generation = 1;
	sandbox->gateway = &keeper.gateways[gateway];
	sandbox->served = true;
	sandbox->tap = tap_alloc(&config);
	sandbox->snapshot_fd = fcntl(snapshot_fd, F_DUPFD_CLOEXEC, 0);
	sandbox->snapshot = snapshot_open(sandbox->snapshot_fd, &err);
	must(sandbox->tap != NULL && sandbox->snapshot != NULL);
	for (int i = 0; i < TAP_SOCKET_MAX; i++)
		sandbox->tap->sockets[i] = fcntl(snapshot_fd, F_DUPFD_CLOEXEC, 0);
	keeper_sandbox_add(&keeper, sandbox);
}

static void
tags_add(struct tags *tags, uint64_t tag, uint16_t type)
{
	must(tags->count < sizeof(tags->tags) / sizeof(tags->tags[0]));
	tags->tags[tags->count] = tag;
	tags->types[tags->count++] = type;
}

/* Take the tag away and return its type; 0: it is not among them. */
static uint16_t
tags_take(struct tags *tags, uint64_t tag)
{
	for (size_t i = 0; i < tags->count; i++) {
		uint16_t type = tags->types[i];

		if (tags->tags[i] != tag)
			continue;
		tags->tags[i] = tags->tags[--tags->count];
		tags->types[i] = tags->types[tags->count];
		return type;
	}
	return 0;
}

/* What the keeper sent to this end: the next message's header and body; false when there is none. */
static bool
far_receive(int fd, enum msg_role to, struct ipc_header *header, unsigned char body[IPC_BODY_MAX])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
	} control;
	struct iovec iov[2] = {
	    {.iov_base = header, .iov_len = sizeof(*header)}, {.iov_base = body, .iov_len = IPC_BODY_MAX}};
	struct msghdr msg = {
	    .msg_iov = iov, .msg_iovlen = 2, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t fds = 0;

	if (n < 0)
		return false;
	must(n >= (ssize_t)sizeof(*header) && header->size == (size_t)n - sizeof(*header));
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg != NULL; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		const int *passed = (const int *)(const void *)CMSG_DATA(cmsg);

		for (size_t i = 0; i < (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			close(passed[i]);
		fds = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	}
	must(msg_wrong(header->type, MSG_ROLE_KEEPER, to, body, header->size, fds) == NULL);
	return true;
}

static void
control_hears(const struct ipc_header *header, const unsigned char *body)
{
	const struct msg_usage *usage = (const void *)body;

	if (header->type == MSG_USAGE) {
		must(msg_usage_valid(usage) && (usage->id == ids[0] || usage->id == ids[1]));
		return;
	}
	must(msg_answer_type(tags_take(&asked, header->tag)) == header->type);
	/* Every answer begins with the result. */
	must(msg_result_valid((const void *)body));
}

static void
gateway_hears(unsigned int gateway, const struct ipc_header *header, const unsigned char *body)
{
	int64_t id;

	/* Answers to its own requests. */
	if (header->type == MSG_RESULT || header->type == MSG_COUNTERS_DONE)
		return;
	memcpy(&id, body, sizeof(id));
	must(id == ids[gateway]);
	if (header->type != MSG_USAGE && header->type != MSG_UDP_PORT && header->type != MSG_UDP_PORT_DEL)
		tags_add(&passed_on[gateway], header->tag, header->type);
}

static void
far_ends_hear(void)
{
	static _Alignas(8) unsigned char body[IPC_BODY_MAX];
	struct ipc_header header;

	while (far_receive(far_control, MSG_ROLE_CONTROL, &header, body))
		control_hears(&header, body);
	for (unsigned int i = 0; i < GATEWAYS; i++)
		while (far_receive(far_gateways[i], MSG_ROLE_GATEWAY, &header, body))
			gateway_hears(i, &header, body);
}

static struct keeper_role *
role_of(unsigned int who)
{
	if (who == 0)
		return keeper.control;
	return who <= GATEWAYS ? &keeper.gateways[who - 1] : keeper.auditor;
}

/* A body as an honest child would send it. */
static uint32_t
body_make(enum msg_role role, uint16_t type, unsigned int gateway, unsigned char body[IPC_BODY_MAX])
{
	static const uint8_t four[4] = {93, 184, 216, 34};
	struct msg_lease *lease = (void *)body;
	struct msg_usage *usage = (void *)body;
	struct msg_leases_done *leases = (void *)body;
	const struct msg_row *row = msg_row_find(type, role, MSG_ROLE_KEEPER);

	memset(body, 0, IPC_BODY_MAX);
	switch (type) {
	case MSG_LEASE_ADD:
	case MSG_LEASE_DEL:
		*lease = (struct msg_lease){.id = ids[gateway], .timeout_s = 60, .count = 2};
		for (uint16_t i = 0; i < lease->count; i++)
			lease->leases[i] = (struct tap_lease){
			    .addr = addr_from_ipv4(four), .proto = IPPROTO_TCP, .port = (uint16_t)(443 + i)};
		return (uint32_t)(offsetof(struct msg_lease, leases) + lease->count * sizeof(lease->leases[0]));
	case MSG_USAGE:
		*usage =
		    (struct msg_usage){.id = ids[gateway], .count = 2, .rows = {{.uses = 1}, {.rule = 7, .upload = 9}}};
		return (uint32_t)(offsetof(struct msg_usage, rows) + usage->count * sizeof(usage->rows[0]));
	case MSG_LEASES_DONE:
		leases->count = 1;
		leases->rows[0].addr = addr_from_ipv4(four);
		must(name_canonical("a.example", 9, &leases->rows[0].name) == NAME_OK);
		break;
	case MSG_FORGET:
		snprintf(((struct msg_forget *)(void *)body)->name, TAP_NAME_MAX, "vm%u", gateway);
		break;
	case MSG_ATTACH:
	case MSG_DETACH:
	case MSG_POLICY:
	case MSG_POLICY_PREVIEW:
	case MSG_LEASES:
	case MSG_COUNTERS:
		memcpy(body, &ids[gateway], sizeof(ids[gateway]));
		break;
	default: /* zeros will do */
		break;
	}
	return row == NULL ? 0 : row->size;
}

static void
body_patch(unsigned char body[IPC_BODY_MAX], struct reader *r)
{
	for (unsigned int patches = reader_u8(r) % 8; patches > 0; patches--) {
		size_t at = reader_u16(r), size = reader_u8(r);
		const uint8_t *bytes = reader_bytes(r, size);

		if (bytes != NULL)
			memcpy(body + at % BODY_MAX, bytes, size);
	}
}

/* What would be done to a namespace is none of ours to try. */
static bool
makes_a_sandbox(uint16_t type, const unsigned char *body, uint32_t size)
{
	int64_t id;

	if (type != MSG_ATTACH || size < sizeof(id))
		return false;
	memcpy(&id, body, sizeof(id));
	return keeper_sandbox_find(&keeper, id) == NULL;
}

/* A child that sent what no honest one sends is killed; control then asks anew, a gateway is started again. */
static void
role_refused(struct keeper_role *role, uint64_t number)
{
	if (role->row->kind == MSG_ROLE_GATEWAY) {
		passed_on[role->index].count = 0;
		keeper_gateway_gone(role);
		keeper_attach_gateway_ready(role);
	} else if (role->row->kind == MSG_ROLE_CONTROL) {
		tags_take(&asked, number);
	}
}

/* Hand the role's message to the keeper, in memory of the exact size, so that a sanitizer sees one byte too far. */
static bool
hand_over(struct keeper_role *role, struct ipc_message *message, const unsigned char *body)
{
	void *exact = malloc(message->header.size == 0 ? 1 : message->header.size);
	const struct msg_row *row = msg_row_find(message->header.type, role->row->kind, MSG_ROLE_KEEPER);
	size_t fds = row == NULL ? 0 : row->fds;
	bool good;

	must(exact != NULL);
	memcpy(exact, body, message->header.size);
	message->body = exact;
	message->header.fd_count = (uint16_t)fds;
	for (size_t i = 0; i < fds; i++)
		message->fds[i] = fcntl(snapshot_fd, F_DUPFD_CLOEXEC, 0);
	good = ipc_take(&role->ipc, message);
	for (size_t i = 0; i < fds; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	free(exact);
	return good;
}

static void
send_one(struct reader *r, uint64_t number)
{
	static _Alignas(8) unsigned char body[IPC_BODY_MAX];
	unsigned int who = reader_u8(r), gateway;
	uint16_t type = reader_u8(r) % (MSG_TYPE_MAX + 1u);
	uint8_t tag = reader_u8(r);
	int8_t longer = (int8_t)reader_u8(r);
	struct keeper_role *role = role_of(who % 4);
	struct ipc_message message = {.header = {.type = type, .tag = number}};
	struct tags *open = role->row->kind == MSG_ROLE_GATEWAY ? &passed_on[role->index] : NULL;
	bool good;

	gateway = role->row->kind == MSG_ROLE_GATEWAY ? role->index : who / 4 % GATEWAYS;
	message.header.size = body_make(role->row->kind, type, gateway, body);
	body_patch(body, r);
	if (longer > 0 || message.header.size >= (uint32_t)-longer)
		message.header.size += (uint32_t)longer;
	if (makes_a_sandbox(type, body, message.header.size))
		return;
	if (open != NULL && open->count > 0 && tag < 0x80)
		message.header.tag = open->tags[tag % open->count];
	if (role->row->kind == MSG_ROLE_CONTROL && msg_answer_type(type) != 0)
		tags_add(&asked, number, type);
	good = hand_over(role, &message, body);
	far_ends_hear();
	if (open != NULL && (type == MSG_RESULT || type == MSG_POLICY_DONE || type == MSG_LEASES_DONE))
		tags_take(open, message.header.tag);
	if (!good)
		role_refused(role, number);
	far_ends_hear();
}

static size_t
count_fds(void)
{
	size_t count = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Some are closed by a thread. */
static void
expect_fds(size_t count)
{
	for (int i = 0; i < 1000 && count_fds() > count; i++)
		usleep(1000);
	must(count_fds() == count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct reader r = reader_make(bytes, len);
	size_t fds = count_fds();

	asked.count = 0;
	for (unsigned int i = 0; i < GATEWAYS; i++) {
		passed_on[i].count = 0;
		memset(&keeper.gateways[i].totals, 0, sizeof(keeper.gateways[i].totals));
		sandbox_add(i);
	}
	for (uint64_t number = 1; number <= MESSAGES_MAX && reader_left(&r) > 0; number++)
		send_one(&r, number);
	for (unsigned int i = 0; i < GATEWAYS; i++)
		keeper_gateway_gone(&keeper.gateways[i]);
	far_ends_hear();
	must(asked.count == 0 && keeper.pending == NULL);
	while (!TAILQ_EMPTY(&keeper.watched))
		keeper_sandbox_free(&keeper, TAILQ_FIRST(&keeper.watched), false);
	usage_table_free(&keeper.usage_next);
	keeper.usage_next_id = 0;
	must(keeper.sandbox_count == 0);
	expect_fds(fds);
	return 0;
}
