/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's operations, with real namespaces and nftables: the test plays control, auditor and two gateways at the
 * far ends of their channels. Each role has a process, so that the test sees which of them the keeper ends. */
#include "gateway/keeper/keeper.h"
#include "tests/unit/gateway/gateway_roles.h"
#include "policy/text/policy.h"
#include "tests/unit/tap/tap_fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GATEWAYS 2
#define POLICY_NAMES "version: 1\nallow:\n  - host: a.example\n    uses: 2\n"
#define POLICY_RANGE "version: 1\nallow:\n  - cidr: 93.184.216.0/24\n    ports: [9999]\n    udp: true\n"
#define RANGE_TEXT "93.184.216.0/24 . udp . 9999"

struct end {
	struct keeper_role *role;
	int fd;
};

struct lab {
	struct keeper keeper;
	struct end control, auditor, gateways[GATEWAYS];
	/* The message that arrived last at a far end. */
	struct ipc_header header;
	_Alignas(8) unsigned char body[IPC_BODY_MAX];
	size_t fd_count;
};

static const struct options options = {.netns_dir = FIXTURE_DIR, .gateways = GATEWAYS};

/* A sandbox's id that is served by this gateway. */
static int64_t
id_of(unsigned int gateway, int64_t number)
{
	int64_t id = number * 1000;

	while (keeper_sandbox_turn(id) % GATEWAYS != gateway)
		id++;
	return id;
}

/* A ready role with a process that waits for its end. */
static void
end_open(struct lab *lab, struct end *end, struct keeper_role *role)
{
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(ipc_open(&role->ipc, lab->keeper.loop, fds[0]), 0);
	role->ready = true;
	role->epoch = (uint64_t)(fds[1] + 1);
	role->pid = fork();
	assert_true(role->pid >= 0);
	if (role->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	*end = (struct end){role, fds[1]};
}

static void
end_close(struct end *end)
{
	kill(end->role->pid, SIGKILL);
	waitpid(end->role->pid, NULL, 0);
	ipc_close(&end->role->ipc);
	close(end->fd);
}

static int
setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	assert_non_null(lab);
	keeper_init(&lab->keeper, test_roles, &options, NULL);
	lab->keeper.loop = loop_new();
	assert_non_null(lab->keeper.loop);
	recorder_init(&lab->keeper.recorder, lab->keeper.loop, 1);
	end_open(lab, &lab->control, lab->keeper.control);
	end_open(lab, &lab->auditor, lab->keeper.auditor);
	for (unsigned int i = 0; i < GATEWAYS; i++)
		end_open(lab, &lab->gateways[i], &lab->keeper.gateways[i]);
	*state = lab;
	return 0;
}

static int
teardown(void **state)
{
	struct lab *lab = *state;

	for (unsigned int i = 0; i < GATEWAYS; i++)
		keeper_gateway_gone(lab->gateways[i].role);
	assert_null(lab->keeper.pending);
	while (!TAILQ_EMPTY(&lab->keeper.watched))
		keeper_sandbox_free(&lab->keeper, TAILQ_FIRST(&lab->keeper.watched), false);
	assert_int_equal(lab->keeper.sandbox_count, 0);
	usage_table_free(&lab->keeper.usage_next);
	end_close(&lab->control);
	end_close(&lab->auditor);
	for (unsigned int i = 0; i < GATEWAYS; i++)
		end_close(&lab->gateways[i]);
	recorder_free(&lab->keeper.recorder);
	loop_free(lab->keeper.loop);
	free(lab);
	return 0;
}

/* The keeper handles what is there. */
static void
rounds(struct lab *lab)
{
	for (int i = 0; i < 4; i++)
		assert_true(loop_round(lab->keeper.loop, 0) >= 0);
}

/* A far end sends a message, and the keeper handles it. */
static void
say(struct lab *lab, const struct end *end, uint16_t type, uint64_t tag, const void *body, size_t size, const int *fds,
    size_t fd_count)
{
	struct ipc_header header = {.type = type, .fd_count = (uint16_t)fd_count, .size = (uint32_t)size, .tag = tag};
	struct iovec iov[2] = {
	    {.iov_base = &header, .iov_len = sizeof(header)}, {.iov_base = (void *)(uintptr_t)body, .iov_len = size}};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
	} ancillary = {.bytes = {0}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (fd_count > 0) {
		msg.msg_control = ancillary.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, sizeof(int) * fd_count);
	}
	assert_int_equal(sendmsg(end->fd, &msg, MSG_NOSIGNAL), (ssize_t)(sizeof(header) + size));
	rounds(lab);
}

