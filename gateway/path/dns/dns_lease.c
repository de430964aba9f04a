/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The addresses of an answer become reachable here, so here they are judged. Each address is held
 * against the never list and the host's own addresses; one bad address refuses the whole answer, because a name that
 * points into the inside cannot be trusted with the rest (CASES C-08). A deny rule by address, country or network only
 * takes that address away. The rest is multiplied with the ports that the policy opens for the name and sent to the
 * keeper in batches. Only when the kernel has acknowledged the last batch does the name enter the lease table, and only
 * then does the guest get the answer (CASES C-13): a guest that connects at once finds the door open.
 *
 * When a batch fails, earlier ones stay in the kernel until their timeout. They open nothing: without an entry in the
 * lease table the gateway refuses the connection. */
#include "gateway/path/dns/dns_query.h"

#include "base/clock.h"
#include "gateway/path/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an address is worth to a guest. */
enum addr_worth { ADDR_FINE, ADDR_REFUSED, ADDR_UNKNOWN /* the kernel did not say */ };

/* Is the address on the never list, or an IPv4 one where it cannot be? Says so in the detail. */
static enum addr_worth
addr_judge_never(struct dns_query *query, const struct addr *addr)
{
	const struct never_prefix *row = addr_never(addr);
	char text[ADDR_TEXT_MAX];

	if (row != NULL)
		snprintf(
		    query->detail, sizeof(query->detail), "%s: %s, %s", addr_format(addr, text), row->text, row->why);
	else if (query->question.type == DNS_TYPE_AAAA && addr->family == 4)
		/* What reads addresses makes IPv4 of mapped ones; an honest AAAA record holds none (CASES A-02). */
		snprintf(
		    query->detail, sizeof(query->detail), "::ffff:%s: an IPv4-mapped address", addr_format(addr, text));
	else
		return ADDR_FINE;
	return ADDR_REFUSED;
}

/* Is the address the host's own, by the kernel's routes? */
static enum addr_worth
addr_judge_route(struct dns_query *query, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	switch (route_lookup(&query->server->sandbox->gateway->route, addr)) {
	case ROUTE_UNICAST:
	case ROUTE_NONE:
		return ADDR_FINE;
	case ROUTE_HOST:
		snprintf(
		    query->detail, sizeof(query->detail), "%s: an address of the host itself", addr_format(addr, text));
		return ADDR_REFUSED;
	case ROUTE_ERROR:
		break;
	}
	return ADDR_UNKNOWN;
}

bool
dns_lease_refuse_chain(struct dns_query *query)
{
	for (size_t i = 0; i < query->chain.count; i++) {
		const struct never_name *row = name_never(&query->chain.names[i]);

		if (row == NULL)
			continue;
		snprintf(query->detail, sizeof(query->detail), "CNAME to %.80s: %.32s", query->chain.names[i].text,
		    row->why);
		dns_finish_denied(query, REASON_DNS_REBIND);
		return true;
	}
	return false;
}

/* The ports that the policy opens for the name. */
struct lease_ports {
	size_t count;
	struct proto_port ports[DNS_LEASE_PORTS_MAX];
};

/* Append the address's elements. False: it opens nothing, because deny rules take every port away. */
static bool
lease_elements(struct dns_query *query, const struct lease_ports *ports, const struct addr *addr)
{
	const struct sandbox *sandbox = query->server->sandbox;
	size_t before = query->lease_count;
	struct geo_place place;
	bool placed = snapshot_needs_place(sandbox->policy);

	if (placed)
		geo_lookup(&sandbox->gateway->geo, addr, &place);
	for (size_t i = 0; i < ports->count; i++) {
		const struct proto_port *p = &ports->ports[i];
		struct decision decision = verdict_address(
		    sandbox->policy, addr, placed ? &place.at : NULL, p->proto, p->port, clock_real_us());

		/* Port 53 is ours in every sandbox; the keeper treats a lease for it as malformed. */
		if (p->port == 53 || p->port == 0)
			continue;
		if (decision.verdict != VERDICT_ALLOWED && decision.reason != REASON_NO_RULE) {
			/* The first address that was taken away says why, should none be left. */
			if (query->denied_addr.family == 0) {
				query->denial = decision;
				query->denied_addr = *addr;
			}
			continue;
		}
		query->leases[query->lease_count++] =
		    (struct tap_lease){.addr = *addr, .proto = p->proto, .port = p->port};
	}
	return query->lease_count > before;
}

/* Take an address that was judged fine into the answer. False: the answer is full, or a deny rule covers it. */
static bool
lease_admit(struct dns_query *query, const struct lease_ports *ports, const struct addr *addr)
{
	for (size_t i = 0; i < query->addr_count; i++)
		if (addr_equal(&query->addrs[i], addr))
			return true;
	if (query->addr_count == DNS_LEASE_ADDRS_MAX || !lease_elements(query, ports, addr))
		return false;
	query->addrs[query->addr_count++] = *addr;
	return true;
}

