/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gateway role: its set-up, its sandboxes, and the keeper's messages.
 *
 * Set-up order: what needs the host's root (netlink route socket, TLS context, databases of addresses) is opened first;
 * then the process gives up root directory, identity and system calls; only then does it tell the keeper that it is
 * ready and gets sandboxes. */
#include "gateway/path/refused/refused.h"
#include "gateway/path/dns/dns.h"
#include "gateway/path/udp/udp.h"
#include "gateway/path/tcp/proxy.h"
#include "gateway/path/gateway.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/role.h"
#include "gateway/path/expiry.h"
#include "gateway/path/count/quota.h"
#include "gateway/shared/options.h"
#include "gateway/path/repolicy.h"
#include "gateway/path/tcp/tls_hello.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Time that open records get to become durable when the daemon stops. */
#define GATEWAY_STOP_MS 3000
/* How often the stop looks whether they are. */
#define GATEWAY_STOP_STEP_MS 20

static struct gateway gateway;
static struct loop_timer gateway_stop_timer;
static int64_t gateway_stop_by_ms;
/* Usage of the sandbox that the keeper is about to add, received before it. */
static struct usage_table gateway_used;
static int64_t gateway_used_id;

/* The list that a sandbox of this id is in. */
static struct sandbox **
gateway_bucket(int64_t id)
{
	/* Other bits than those by which the keeper chose this gateway. */
	return &gateway.sandboxes[((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 20) % GATEWAY_BUCKETS];
}

/* The sandbox with this id; NULL: none. */
static struct sandbox *
gateway_find(int64_t id)
{
	struct sandbox *sandbox = *gateway_bucket(id);

	while (sandbox != NULL && sandbox->id != id)
		sandbox = sandbox->next;
	return sandbox;
}

/* Sends MSG_RESULT. */
static void
gateway_answer(uint64_t tag, enum error_code code, const char *text)
{
	struct msg_result result = {.code = code};

	snprintf(result.text, sizeof(result.text), "%s", text);
	ipc_send(&gateway.link.ipc, MSG_RESULT, tag, &result, sizeof(result), NULL, 0);
}

/* Detaches every data path and frees the sandbox; open records are closed as end. */
static void
sandbox_free(struct sandbox *sandbox, enum end_reason end)
{
	expiry_stop(sandbox);
	proxy_detach(sandbox, end);
	udp_detach(sandbox, end);
	dns_detach(sandbox);
	refused_detach(sandbox);
	balance_release(sandbox->balance);
	quota_detach(sandbox);
	lease_table_free(&sandbox->leases);
	snapshot_free(sandbox->policy);
	free(sandbox);
}

/* Take descriptor i of a message. */
static int
gateway_take_fd(struct ipc_message *message, size_t i)
{
	int fd = message->fds[i];

	message->fds[i] = -1;
	return fd;
}

/* Hang every data path on the sandbox. 0 or -errno; on failure the caller frees what was hung. */
static int
sandbox_attach_paths(struct sandbox *sandbox, struct ipc_message *message)
{
	int rc;

	rc = balance_attach(sandbox);
	if (rc == 0)
		rc = quota_attach(sandbox, gateway_used_id == sandbox->id ? &gateway_used : NULL);
	usage_table_free(&gateway_used);
	gateway_used_id = 0;
	if (rc == 0)
		rc = refused_attach(sandbox, gateway_take_fd(message, TAP_SOCKET_NFLOG));
	if (rc == 0)
		rc = udp_attach(sandbox);
	if (rc == 0)
		rc = proxy_attach(
		    sandbox, gateway_take_fd(message, TAP_SOCKET_TCP4), gateway_take_fd(message, TAP_SOCKET_TCP6));
	if (rc == 0)
		rc = dns_attach(sandbox, gateway_take_fd(message, TAP_SOCKET_DNS_UDP4),
		    gateway_take_fd(message, TAP_SOCKET_DNS_UDP6), gateway_take_fd(message, TAP_SOCKET_DNS_TCP4),
		    gateway_take_fd(message, TAP_SOCKET_DNS_TCP6));
	return rc;
}

/* MSG_SANDBOX_ADD: attaches a sandbox and answers. */
static bool
gateway_sandbox_add(struct ipc_message *message)
{
	const struct msg_sandbox_add *add = message->body;
	struct sandbox *sandbox = gateway_find(add->id) == NULL ? calloc(1, sizeof(*sandbox)) : NULL;
	struct error err;
	int rc;

	if (sandbox == NULL) {
		gateway_answer(
		    message->header.tag, ERROR_SYSTEM, "the gateway knows this sandbox already, or has no memory");
		return true;
	}
	sandbox->gateway = &gateway;
	sandbox->id = add->id;
	sandbox->generation = add->generation;
	memcpy(sandbox->name, add->name, sizeof(sandbox->name));
	sandbox->guest4 = add->guest4;
	sandbox->router4 = add->router4;
	sandbox->guest6 = add->guest6;
	sandbox->router6 = add->router6;
	memcpy(sandbox->refused_base, add->refused_base, sizeof(sandbox->refused_base));
	sandbox->policy = snapshot_open(message->fds[TAP_SOCKET_MAX], &err);
	if (sandbox->policy == NULL) {
		free(sandbox);
		gateway_answer(message->header.tag, err.code, err.text);
		return true;
	}
	rc = sandbox_attach_paths(sandbox, message);
	if (rc < 0) {
		sandbox_free(sandbox, END_ERROR);
		gateway_answer(message->header.tag, ERROR_SYSTEM, strerror(-rc));
		return true;
	}
	expiry_start(sandbox);
	sandbox->next = *gateway_bucket(sandbox->id);
	*gateway_bucket(sandbox->id) = sandbox;
	gateway_answer(message->header.tag, ERROR_NONE, "");
	return true;
}

/* MSG_USAGE: keeps the usage of a sandbox that is not there yet. For one that is, this process knows better. */
static bool
gateway_usage(struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;

	if (!msg_usage_valid(usage))
		return false;
	if (gateway_used_id != usage->id)
		usage_table_free(&gateway_used);
	gateway_used_id = usage->id;
	return usage_table_take(&gateway_used, usage) >= 0;
}

/* MSG_SANDBOX_DEL: detaches a sandbox, if it is there, and answers. */
static bool
gateway_sandbox_del(struct ipc_message *message)
{
	const struct msg_sandbox *del = message->body;

	for (struct sandbox **at = gateway_bucket(del->id); *at != NULL; at = &(*at)->next) {
		struct sandbox *sandbox = *at;

		if (sandbox->id != del->id)
			continue;
		*at = sandbox->next;
		sandbox_free(sandbox, END_DETACHED);
		break;
	}
	gateway_answer(message->header.tag, ERROR_NONE, "");
	return true;
}

/* MSG_POLICY, MSG_POLICY_PREVIEW: puts a snapshot in force, or says what it would cut. */
static bool
gateway_policy(struct ipc_message *message)
{
	const struct msg_policy *policy = message->body;
	struct sandbox *sandbox = gateway_find(policy->id);
	struct msg_policy_done done;
	struct snapshot *snapshot;
	struct error err;

	memset(&done, 0, sizeof(done));
	snapshot = snapshot_open(message->fds[0], &err);
	if (sandbox == NULL || snapshot == NULL) {
		done.result.code = sandbox == NULL ? ERROR_NOT_FOUND : err.code;
		snprintf(
		    done.result.text, sizeof(done.result.text), "%s", sandbox == NULL ? "no such sandbox" : err.text);
		snapshot_free(snapshot);
	} else if (message->header.type == MSG_POLICY_PREVIEW) {
		repolicy_preview(sandbox, snapshot, &done);
	} else {
		repolicy(sandbox, snapshot, policy->generation, &done);
		expiry_start(sandbox);
	}
	ipc_send(&gateway.link.ipc, MSG_POLICY_DONE, message->header.tag, &done, sizeof(done), NULL, 0);
	return true;
}

/* MSG_UDP_PORT, MSG_UDP_PORT_DEL: begins or ends to serve a port. */
static bool
gateway_udp_port(struct ipc_message *message)
{
	const struct msg_udp_port *port = message->body;
	struct sandbox *sandbox = gateway_find(port->id);
	int rc;

	if (sandbox == NULL)
		return true;
	if (message->header.type == MSG_UDP_PORT_DEL) {
		udp_del_port(sandbox, port->port, END_POLICY);
		return true;
	}
	rc = udp_add_port(sandbox, port->port, gateway_take_fd(message, 0), gateway_take_fd(message, 1));
	if (rc < 0)
		log_warnx("%s: UDP port %u: %s", sandbox->name, port->port, strerror(-rc));
	return true;
}

struct gateway_leases_context {
	struct msg_leases_done *done;
	const struct msg_leases *wanted;
	const struct lease_table *table;
	bool others; /* second round: other names of the wanted one's addresses */
	int64_t now_ms;
};

/* Is the lease one of those asked for in this round? */
static bool
gateway_leases_wants(const struct gateway_leases_context *c, const struct lease *lease)
{
	const struct msg_leases *wanted = c->wanted;

	if (wanted->addr.family != 0)
		return addr_equal(&lease->addr, &wanted->addr);
	if (wanted->name.len == 0 || name_equal(&lease->name, &wanted->name))
		return !c->others;
	return c->others && lease_find(c->table, &wanted->name, &lease->addr) != NULL;
}

/* Adds a row for a lease that is wanted, for lease_each. */
static bool
gateway_leases_row(const struct lease *lease, void *context)
{
	struct gateway_leases_context *c = context;
	struct msg_lease_row *row;

	if (c->done->count == MSG_LEASES_MAX || !gateway_leases_wants(c, lease))
		return true;
	row = &c->done->rows[c->done->count++];
	row->addr = lease->addr;
	row->name = lease->name;
	row->left_s = (uint32_t)((lease->expires_ms - c->now_ms) / 1000);
	return true;
}

/* MSG_LEASES: answers with the sandbox's live leases. */
static bool
gateway_leases(struct ipc_message *message)
{
	const struct msg_leases *wanted = message->body;
	struct sandbox *sandbox = gateway_find(wanted->id);
	struct msg_leases_done done;
	struct gateway_leases_context context = {.done = &done, .wanted = wanted, .now_ms = clock_mono_ms()};

	memset(&done, 0, sizeof(done));
	if (sandbox == NULL) {
		done.result.code = ERROR_NOT_FOUND;
	} else {
		context.table = &sandbox->leases;
		lease_each(&sandbox->leases, gateway_leases_row, &context);
		context.others = true;
		if (wanted->name.len != 0)
			lease_each(&sandbox->leases, gateway_leases_row, &context);
		done.flows = (uint32_t)proxy_flow_count(sandbox);
	}
	ipc_send(&gateway.link.ipc, MSG_LEASES_DONE, message->header.tag, &done, sizeof(done), NULL, 0);
	return true;
}

/* Exit once all is durable, or when the time is up: what is left then is closed by the next start. */
static void
gateway_stop_handler(struct loop_timer *timer)
{
	if ((gateway.recorder.queue_len == 0 && gateway.refused_lingering == 0) ||
	    clock_mono_ms() >= gateway_stop_by_ms)
		loop_stop(gateway.loop);
	else
		loop_timer_set(gateway.loop, timer, GATEWAY_STOP_STEP_MS);
}

/* MSG_SHUTDOWN: ends every sandbox, then waits for the records to be durable. */
static bool
gateway_shutdown(struct ipc_message *message)
{
	(void)message;
	for (size_t i = 0; i < GATEWAY_BUCKETS; i++) {
		while (gateway.sandboxes[i] != NULL) {
			struct sandbox *sandbox = gateway.sandboxes[i];

			gateway.sandboxes[i] = sandbox->next;
			sandbox_free(sandbox, END_SHUTDOWN);
		}
	}
	gateway_stop_by_ms = clock_mono_ms() + GATEWAY_STOP_MS;
	gateway_stop_timer.handler = gateway_stop_handler;
	loop_timer_set(gateway.loop, &gateway_stop_timer, 1);
	return true;
}

/* MSG_CHANNEL: takes the channel to the auditor. */
static bool
gateway_channel(struct ipc_message *message)
{
	const struct msg_channel *channel = message->body;

	if (channel->role != MSG_ROLE_AUDITOR)
		return false;
	return recorder_connect(&gateway.recorder, gateway_take_fd(message, 0), channel->epoch) == 0;
}

/* MSG_RESULT, MSG_COUNTERS_DONE: an answer to a request of ours. */
static bool
gateway_link_answer(struct ipc_message *message)
{
	return link_answer(&gateway.link, message);
}

/* Hands a message of the keeper to its handler. False: there is none, or it is malformed. */
static bool
gateway_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	static bool (*const handlers[MSG_TYPE_MAX])(struct ipc_message * message) = {
	    [MSG_CHANNEL] = gateway_channel,
	    [MSG_USAGE] = gateway_usage,
	    [MSG_SANDBOX_ADD] = gateway_sandbox_add,
	    [MSG_SANDBOX_DEL] = gateway_sandbox_del,
	    [MSG_POLICY] = gateway_policy,
	    [MSG_POLICY_PREVIEW] = gateway_policy,
	    [MSG_UDP_PORT] = gateway_udp_port,
	    [MSG_UDP_PORT_DEL] = gateway_udp_port,
	    [MSG_LEASES] = gateway_leases,
	    [MSG_RESULT] = gateway_link_answer,
	    [MSG_COUNTERS_DONE] = gateway_link_answer,
	    [MSG_SHUTDOWN] = gateway_shutdown,
	};

	(void)ipc;
	return handlers[message->header.type] != NULL && handlers[message->header.type](message);
}

