/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a process of the daemon is. The table in gateway/posternd.c has one row a role: the keeper starts and watches
 * its children by it, and posternd runs the row that --role names. */
#ifndef POSTERN_GATEWAY_ROLE_H
#define POSTERN_GATEWAY_ROLE_H

#include "gateway/shared/confine.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/options.h"

#include <stdbool.h>

struct role {
	enum msg_role kind;
	const char *name;    /* --role, and in messages */
	const char *process; /* in ps and ss */
	struct confinement confinement;
	bool sandboxes; /* serves sandboxes: as many processes as --gateways says; else one */
	bool records;   /* has a channel to the auditor: started when that is ready, stopped before it */
	bool geo;       /* gets the sealed databases of addresses (--country-fd, --asn-fd) */
	bool listener;  /* gets the control socket, with MSG_CHANNEL */
	/* Sets itself up, confines itself as its row says, sends MSG_READY; returns the exit status. */
	int (*run)(const struct role *role, const struct options *options);
};

/* First of a table that ends with a row without name; NULL: no such role. */
const struct role *role_find(const struct role *roles, const char *name);
/* Give up network, root and identity, as the row says: options has the user. */
void role_confine(const struct role *role, const struct options *options);

#endif