/* The next message at a far end, which must be of this type; its body. */
static const void *
hear(struct lab *lab, const struct end *end, uint16_t type)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
	} ancillary;
	struct iovec iov[2] = {{.iov_base = &lab->header, .iov_len = sizeof(lab->header)},
	    {.iov_base = lab->body, .iov_len = sizeof(lab->body)}};
	struct msghdr msg = {
	    .msg_iov = iov, .msg_iovlen = 2, .msg_control = ancillary.bytes, .msg_controllen = sizeof(ancillary.bytes)};

	if (recvmsg(end->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		fail_msg("no message; %s was expected", msg_name(type));
	if (lab->header.type != type)
		fail_msg("%s; %s was expected", msg_name(lab->header.type), msg_name(type));
	lab->fd_count = 0;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg != NULL; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		lab->fd_count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < lab->fd_count; i++)
			close(((const int *)(const void *)CMSG_DATA(cmsg))[i]);
	}
	return lab->body;
}

static void
silent(const struct end *end)
{
	struct ipc_header header;

	if (recv(end->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK) > 0)
		fail_msg("%s; nothing was expected", msg_name(header.type));
}

/* The answer's code, at a far end. */
static enum error_code
hear_code(struct lab *lab, const struct end *end, uint16_t type, uint64_t tag)
{
	const struct msg_result *result = hear(lab, end, type);

	assert_int_equal(lab->header.tag, tag);
	assert_true(msg_result_valid(result));
	return (enum error_code)result->code;
}

/* A gateway answers the message that arrived last with a result. */
static void
say_result(struct lab *lab, const struct end *end, enum error_code code)
{
	struct msg_result result = {.code = code, .text = ""};

	say(lab, end, MSG_RESULT, lab->header.tag, &result, sizeof(result), NULL, 0);
}

static void
say_policy_done(struct lab *lab, const struct end *end, enum error_code code)
{
	struct msg_policy_done done = {.result = {.code = code}};

	say(lab, end, MSG_POLICY_DONE, lab->header.tag, &done, sizeof(done), NULL, 0);
}

/* Did the keeper end the role's process? And all others live. */
static void
ended(struct lab *lab, const struct end *which)
{
	const struct end *ends[] = {&lab->control, &lab->auditor, &lab->gateways[0], &lab->gateways[1]};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		int status = 0;
		pid_t pid = 0;

		for (int tries = 0; pid == 0 && tries < (ends[i] == which ? 500 : 1); tries++) {
			pid = waitpid(ends[i]->role->pid, &status, WNOHANG | (ends[i] == which ? 0 : __WNOTHREAD));
			if (pid == 0 && ends[i] == which)
				fixture_sleep_ms(2);
		}
		if ((pid != 0) != (ends[i] == which))
			fail_msg("the %s %s", ends[i]->role->row->name, pid == 0 ? "lives" : "was ended");
		assert_true(pid == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	}
}

static int
policy_fd(const char *text)
{
	struct policy policy;
	struct error err;
	int fd;

	assert_ok(policy_parse(text, strlen(text), "test", &policy, &err), err);
	policy_resolve(&policy, 0);
	fd = snapshot_compile(&policy, &err);
	assert_true(fd >= 0);
	policy_free(&policy);
	return fd;
}

static struct msg_attach
attach_of(const char *name, int64_t id)
{
	struct msg_attach attach;
	struct tap_config config;

	memset(&attach, 0, sizeof(attach));
	tap_config_init(&config);
	attach.id = id;
	attach.generation = 1;
	attach.kind = TAP_KIND_TAP;
	attach.owner_uid = attach.owner_gid = (uint32_t)-1;
	snprintf(attach.name, sizeof(attach.name), "%s", name);
	memcpy(attach.ifname, config.ifname, sizeof(attach.ifname));
	attach.guest4 = config.guest4;
	attach.router4 = config.router4;
	attach.bits4 = config.bits4;
	attach.guest6 = config.guest6;
	attach.router6 = config.router6;
	attach.bits6 = config.bits6;
	return attach;
}

static void
say_attach(struct lab *lab, uint64_t tag, const struct msg_attach *attach, const char *policy)
{
	int fd = policy_fd(policy);

	say(lab, &lab->control, MSG_ATTACH, tag, attach, sizeof(*attach), &fd, 1);
	close(fd);
}

