/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What postern policy suggest collects from a sandbox's record: hosts and addresses with their ports.
 *
 * The record is the guest's words: only canonical host names and strict addresses become targets; the rest is
 * counted. */
#ifndef POSTERN_CLI_SUGGEST_TARGETS_H
#define POSTERN_CLI_SUGGEST_TARGETS_H

#include "cli/policy/history.h"

/* Ports of one host and protocol; a port scan is not suggested in full. */
#define SUGGEST_PORTS_MAX 16
/* A name first met within this time after a connection to a site is grouped with it: a page's parts and the target of a
 * redirect are resolved within seconds. */
#define SUGGEST_SITE_S 5
/* Names of one answer's chain of aliases that are read; longer chains are not honest answers'
 * (gateway/path/dns/dns_message.h). */
#define SUGGEST_CHAIN_MAX 16

/* A registered domain, or a name that has none. */
struct suggest_domain {
	char text[NAME_TEXT_MAX + 1];
	struct suggest_domain *site; /* what it belongs to; itself, when that is a site */
	size_t members;              /* of a site: domains that belong to it, itself included */
};

/* Sorted; unused places are zero, so that memcmp compares. */
struct suggest_ports {
	uint16_t tcp[SUGGEST_PORTS_MAX], udp[SUGGEST_PORTS_MAX];
	uint8_t tcp_count, udp_count;
	uint8_t standard; /* 80 and 443, which a rule need not say; instead of tcp */
	uint8_t pad;
};

struct suggest_target {
	bool named;
	struct name name;
	struct addr addr;
	struct suggest_ports ports;
	int64_t allowed, denied, portless; /* portless: attempts at ports that are not in ports */
	int64_t first_us, last_us;
	struct suggest_domain *domain; /* NULL for an address, and for what is refused */
	struct name through;           /* the end of the chain of aliases that it was met with; len 0: none */
	uint8_t domain_at;             /* where in name the registered domain begins; 0 also when there is none */
	bool refused;                  /* no rule can allow it */
};

struct suggest {
	void *root; /* tsearch(3), of struct suggest_target; owned */
	size_t count;
	void *domains; /* tsearch(3), of struct suggest_domain; owned */
	void *aliases; /* tsearch(3), private to suggest_site.c; owned */
	size_t alias_count;
	struct suggest_domain *latest; /* the site that was connected to last, and when */
	int64_t latest_us;
	int64_t untold;   /* rows beyond HISTORY_TARGETS_MAX */
	int64_t nameless; /* rows about no name and no address that a rule could say */
	int64_t unproven; /* refused connections to addresses without a name */
	int64_t ruled;    /* refused by a deny rule, or by a rule's end */
	int64_t other;    /* refused or failed, but not by a rule or its absence */
	bool no_memory;
};

/* NULL when out of memory. */
struct suggest *suggest_targets_new(void);
void suggest_targets_free(struct suggest *suggest); /* accepts NULL */

/* A handler for history_read; context is the struct suggest. */
void suggest_targets_row(const struct query_row *row, void *context);

/* The order of the tree: names before addresses. */
int suggest_targets_compare(const void *a, const void *b);

/* Would a policy's parser refuse it, and why? host may begin with "*." */
bool suggest_targets_refused(const char *host, struct error *err);

#endif