/* Reads the ports that the policy opens and makes room for the elements. 0 or -ENOMEM. */
static int
lease_prepare(struct dns_query *query, struct lease_ports *ret_ports)
{
	ret_ports->count = snapshot_ports_list(query->server->sandbox->policy, &query->question.name, ret_ports->ports,
	    DNS_LEASE_PORTS_MAX, clock_real_us());
	if (ret_ports->count > DNS_LEASE_PORTS_MAX)
		ret_ports->count = DNS_LEASE_PORTS_MAX;
	query->addr_count = query->lease_count = query->lease_sent = query->service_count = 0;
	query->denial =
	    (struct decision){.verdict = VERDICT_DENIED, .reason = REASON_RULE_DENY, .rule = SNAPSHOT_NO_RULE};
	query->denied_addr = (struct addr){0};
	free(query->leases);
	query->leases = calloc(DNS_LEASE_ADDRS_MAX * (ret_ports->count + 1), sizeof(struct tap_lease));
	return query->leases == NULL ? -ENOMEM : 0;
}

/* The kernel knows; now the table that judges connections. */
static void
lease_commit(struct dns_query *query)
{
	struct sandbox *sandbox = query->server->sandbox;

	if (sandbox->turn != query->turn) {
		query->restart(query);
		return;
	}
	for (size_t i = 0; i < query->addr_count; i++) {
		int rc = lease_add(&sandbox->leases, &query->question.name, &query->addrs[i],
		    query->lifetime_s + LEASE_GRACE_S, query->upstream_us);

		if (rc < 0) {
			dns_finish_broken(query, rc == -ENOSPC ? "the sandbox's lease table is full" : "no memory");
			return;
		}
	}
	query->leased = true;
	dns_finish_allowed(query, DNS_NOERROR, true);
}

/* Seconds for the kernel's elements. An element serves every name of its address, and earlier answers whose TTL a guest
 * may still count on: a short answer must not cut it down (CASES C-11). A timeout that is too long opens nothing, since
 * the lease table decides. */
static uint32_t
lease_timeout_s(const struct dns_query *query)
{
	uint32_t longest_s = query->lifetime_s + LEASE_GRACE_S;
	const struct dns_query *other;

	for (size_t i = 0; i < query->addr_count; i++) {
		uint32_t left_s = lease_left_s(&query->server->sandbox->leases, &query->addrs[i]);

		longest_s = left_s > longest_s ? left_s : longest_s;
	}
	/* Those that are on their way into the table, and may be in the kernel already. */
	LIST_FOREACH(other, &query->server->queries, next)
	if (other->state == DNS_QUERY_LEASING && other->lifetime_s + LEASE_GRACE_S > longest_s)
		longest_s = other->lifetime_s + LEASE_GRACE_S;
	return longest_s + LEASE_GRACE_S;
}

/* Asks the keeper for the next batch of elements. */
static void
lease_send(struct dns_query *query)
{
	struct sandbox *sandbox = query->server->sandbox;
	size_t count = query->lease_count - query->lease_sent;
	int rc;

	if (count > TAP_LEASE_BATCH_MAX)
		count = TAP_LEASE_BATCH_MAX;
	rc = link_lease_add(&sandbox->gateway->link, &query->link, sandbox->id, query->leases + query->lease_sent,
	    count, lease_timeout_s(query));
	if (rc < 0) {
		dns_finish_broken(query, "the keeper cannot be asked for leases");
		return;
	}
	query->lease_sent += count;
	query->state = DNS_QUERY_LEASING;
}

/* The keeper has answered: sends the next batch, or commits after the last one. */
static void
lease_handler(struct link_request *request, int status, const void *body)
{
	struct dns_query *query = loop_owner(request, struct dns_query, link);

	(void)body;
	if (status != 0)
		dns_finish_broken(
		    query, status == -ENOSPC ? "the sandbox's lease set is full" : "the keeper refused a lease");
	else if (query->lease_sent < query->lease_count)
		lease_send(query);
	else
		lease_commit(query);
}

/* Finish the query for an address that is not fine. False: it is. */
static bool
lease_refuse(struct dns_query *query, enum addr_worth worth)
{
	switch (worth) {
	case ADDR_FINE:
		return false;
	case ADDR_REFUSED:
		dns_finish_denied(query, REASON_DNS_REBIND);
		return true;
	case ADDR_UNKNOWN:
		break;
	}
	dns_finish_broken(query, "the kernel did not answer a route lookup");
	return true;
}