/* A sandbox that its gateway serves. */
static struct keeper_sandbox *
attached(struct lab *lab, const char *name, int64_t id, const char *policy)
{
	struct msg_attach attach = attach_of(name, id);
	struct keeper_sandbox *sandbox;
	struct end *gateway = &lab->gateways[keeper_sandbox_turn(id) % GATEWAYS];

	say_attach(lab, 1, &attach, policy);
	hear(lab, gateway, MSG_SANDBOX_ADD);
	say_result(lab, gateway, ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 1), ERROR_NONE);
	sandbox = keeper_sandbox_find(&lab->keeper, id);
	assert_non_null(sandbox);
	assert_true(sandbox->served);
	return sandbox;
}

static const char *
table_of(const struct keeper_sandbox *sandbox)
{
	return fixture_run(tap_netns_fd(sandbox->tap), "nft list table inet postern");
}

static bool
namespace_there(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), FIXTURE_DIR "/postern-%s", name);
	return access(path, F_OK) == 0;
}

/* Attach. */

static void
an_attach_is_answered_when_the_gateway_has_it(void **state)
{
	struct lab *lab = *state;
	int64_t id = id_of(1, 1);
	struct msg_attach attach = attach_of("vm1", id);
	const struct msg_attached *answer;
	const struct msg_sandbox_add *add;

	say_attach(lab, 7, &attach, POLICY_RANGE);
	silent(&lab->control);
	silent(&lab->gateways[0]);
	add = hear(lab, &lab->gateways[1], MSG_SANDBOX_ADD);
	assert_int_equal(add->id, id);
	assert_string_equal(add->name, "vm1");
	assert_int_equal(lab->fd_count, TAP_SOCKET_MAX + 1);
	say_result(lab, &lab->gateways[1], ERROR_NONE);
	assert_int_equal(hear(lab, &lab->gateways[1], MSG_UDP_PORT) != NULL && lab->fd_count == 2, 1);
	answer = hear(lab, &lab->control, MSG_ATTACHED);
	assert_int_equal(lab->header.tag, 7);
	assert_int_equal(answer->result.code, ERROR_NONE);
	assert_string_equal(answer->netns, FIXTURE_DIR "/postern-vm1");
	assert_string_equal(answer->ifname, "tap0");
	assert_true(namespace_there("vm1"));
	assert_contains(table_of(keeper_sandbox_find(&lab->keeper, id)), RANGE_TEXT);
	assert_null(lab->keeper.pending);
}

static void
an_attach_that_cannot_be_leaves_nothing(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *first = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct msg_attach attach = attach_of("vm1", id_of(0, 2));
	int fd;

	say_attach(lab, 2, &attach, POLICY_NAMES); /* the name is taken */
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_EXISTS);
	assert_true(namespace_there("vm1") && tap_intact(first->tap));
	attach = attach_of("../vm2", id_of(0, 2));
	say_attach(lab, 3, &attach, POLICY_NAMES);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 3), ERROR_USAGE);
	memset(attach.name, 'a', sizeof(attach.name));
	say_attach(lab, 4, &attach, POLICY_NAMES);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 4), ERROR_CORRUPT);
	attach = attach_of("vm2", id_of(0, 2));
	attach.kind = TAP_KIND_NETNS;
	strcpy(attach.netns_path, "/dev/null");
	say_attach(lab, 5, &attach, POLICY_NAMES);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 5), ERROR_USAGE);
	attach = attach_of("vm2", id_of(0, 2));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* no policy block */
	say(lab, &lab->control, MSG_ATTACH, 6, &attach, sizeof(attach), &fd, 1);
	close(fd);
	assert_int_not_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 6), ERROR_NONE);
	assert_false(namespace_there("vm2"));
	silent(&lab->gateways[0]);
	assert_int_equal(lab->keeper.sandbox_count, 1);
	ended(lab, NULL);
}

static void
a_gateway_that_refuses_undoes_the_attach(void **state)
{
	struct lab *lab = *state;
	struct msg_attach attach = attach_of("vm1", id_of(0, 1));

	say_attach(lab, 2, &attach, POLICY_NAMES);
	hear(lab, &lab->gateways[0], MSG_SANDBOX_ADD);
	say_result(lab, &lab->gateways[0], ERROR_LIMIT);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_LIMIT);
	assert_null(keeper_sandbox_find(&lab->keeper, attach.id));
	assert_false(namespace_there("vm1"));
}

