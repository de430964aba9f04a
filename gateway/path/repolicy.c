/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The kernel holds elements (address, protocol, port); the gateway holds leases (name, address).
 * One element may stem from several leases. On an edit every live lease is looked at once: ports its name has lost are
 * removed from the kernel unless another lease of the same address still wants them, ports it has won are added for the
 * time that the address's longest lease has left, and a name that lost all ports loses its lease. The gateway judges
 * every accepted connection by the new policy from the first moment, so the order of kernel changes only decides
 * whether a refusal comes at the SYN or right after. A deadline that passes is the same: the policy of a moment ago and
 * the one of now are two readings of one snapshot. */
#include "gateway/path/udp/udp.h"
#include "gateway/path/tcp/proxy.h"
#include "gateway/path/repolicy.h"

#include "base/clock.h"
#include "gateway/path/count/quota.h"

#include <stdlib.h>
#include <string.h>

/* (proto, port) pairs one name may have under one policy; RULE_HOST_PORTS_MAX per matching rule. */
#define REPOLICY_PORTS_MAX 512

struct repolicy_batch {
	struct sandbox *sandbox;
	struct tap_lease leases[TAP_LEASE_BATCH_MAX];
	size_t count;
	uint32_t timeout_s; /* 0: removals; else the longest time left in the batch */
};

struct repolicy_ports {
	struct proto_port ports[REPOLICY_PORTS_MAX];
	size_t count;
};

struct repolicy_context {
	struct sandbox *sandbox;
	const struct snapshot *old;
	int64_t old_us, now_us; /* when each of the two policies is read */
	struct repolicy_batch gone, won;
	struct proto_port before[REPOLICY_PORTS_MAX], after[REPOLICY_PORTS_MAX];
	/* The address looked at last: how long its elements are to last, and the ports that are decided. */
	struct addr addr;
	uint32_t timeout_s;
	struct repolicy_ports gone_ports, won_ports;
};

/* Sends the batch to the keeper and empties it. */
static void
repolicy_batch_flush(struct repolicy_batch *batch)
{
	struct link *link = &batch->sandbox->gateway->link;

	if (batch->count == 0)
		return;
	if (batch->timeout_s == 0)
		link_lease_del(link, batch->sandbox->id, batch->leases, batch->count);
	else
		link_lease_add(link, NULL, batch->sandbox->id, batch->leases, batch->count, batch->timeout_s);
	batch->count = 0;
	batch->timeout_s = 0;
}

/* Adds an element; sends the batch first when it is full. */
static void
repolicy_batch_add(struct repolicy_batch *batch, const struct addr *addr, struct proto_port port, uint32_t timeout_s)
{
	if (batch->count == TAP_LEASE_BATCH_MAX)
		repolicy_batch_flush(batch);
	batch->leases[batch->count++] = (struct tap_lease){.addr = *addr, .proto = port.proto, .port = port.port};
	if (batch->timeout_s < timeout_s)
		batch->timeout_s = timeout_s;
}

/* Is the port among these? */
static bool
repolicy_has(const struct proto_port *ports, size_t count, struct proto_port port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i].proto == port.proto && ports[i].port == port.port)
			return true;
	return false;
}

/* Does any live lease of the address allow the port under the new policy? What is learned needs no element, as the
 * kernel's ranges let it come; and with one it would come on when learning ends, since no policy names the port any
 * more. */
static bool
repolicy_wanted(const struct repolicy_context *c, const struct addr *addr, struct proto_port port)
{
	const struct lease *lease = NULL;

	while ((lease = lease_next_of_addr(&c->sandbox->leases, addr, lease)) != NULL) {
		struct decision decision =
		    snapshot_decide_host(c->sandbox->policy, &lease->name, port.proto, port.port, c->now_us);

		if (decision.verdict == VERDICT_ALLOWED)
			return true;
	}
	return false;
}

/* Was the port decided before? Now it is. */
static bool
repolicy_decided(struct repolicy_ports *ports, struct proto_port port)
{
	if (repolicy_has(ports->ports, ports->count, port))
		return true;
	if (ports->count < REPOLICY_PORTS_MAX)
		ports->ports[ports->count++] = port;
	return false;
}