/* Deny rules left no address: the record names the first one, where it is, and the rule. */
static void
lease_refuse_all(struct dns_query *query)
{
	const struct sandbox *sandbox = query->server->sandbox;
	const char *why = judge_place_detail(sandbox, query->denial.reason);
	char text[ADDR_TEXT_MAX], where[GEO_PLACE_TEXT_MAX];
	struct geo_place place;

	geo_lookup(&sandbox->gateway->geo, &query->denied_addr, &place);
	if (why == NULL)
		why = geo_place_format(&place, where);
	snprintf(query->detail, sizeof(query->detail), "%s%s%s", addr_format(&query->denied_addr, text),
	    why[0] == '\0' ? "" : ": ", why);
	query->judgement.rule = query->denial.rule;
	dns_finish_denied(query, query->denial.reason);
}

/* A and AAAA. The kernel is asked about those that are leased only: a lookup costs as much as the rest of the query. */
static void
lease_addresses(struct dns_query *query, const struct dns_answer *answer, const struct lease_ports *ports)
{
	size_t admitted = 0;

	for (size_t i = 0; i < answer->addr_count; i++)
		if (lease_refuse(query, addr_judge_never(query, &answer->addrs[i])))
			return;
	for (size_t i = 0; i < answer->addr_count; i++)
		admitted += lease_admit(query, ports, &answer->addrs[i]);
	for (size_t i = 0; i < query->addr_count; i++)
		if (lease_refuse(query, addr_judge_route(query, &query->addrs[i])))
			return;
	if (query->addr_count == 0) {
		lease_refuse_all(query);
		return;
	}
	if (admitted < answer->addr_count)
		snprintf(query->detail, sizeof(query->detail), "%zu of %zu addresses admitted", admitted,
		    answer->addr_count);
	lease_send(query);
}

/* Keep of one family's hints what can be leased. */
static void
service_filter_hints(struct dns_query *query, const struct lease_ports *ports, struct addr *hints, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++)
		if (addr_judge_never(query, &hints[i]) == ADDR_FINE &&
		    addr_judge_route(query, &hints[i]) == ADDR_FINE && lease_admit(query, ports, &hints[i]))
			hints[kept++] = hints[i];
	*count = kept;
}

/* Rewrites one record with what may be passed on, or leaves it out and says why. */
static void
service_take(struct dns_query *query, const struct dns_bytes *rdata, const struct lease_ports *ports)
{
	struct sandbox *sandbox = query->server->sandbox;
	const struct name *name = &query->question.name;
	const struct name *owner = query->chain.count == 0 ? name : &query->chain.names[query->chain.count - 1];
	struct dns_service service;
	struct dns_rdata *slot = &query->services[query->service_count];
	const char *wrong = dns_service_read(rdata->bytes, rdata->len, owner, &service);

	if (wrong == NULL && service.port != 0 &&
	    verdict_name(sandbox->policy, name, IPPROTO_TCP, service.port, clock_real_us()).verdict != VERDICT_ALLOWED)
		wrong = "a port that is not allowed";
	if (wrong != NULL) {
		snprintf(query->detail, sizeof(query->detail), "record left out: %s", wrong);
		return;
	}
	service_filter_hints(query, ports, service.hints4, &service.hint4_count);
	if (!route_has_ipv6(&sandbox->gateway->route))
		service.hint6_count = 0;
	service_filter_hints(query, ports, service.hints6, &service.hint6_count);
	slot->len = dns_service_write(&service, slot->bytes);
	if (slot->len > 0)
		query->service_count++;
}

/* HTTPS and SVCB: hints are leased like addresses; a record without any needs no lease. */
static void
lease_services(struct dns_query *query, const struct dns_answer *answer, const struct lease_ports *ports)
{
	if (query->services == NULL)
		query->services = calloc(DNS_SERVICES_MAX, sizeof(*query->services));
	if (query->services == NULL) {
		dns_finish_broken(query, "no memory");
		return;
	}
	for (size_t i = 0; i < answer->service_count; i++)
		service_take(query, &answer->services[i], ports);
	if (query->service_count == 0)
		dns_finish_allowed(query, DNS_NOERROR, false);
	else if (query->addr_count == 0)
		dns_finish_allowed(query, DNS_NOERROR, true);
	else
		lease_send(query);
}

void
dns_lease_start(struct dns_query *query, const struct dns_answer *answer)
{
	uint32_t ttl_s = query->chain.ttl_s;
	struct lease_ports ports;

	query->link.handler = lease_handler;
	/* The guest never keeps an answer for longer than the lease lasts (CASES C-11). */
	query->lifetime_s = ttl_s < LEASE_MIN_S ? LEASE_MIN_S : ttl_s > LEASE_MAX_S ? LEASE_MAX_S : ttl_s;
	query->ttl_s = ttl_s < query->lifetime_s ? ttl_s : query->lifetime_s;
	if (query->question.type == DNS_TYPE_CNAME)
		dns_finish_allowed(query, DNS_NOERROR, true);
	else if (lease_prepare(query, &ports) < 0)
		dns_finish_broken(query, "no memory");
	else if (answer->service_count > 0)
		lease_services(query, answer, &ports);
	else
		lease_addresses(query, answer, &ports);
}