static void
an_attach_outlives_its_gateway(void **state)
{
	struct lab *lab = *state;
	struct msg_attach attach = attach_of("vm1", id_of(0, 1));
	struct end *gateway = &lab->gateways[0];
	struct keeper_sandbox *sandbox;

	say_attach(lab, 2, &attach, POLICY_NAMES);
	hear(lab, gateway, MSG_SANDBOX_ADD);
	keeper_gateway_gone(gateway->role); /* between the halves */
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_NONE);
	say_result(lab, gateway, ERROR_LIMIT); /* too late */
	sandbox = keeper_sandbox_find(&lab->keeper, attach.id);
	assert_non_null(sandbox);
	assert_false(sandbox->served);
	keeper_attach_gateway_ready(gateway->role); /* the next one */
	hear(lab, gateway, MSG_SANDBOX_ADD);
	assert_true(sandbox->served);
	say_result(lab, gateway, ERROR_LIMIT);
	silent(&lab->control);
	assert_non_null(keeper_sandbox_find(&lab->keeper, attach.id));
	assert_false(sandbox->served);

	gateway->role->ready = false;
	attach = attach_of("vm2", id_of(0, 2));
	say_attach(lab, 3, &attach, POLICY_NAMES);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 3), ERROR_NONE);
	silent(gateway);
}

static void
a_restarted_control_attaches_again(void **state)
{
	struct lab *lab = *state;
	int64_t id = id_of(0, 1);
	struct msg_attach attach = attach_of("vm1", id);
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id, POLICY_NAMES);

	say_attach(lab, 2, &attach, POLICY_NAMES);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_NONE);
	silent(&lab->gateways[0]);
	attach.generation = 2;
	say_attach(lab, 3, &attach, POLICY_RANGE);
	hear(lab, &lab->gateways[0], MSG_UDP_PORT);
	hear(lab, &lab->gateways[0], MSG_POLICY);
	silent(&lab->control);
	say_policy_done(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 3), ERROR_NONE);
	assert_int_equal(sandbox->generation, 2);
}

/* Detach. */

static void
a_detach_is_answered_when_the_sandbox_is_gone(void **state)
{
	struct lab *lab = *state;
	struct msg_sandbox body = {.id = id_of(0, 1)};

	say(lab, &lab->control, MSG_DETACH, 2, &body, sizeof(body), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->control, MSG_RESULT, 2), ERROR_NOT_FOUND);
	attached(lab, "vm1", body.id, POLICY_NAMES);
	say(lab, &lab->control, MSG_DETACH, 3, &body, sizeof(body), NULL, 0);
	hear(lab, &lab->gateways[0], MSG_SANDBOX_DEL);
	silent(&lab->control);
	assert_true(namespace_there("vm1"));
	say_result(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_RESULT, 3), ERROR_NONE);
	assert_false(namespace_there("vm1"));

	body.id = id_of(1, 2);
	attached(lab, "vm2", body.id, POLICY_NAMES);
	say(lab, &lab->control, MSG_DETACH, 4, &body, sizeof(body), NULL, 0);
	hear(lab, &lab->gateways[1], MSG_SANDBOX_DEL);
	keeper_gateway_gone(lab->gateways[1].role);
	assert_int_equal(hear_code(lab, &lab->control, MSG_RESULT, 4), ERROR_NONE);
	assert_false(namespace_there("vm2"));
	assert_int_equal(lab->keeper.sandbox_count, 0);
}

static void
a_name_can_be_forgotten(void **state)
{
	struct lab *lab = *state;
	struct msg_forget forget = {.name = "vm1", .keep = 1};

	attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	say(lab, &lab->control, MSG_FORGET, 2, &forget, sizeof(forget), NULL, 0);
	hear(lab, &lab->gateways[0], MSG_SANDBOX_DEL);
	say_result(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_RESULT, 2), ERROR_NONE);
	assert_int_equal(lab->keeper.sandbox_count, 0);
	assert_true(namespace_there("vm1")); /* kept */
	forget.keep = 0;
	say(lab, &lab->control, MSG_FORGET, 3, &forget, sizeof(forget), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->control, MSG_RESULT, 3), ERROR_NONE);
	assert_false(namespace_there("vm1"));
	strcpy(forget.name, "../vm1");
	say(lab, &lab->control, MSG_FORGET, 4, &forget, sizeof(forget), NULL, 0);
	ended(lab, &lab->control);
}

/* Leases. */

