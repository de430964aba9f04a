/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdict on a connection, a UDP flow or a DNS question: the one place that knows which step beats which.
 *
 * Pure: no clock, no system call, no allocation. The caller gathers what is known (address, place, leases, what the
 * guest said, the time) and hands it in. The data path, the re-judging of live connections, postern test and postern
 * policy replay differ only in what they gather. */
#ifndef POSTERN_POLICY_VERDICT_H
#define POSTERN_POLICY_VERDICT_H

#include "policy/compiled/snapshot.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "policy/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the connection's name is known. */
enum verdict_naming {
	VERDICT_LEASED = 0, /* the protocol says none, or late: any name leased to the address is the proof */
	VERDICT_SAID,       /* the guest said it (SNI, Host); it must be leased to the address, too */
	VERDICT_SILENT,     /* the guest had to say one and did not: only an address rule lets it through */
	VERDICT_UNHEARD,    /* what the guest will say is not known: allowed if one of the leased names, or none, is */
	VERDICT_PROVEN,     /* it was proven once, a record says; leases are not looked at */
	VERDICT_UNPROVEN,   /* it was said once and never proven; an empty name: none was said. Likewise */
};

/* How the kernel's routing table would reach the address. */
enum verdict_route {
	VERDICT_ROUTE_OUT = 0, /* it leaves the host, or has no route */
	VERDICT_ROUTE_HOST,    /* to the host itself: local, broadcast, multicast */
	VERDICT_ROUTE_UNKNOWN, /* the kernel did not answer */
};

/* A name that this sandbox resolved to the address. */
struct verdict_lease {
	const struct name *name; /* valid until the verdict is returned, or as long as the trace is read */
	int64_t left_ms;         /* until it ends; one at or below 0 is none */
	int64_t dns_us;          /* time that the answer behind it took upstream */
};

struct verdict_case {
	const struct snapshot *policy;
	int64_t now_us; /* clock_real_us */
	uint8_t proto;  /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t port;
	const struct addr *addr;        /* NULL: not known; then only the name is judged */
	const struct addr_place *place; /* NULL: rules by country and network are left out */
	bool place_pardoned;            /* a place that is not known is no ground to refuse */
	enum verdict_route route;
	enum verdict_naming naming;
	const struct name *name; /* VERDICT_SAID, _PROVEN, _UNPROVEN */
	enum name_source
	    source;         /* NAME_SOURCE_SNI or NAME_SOURCE_HOST: how it is, or had to be, said; of _PROVEN any */
	bool ech;           /* the hello carries the encrypted-client-hello extension */
	bool behind_kernel; /* what the kernel's sets do not let in is refused there, for the kernel's reason */
	/* The next name leased to addr; false: there is none (any more). NULL: there are none. */
	bool (*lease_next)(void *walk, struct verdict_lease *ret_lease);
	void *walk;
};

struct judgement {
	enum verdict verdict;
	enum reason reason;
	uint32_t rule;           /* for snapshot_rule_text; SNAPSHOT_NO_RULE: none decided */
	enum name_source source; /* of name */
	struct name name;        /* allowed: the proven one, len 0 where an address rule alone allows it */
	const char *detail;      /* static text or NULL */
	int64_t dns_us;          /* of the lease that proves the name; 0: none does */
	bool learned;            /* allowed by mode: learn alone */
};

/* The steps that were taken, in their order. */
enum verdict_stage {
	VERDICT_STAGE_NEVER,   /* never list and routes */
	VERDICT_STAGE_ADDRESS, /* rules by prefix, country and network; with lapsed */
	VERDICT_STAGE_LEASE,   /* the lease that proves the name, or (name NULL) the want of one */
	VERDICT_STAGE_NAME,    /* rules by name */
};

struct verdict_step {
	enum verdict_stage stage;
	enum verdict verdict;
	enum reason reason;
	uint32_t rule;
	uint32_t lapsed;         /* ADDRESS: an allow rule that has ended; SNAPSHOT_NO_RULE: none */
	const struct name *name; /* LEASE, NAME: which */
	int64_t left_ms;         /* LEASE */
};

#define VERDICT_STEPS_MAX 4 /* one of each stage */
struct verdict_trace {
	size_t count;
	struct verdict_step steps[VERDICT_STEPS_MAX];
};

/* The verdict; trace may be NULL. Names in the trace are the caller's own (case->name, or a lease's). */
struct judgement verdict_judge(const struct verdict_case *what, struct verdict_trace *trace);

/* May the name be resolved? The judgement's name is empty. */
struct judgement verdict_question(const struct snapshot *policy, const struct name *name, int64_t now_us);

/* May this name be reached on this port by a connection that can prove it? */
struct judgement verdict_name(
    const struct snapshot *policy, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us);

/* What the rules by prefix, country and network (place NULL: not these) say of an address: ALLOWED by an allow rule;
 * DENIED with RULE_DENY, PLACE_UNKNOWN or NEVER_ADDRESS; else NO_RULE, with lapsed. */
struct decision verdict_address(const struct snapshot *policy, const struct addr *addr, const struct addr_place *place,
    uint8_t proto, uint16_t port, int64_t now_us);

/* A judgement that no rule is behind. detail: static text or NULL. */
struct judgement verdict_plain(enum verdict verdict, enum reason reason, const char *detail);

/* The word for a value ("denied"); "?" for a value outside the enum. */
const char *verdict_text(unsigned int verdict);

#endif