/* Looks at one live lease: what its name lost and won. False: it lost all, and goes. */
static bool
repolicy_lease(const struct lease *lease, void *context)
{
	struct repolicy_context *c = context;
	size_t before = snapshot_ports_list(c->old, &lease->name, c->before, REPOLICY_PORTS_MAX, c->old_us);
	size_t after = snapshot_ports_list(c->sandbox->policy, &lease->name, c->after, REPOLICY_PORTS_MAX, c->now_us);

	/* Thousands of names may share an address, and what one of them lost or won concerns all: each port is decided
	 * once, or an edit would stop the gateway for seconds. Leases of an address come one after another, but for few
	 * that share their chain; then a port is decided again, which changes nothing. */
	if (!addr_equal(&c->addr, &lease->addr)) {
		c->addr = lease->addr;
		c->timeout_s = lease_left_s(&c->sandbox->leases, &lease->addr) + LEASE_GRACE_S;
		c->gone_ports.count = c->won_ports.count = 0;
	}
	for (size_t i = 0; i < before; i++)
		if (!repolicy_has(c->after, after, c->before[i]) && !repolicy_decided(&c->gone_ports, c->before[i]) &&
		    !repolicy_wanted(c, &lease->addr, c->before[i]))
			repolicy_batch_add(&c->gone, &lease->addr, c->before[i], 0);
	for (size_t i = 0; i < after; i++)
		if (!repolicy_has(c->before, before, c->after[i]) && !repolicy_decided(&c->won_ports, c->after[i]))
			repolicy_batch_add(&c->won, &lease->addr, c->after[i], c->timeout_s);
	return after > 0;
}

/* From old, as it was at old_us, to the sandbox's policy as it is at now_us. */
static void
repolicy_pass(struct sandbox *sandbox, const struct snapshot *old, int64_t old_us, int64_t now_us, enum reason reason,
    struct msg_policy_done *done)
{
	struct repolicy_context *context = calloc(1, sizeof(*context));

	sandbox->turn++;
	sandbox->judged_us = now_us;
	if (context != NULL) {
		context->sandbox = context->gone.sandbox = context->won.sandbox = sandbox;
		context->old = old;
		context->old_us = old_us;
		context->now_us = now_us;
		lease_each(&sandbox->leases, repolicy_lease, context);
		repolicy_batch_flush(&context->gone);
		repolicy_batch_flush(&context->won);
		free(context);
	}
	proxy_rejudge(sandbox, reason, true, done);
	udp_rejudge(sandbox, reason, true, done);
	quota_retire(sandbox);
}

void
repolicy(struct sandbox *sandbox, struct snapshot *snapshot, uint32_t generation, struct msg_policy_done *done)
{
	struct snapshot *old = sandbox->policy;
	int64_t now_us = clock_real_us();

	sandbox->policy = snapshot;
	sandbox->generation = generation;
	quota_policy(sandbox);
	proxy_recount(sandbox);
	udp_recount(sandbox);
	repolicy_pass(sandbox, old, now_us, now_us, REASON_REVOKED, done);
	snapshot_free(old);
}

/* The same judgement of the same connections; only then nothing is done. */
void
repolicy_preview(struct sandbox *sandbox, struct snapshot *snapshot, struct msg_policy_done *done)
{
	struct snapshot *in_force = sandbox->policy;

	sandbox->policy = snapshot;
	proxy_rejudge(sandbox, REASON_REVOKED, false, done);
	udp_rejudge(sandbox, REASON_REVOKED, false, done);
	sandbox->policy = in_force;
	snapshot_free(snapshot);
}

void
repolicy_expire(struct sandbox *sandbox, int64_t now_us)
{
	struct msg_policy_done done = {0};

	quota_reinstate(sandbox);
	repolicy_pass(sandbox, sandbox->policy, sandbox->judged_us, now_us, REASON_EXPIRED, &done);
}