static size_t
lease_size(const struct msg_lease *lease)
{
	return offsetof(struct msg_lease, leases) + lease->count * sizeof(lease->leases[0]);
}

static enum error_code
say_lease(struct lab *lab, const struct end *gateway, uint16_t type, const struct msg_lease *lease)
{
	say(lab, gateway, type, 9, lease, lease_size(lease), NULL, 0);
	return hear_code(lab, gateway, MSG_RESULT, 9);
}

static void
leases_are_put_in_force_and_taken_back(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct msg_lease lease = {.id = sandbox->id,
	    .timeout_s = UINT32_MAX, /* far beyond the cap */
	    .count = 1,
	    .leases = {{fixture_addr(PUBLIC4), IPPROTO_TCP, 443}}};

	assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_ADD, &lease), ERROR_NONE);
	assert_contains(table_of(sandbox), PUBLIC4 " . tcp . 443");
	assert_contains(table_of(sandbox), "expires 1h59m"); /* TAP_LEASE_MAX_S */
	assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_DEL, &lease), ERROR_NONE);
	assert_lacks(table_of(sandbox), PUBLIC4);

	/* Another gateway's sandbox, and none. */
	assert_int_equal(say_lease(lab, &lab->gateways[1], MSG_LEASE_ADD, &lease), ERROR_NOT_FOUND);
	assert_lacks(table_of(sandbox), PUBLIC4);
	lease.id = id_of(0, 2);
	assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_ADD, &lease), ERROR_NOT_FOUND);
	lease.id = sandbox->id;
	assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_ADD, &lease), ERROR_NONE);
	keeper_gateway_gone(lab->gateways[0].role);
	assert_lacks(table_of(sandbox), PUBLIC4);
	ended(lab, NULL);
}

static void
a_never_list_lease_ends_the_gateway(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct msg_lease lease = {.id = sandbox->id,
	    .timeout_s = 60,
	    .count = 2,
	    .leases = {{fixture_addr(PUBLIC4), IPPROTO_TCP, 443}, {fixture_addr("169.254.169.254"), IPPROTO_TCP, 80}}};

	say(lab, &lab->gateways[0], MSG_LEASE_ADD, 9, &lease, lease_size(&lease), NULL, 0);
	ended(lab, &lab->gateways[0]);
	assert_lacks(table_of(sandbox), PUBLIC4);
	assert_int_equal(lab->keeper.sandbox_count, 1);
}

static void
a_full_set_is_a_limit_and_no_offence(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct msg_lease lease = {.id = sandbox->id, .timeout_s = 7200, .count = TAP_LEASE_BATCH_MAX};

	for (unsigned int i = 0; i < TAP_LEASE_BATCH_MAX; i++)
		lease.leases[i] = (struct tap_lease){fixture_addr(PUBLIC4), IPPROTO_TCP, (uint16_t)(1000 + i)};
	for (uint8_t batch = 0; batch < TAP_LEASES_MAX / TAP_LEASE_BATCH_MAX; batch++) {
		for (unsigned int i = 0; i < TAP_LEASE_BATCH_MAX; i++)
			lease.leases[i].addr.bytes[3] = batch;
		assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_ADD, &lease), ERROR_NONE);
	}
	lease.count = 1;
	lease.leases[0].port = 443;
	assert_int_equal(say_lease(lab, &lab->gateways[0], MSG_LEASE_ADD, &lease), ERROR_LIMIT);
	ended(lab, NULL);
}

static void
the_question_for_leases_is_passed_on(void **state)
{
	struct lab *lab = *state;
	struct msg_leases question = {.id = id_of(0, 1)};
	struct msg_leases_done done = {.count = 0, .flows = 5};

	say(lab, &lab->control, MSG_LEASES, 2, &question, sizeof(question), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->control, MSG_LEASES_DONE, 2), ERROR_NOT_FOUND);
	attached(lab, "vm1", question.id, POLICY_NAMES);
	say(lab, &lab->control, MSG_LEASES, 3, &question, sizeof(question), NULL, 0);
	hear(lab, &lab->gateways[0], MSG_LEASES);
	say(lab, &lab->gateways[0], MSG_LEASES_DONE, lab->header.tag, &done, sizeof(done), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->control, MSG_LEASES_DONE, 3), ERROR_NONE);
	assert_int_equal(((struct msg_leases_done *)(void *)lab->body)->flows, 5);
	say(lab, &lab->control, MSG_LEASES, 4, &question, sizeof(question), NULL, 0);
	hear(lab, &lab->gateways[0], MSG_LEASES);
	keeper_gateway_gone(lab->gateways[0].role);
	assert_int_equal(hear_code(lab, &lab->control, MSG_LEASES_DONE, 4), ERROR_SYSTEM);
	lab->gateways[0].role->ready = false;
	say(lab, &lab->control, MSG_LEASES, 5, &question, sizeof(question), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->control, MSG_LEASES_DONE, 5), ERROR_SYSTEM);
}

