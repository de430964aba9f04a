/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy suggest: a minimal policy from what a sandbox tried, ready to be read by a person and then applied.
 *
 * The record is the guest's words: only canonical host names and strict addresses come into the text, quoted; all else is
 * counted. What is printed has been parsed and compiled before. */
#ifndef POSTERN_CLI_POLICY_SUGGEST_H
#define POSTERN_CLI_POLICY_SUGGEST_H

#include "cli/policy_history.h"

/* Ports of one host and protocol; a port scan is not suggested in full. */
#define SUGGEST_PORTS_MAX 16
/* Hosts of one registered domain with the same ports that make a wildcard. */
#define SUGGEST_SIBLINGS_MIN 3
/* Siblings named in a wildcard's comment, and names named among those left out. */
#define SUGGEST_NAMED_MAX 32

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
	uint8_t domain_at; /* where in name the registered domain begins; 0 also when there is none */
	bool refused;      /* no rule can allow it */
};

struct suggest {
	void *root; /* tsearch(3), of struct suggest_target; owned */
	size_t count;
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

/* argv[0] is "suggest". Returns the exit status. */
int policy_suggest(int argc, char **argv);

#endif