/* No descriptor is left for what the keeper hands over: that one request fails, live connections do not. */
static bool
gateway_fds_lost_handler(struct ipc *ipc, const struct ipc_message *message)
{
	static const char why[] =
	    "the gateway has no descriptors left: raise its limit of open files, or detach something";
	struct msg_policy_done done = {.result = {.code = ERROR_LIMIT}};

	(void)ipc;
	switch (message->header.type) {
	case MSG_SANDBOX_ADD:
		gateway_answer(message->header.tag, ERROR_LIMIT, why);
		return true;
	case MSG_POLICY:
		memcpy(done.result.text, why, sizeof(why));
		ipc_send(&gateway.link.ipc, MSG_POLICY_DONE, message->header.tag, &done, sizeof(done), NULL, 0);
		return true;
	case MSG_UDP_PORT:
		log_warnx("a UDP port is not served: %s", why);
		return true;
	default: /* without a channel to the auditor, a fresh start is best */
		return false;
	}
}

/* Without the keeper nothing can be leased, and no gateway is restarted: exit; every connection ends. */
static void
gateway_broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	log_fatalx("channel to the keeper: %s", why);
}

/* Raises the limit of open files as far as it goes, and keeps some from connections. */
static void
gateway_files_limit(void)
{
	struct rlimit files = {0};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		log_fatal("limit of open files");
	if (files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		getrlimit(RLIMIT_NOFILE, &files);
	}
	gateway.fd_top = files.rlim_cur > INT_MAX ? INT_MAX : (int)files.rlim_cur;
	gateway.fd_top -= GATEWAY_FDS_KEPT < gateway.fd_top / 4 ? GATEWAY_FDS_KEPT : gateway.fd_top / 4;
}