/* Policies. */

static void
say_policy(struct lab *lab, uint16_t type, uint64_t tag, int64_t id, const char *policy)
{
	struct msg_policy body = {.id = id, .generation = 2};
	int fd = policy == NULL ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : policy_fd(policy);

	say(lab, &lab->control, type, tag, &body, sizeof(body), &fd, 1);
	close(fd);
}

static void
a_policy_is_swapped_when_the_gateway_takes_it(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct end *gateway = &lab->gateways[0];

	say_policy(lab, MSG_POLICY, 2, sandbox->id, POLICY_RANGE);
	hear(lab, gateway, MSG_UDP_PORT);
	hear(lab, gateway, MSG_POLICY);
	silent(&lab->control);
	assert_contains(table_of(sandbox), RANGE_TEXT);
	assert_int_equal(sandbox->generation, 1);
	say_policy_done(lab, gateway, ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 2), ERROR_NONE);
	assert_int_equal(sandbox->generation, 2);
	silent(gateway);

	say_policy(lab, MSG_POLICY, 3, sandbox->id, POLICY_NAMES);
	hear(lab, gateway, MSG_POLICY);
	say_policy_done(lab, gateway, ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 3), ERROR_NONE);
	assert_lacks(table_of(sandbox), RANGE_TEXT);
	hear(lab, gateway, MSG_UDP_PORT_DEL);
}

static void
a_policy_that_fails_leaves_the_old_one(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct end *gateway = &lab->gateways[0];

	say_policy(lab, MSG_POLICY, 2, id_of(0, 2), POLICY_RANGE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 2), ERROR_NOT_FOUND);
	say_policy(lab, MSG_POLICY, 3, sandbox->id, NULL); /* a block that does not verify */
	assert_int_not_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 3), ERROR_NONE);
	assert_null(lab->keeper.pending);
	silent(gateway);

	say_policy(lab, MSG_POLICY, 4, sandbox->id, POLICY_RANGE);
	hear(lab, gateway, MSG_UDP_PORT);
	hear(lab, gateway, MSG_POLICY);
	say_policy_done(lab, gateway, ERROR_LIMIT);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 4), ERROR_LIMIT);
	hear(lab, gateway, MSG_UDP_PORT_DEL);
	assert_lacks(table_of(sandbox), RANGE_TEXT);
	assert_int_equal(sandbox->generation, 1);

	say_policy(lab, MSG_POLICY, 5, sandbox->id, POLICY_RANGE);
	keeper_gateway_gone(gateway->role);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 5), ERROR_SYSTEM);
	assert_lacks(table_of(sandbox), RANGE_TEXT);
	assert_int_equal(sandbox->generation, 1);
	gateway->role->ready = false;
	say_policy(lab, MSG_POLICY, 6, sandbox->id, POLICY_RANGE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 6), ERROR_SYSTEM);
	ended(lab, NULL);
}

static void
a_preview_changes_nothing(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);

	say_policy(lab, MSG_POLICY_PREVIEW, 2, sandbox->id, POLICY_RANGE);
	hear(lab, &lab->gateways[0], MSG_POLICY_PREVIEW);
	assert_int_equal(lab->fd_count, 1);
	say_policy_done(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 2), ERROR_NONE);
	assert_lacks(table_of(sandbox), RANGE_TEXT);
	assert_int_equal(sandbox->generation, 1);
}

/* Usage, counters, status. */

