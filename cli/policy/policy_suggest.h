/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy suggest: a minimal policy from what a sandbox tried, ready to be read by a person and then applied.
 *
 * The record is the guest's words: only canonical host names and strict addresses come into the text, quoted; all else
 * is counted. What is printed has been parsed and compiled before. */
#ifndef POSTERN_CLI_POLICY_SUGGEST_H
#define POSTERN_CLI_POLICY_SUGGEST_H

#include "cli/policy/policy_history.h"

/* Ports of one host and protocol; a port scan is not suggested in full. */
#define SUGGEST_PORTS_MAX 16
/* Hosts of one registered domain with the same ports that make a wildcard. */
#define SUGGEST_SIBLINGS_MIN 3
/* Siblings named in a wildcard's comment, and names named among those left out. */
#define SUGGEST_NAMED_MAX 32

/* A name first heard of within so long after a connection to a site stands with it: a page asks for what it consists of
 * within seconds, and so does a client for where it is redirected to. */
#define SUGGEST_SITE_S 5
/* Names of one answer's chain of aliases that are looked at; longer ones are no honest answers'
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
	void *aliases; /* tsearch(3), private to policy_suggest_site.c; owned */
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

/* NULL without memory. */
struct suggest *suggest_new(void);
void suggest_free(struct suggest *suggest); /* accepts NULL */

/* A handler for history_read; context is the struct suggest. */
void suggest_row(const struct query_row *row, void *context);

/* The policy as text, checked; sandbox and since_us are for its head. The caller frees it. NULL with *err. */
char *suggest_format(const struct suggest *suggest, const char *sandbox, int64_t since_us, struct error *err);

/* The order of the tree: names before addresses. */
int suggest_compare(const void *a, const void *b);

/* Would a policy's parser refuse it, and why? host may begin with "*." */
bool suggest_refused(const char *host, struct error *err);

/* -- policy_suggest_site.c: which hosts belong together -- */

/* The names that a question's answer leads over, canonical ones only. Returns how many. */
size_t suggest_chain_of(const struct query_row *row, struct name chain[SUGGEST_CHAIN_MAX]);
/* The domain of a name that was met in a row; a new one is given its site. NULL: no memory, and suggest says so. */
struct suggest_domain *suggest_site_join(struct suggest *suggest, const struct name *name, uint8_t domain_at,
    const struct name *chain, size_t count, int64_t ts_us);
/* Was that a connection to a site? Then what is new in the next seconds belongs to it. */
void suggest_site_connected(struct suggest *suggest, struct suggest_domain *domain, const struct query_row *row);
void suggest_site_free(struct suggest *suggest);

/* argv[0] is "suggest". Returns the exit status. */
int policy_suggest(int argc, char **argv);

#endif