int
gateway_run(const struct role *role, const struct options *options)
{
	const struct msg_ready ready = {0};
	struct error err;

	log_init("gateway");
	gateway_files_limit();
	gateway.loop = loop_new();
	if (gateway.loop == NULL || route_open(&gateway.route) < 0 || tls_hello_setup() < 0)
		log_fatal("set-up");
	if (options_open_geo(options, &gateway.geo, &err) < 0)
		log_fatalx("%s", err.text);
	memcpy(gateway.resolvers, options->resolvers, sizeof(gateway.resolvers));
	gateway.resolver_count = options->resolver_count;
	gateway.interim.every_ms = options->progress_ms;
	recorder_init(&gateway.recorder, gateway.loop, options->epoch);
	metrics_start(&gateway);
	ipc_init(&gateway.link.ipc, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, gateway_message_handler, gateway_broken_handler);
	gateway.link.ipc.fds_lost_handler = gateway_fds_lost_handler;
	if (ipc_open(&gateway.link.ipc, gateway.loop, options->role_fd) < 0)
		log_fatal("channel to the keeper");
	role_confine(role, options);
	confine_syscalls(role->confinement.syscalls);
	ipc_send(&gateway.link.ipc, MSG_READY, 0, &ready, sizeof(ready), NULL, 0);
	return loop_run(gateway.loop) < 0 ? 1 : 0;
}