static void
usage_goes_on_where_control_says(void **state)
{
	struct lab *lab = *state;
	int64_t id = id_of(0, 1);
	struct msg_attach attach = attach_of("vm1", id);
	struct msg_usage usage = {.id = id, .count = 1, .rows = {{.uses = 3, .upload = 30}}};
	const size_t size = offsetof(struct msg_usage, rows) + sizeof(usage.rows[0]);
	const struct msg_usage *heard;

	say(lab, &lab->control, MSG_USAGE, 0, &usage, size, NULL, 0);
	say_attach(lab, 2, &attach, POLICY_NAMES);
	heard = hear(lab, &lab->gateways[0], MSG_USAGE); /* before the sandbox */
	assert_int_equal(heard->rows[0].uses, 3);
	hear(lab, &lab->gateways[0], MSG_SANDBOX_ADD);
	say_result(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_NONE);

	usage.rows[0].uses = 4;
	say(lab, &lab->gateways[1], MSG_USAGE, 0, &usage, size, NULL, 0); /* it is not that one's */
	silent(&lab->control);
	say(lab, &lab->gateways[0], MSG_USAGE, 0, &usage, size, NULL, 0);
	heard = hear(lab, &lab->control, MSG_USAGE);
	assert_string_equal(heard->name, "vm1");
	assert_int_equal(heard->rows[0].uses, 4);
	memset(usage.name, 'a', sizeof(usage.name));
	say(lab, &lab->gateways[0], MSG_USAGE, 0, &usage, size, NULL, 0);
	ended(lab, &lab->gateways[0]);
}

static void
counters_and_status_are_answered(void **state)
{
	struct lab *lab = *state;
	struct msg_sandbox body = {.id = id_of(0, 1)};
	const struct msg_status *status;

	attached(lab, "vm1", body.id, POLICY_NAMES);
	say(lab, &lab->gateways[0], MSG_COUNTERS, 2, &body, sizeof(body), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->gateways[0], MSG_COUNTERS_DONE, 2), ERROR_NONE);
	say(lab, &lab->gateways[1], MSG_COUNTERS, 3, &body, sizeof(body), NULL, 0);
	assert_int_equal(hear_code(lab, &lab->gateways[1], MSG_COUNTERS_DONE, 3), ERROR_NOT_FOUND);
	lab->gateways[1].role->ready = false;
	say(lab, &lab->control, MSG_STATUS, 4, NULL, 0, NULL, 0);
	status = hear(lab, &lab->control, MSG_STATUS_DONE);
	assert_int_equal(status->sandboxes, 1);
	assert_int_equal(status->gateway_count, GATEWAYS);
	assert_int_equal(status->gateways[0].pid, lab->gateways[0].role->pid);
	assert_int_equal(status->gateways[1].pid, 0);
}

/* What the keeper watches. */

static void
rules_that_were_changed_are_restored(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_RANGE);

	assert_true(keeper_watch_look(&lab->keeper) > 0);
	assert_int_equal(lab->keeper.tampered, 0);
	fixture_run(tap_netns_fd(sandbox->tap), "nft flush chain inet postern prerouting");
	assert_false(tap_intact(sandbox->tap));
	keeper_watch_look(&lab->keeper);
	assert_int_equal(lab->keeper.tampered, 1);
	assert_true(tap_intact(sandbox->tap));
	assert_contains(table_of(sandbox), RANGE_TEXT);
	keeper_watch_look(&lab->keeper);
	assert_int_equal(lab->keeper.tampered, 1);
}

static void
a_foreign_socket_is_reported(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	int fd = fixture_socket(tap_netns_fd(sandbox->tap), AF_INET, SOCK_RAW, IPPROTO_ICMP);

	for (int i = 0; i < 12; i++) /* sockets are counted at some looks only */
		keeper_watch_look(&lab->keeper);
	close(fd);
	assert_int_equal(sandbox->foreign_sockets, 1);
	assert_int_equal(lab->keeper.tampered, 1);
}

/* Messages that no honest role sends. */

static void
a_malformed_message_ends_its_sender(void **state)
{
	struct lab *lab = *state;
	const struct {
		struct end *from;
		uint16_t type;
		size_t size;
		size_t fds;
	} messages[] = {
	    {&lab->control, MSG_ATTACH, sizeof(struct msg_attach) - 1, 1},             /* size */
	    {&lab->control, MSG_ATTACH, sizeof(struct msg_attach), 0},                 /* descriptor missing */
	    {&lab->control, MSG_DETACH, sizeof(struct msg_sandbox), 1},                /* one too many */
	    {&lab->control, MSG_LEASE_ADD, offsetof(struct msg_lease, leases), 0},     /* another role's */
	    {&lab->control, MSG_TYPE_MAX, 0, 0},                                       /* none at all */
	    {&lab->control, MSG_READY, sizeof(struct msg_ready), 0},                   /* for the second time */
	    {&lab->gateways[0], MSG_DETACH, sizeof(struct msg_sandbox), 0},            /* control's */
	    {&lab->gateways[0], MSG_LEASE_ADD, offsetof(struct msg_lease, leases), 0}, /* count 0 */
	    {&lab->gateways[1], MSG_SENDER_BAD, sizeof(struct msg_sender), 0},         /* the auditor's */
	    {&lab->auditor, MSG_STATUS, 0, 0},                                         /* control's */
	};
	static const unsigned char zeros[IPC_BODY_MAX];
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct end *from = messages[i].from;
		struct keeper_role *role = from->role;

		say(lab, from, messages[i].type, 5, zeros, messages[i].size, &from->fd, messages[i].fds);
		ended(lab, from);
		silent(from);
		assert_int_equal(lab->keeper.sandbox_count, 1);
		assert_true(tap_intact(sandbox->tap));
		close(from->fd);
		ipc_close(&role->ipc);
		end_open(lab, from, role); /* as if it were started again */
	}
}

static void
a_role_says_nothing_before_it_is_ready(void **state)
{
	struct lab *lab = *state;

	lab->control.role->ready = false;
	say(lab, &lab->control, MSG_STATUS, 2, NULL, 0, NULL, 0);
	ended(lab, &lab->control);
	silent(&lab->control);
}

static void
an_answer_of_another_type_ends_the_gateway(void **state)
{
	struct lab *lab = *state;
	struct keeper_sandbox *sandbox = attached(lab, "vm1", id_of(0, 1), POLICY_NAMES);
	struct msg_policy_done done = {.result = {.code = ERROR_CODE_MAX}};

	say_policy(lab, MSG_POLICY, 2, sandbox->id, POLICY_NAMES);
	hear(lab, &lab->gateways[0], MSG_POLICY);
	say_result(lab, &lab->gateways[1], ERROR_NONE); /* not this one's to answer */
	silent(&lab->control);
	say_result(lab, &lab->gateways[0], ERROR_NONE);
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 2), ERROR_SYSTEM);
	assert_int_equal(sandbox->generation, 1);
	ended(lab, &lab->gateways[0]);

	say(lab, &lab->gateways[1], MSG_POLICY_DONE, 1, &done, sizeof(done), NULL, 0);
	assert_int_equal(waitpid(lab->gateways[1].role->pid, NULL, 0), lab->gateways[1].role->pid);
}

static void
lost_descriptors_are_a_limit(void **state)
{
	struct lab *lab = *state;
	struct ipc_message message = {.header = {.type = MSG_ATTACH, .tag = 2}};

	assert_true(keeper_request_fds_lost_handler(&lab->control.role->ipc, &message));
	assert_int_equal(hear_code(lab, &lab->control, MSG_ATTACHED, 2), ERROR_LIMIT);
	message.header.type = MSG_POLICY;
	assert_true(keeper_request_fds_lost_handler(&lab->control.role->ipc, &message));
	assert_int_equal(hear_code(lab, &lab->control, MSG_POLICY_DONE, 2), ERROR_LIMIT);
	message.header.type = MSG_STATUS;
	assert_false(keeper_request_fds_lost_handler(&lab->control.role->ipc, &message));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(an_attach_is_answered_when_the_gateway_has_it),
	    TEST(an_attach_that_cannot_be_leaves_nothing),
	    TEST(a_gateway_that_refuses_undoes_the_attach),
	    TEST(an_attach_outlives_its_gateway),
	    TEST(a_restarted_control_attaches_again),
	    TEST(a_detach_is_answered_when_the_sandbox_is_gone),
	    TEST(a_name_can_be_forgotten),
	    TEST(leases_are_put_in_force_and_taken_back),
	    TEST(a_never_list_lease_ends_the_gateway),
	    TEST(a_full_set_is_a_limit_and_no_offence),
	    TEST(the_question_for_leases_is_passed_on),
	    TEST(a_policy_is_swapped_when_the_gateway_takes_it),
	    TEST(a_policy_that_fails_leaves_the_old_one),
	    TEST(a_preview_changes_nothing),
	    TEST(usage_goes_on_where_control_says),
	    TEST(counters_and_status_are_answered),
	    TEST(rules_that_were_changed_are_restored),
	    TEST(a_foreign_socket_is_reported),
	    TEST(a_malformed_message_ends_its_sender),
	    TEST(a_role_says_nothing_before_it_is_ready),
	    TEST(an_answer_of_another_type_ends_the_gateway),
	    TEST(lost_descriptors_are_a_limit),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
