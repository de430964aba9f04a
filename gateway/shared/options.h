/* SPDX-License-Identifier: GPL-3.0-or-later */
/* posternd's options, the same for every role: the keeper hands its own command line on when it re-executes itself. */
#ifndef POSTERN_GATEWAY_OPTIONS_H
#define POSTERN_GATEWAY_OPTIONS_H

#include "base/error.h"
#include "gateway/shared/msg.h"
#include "policy/names/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Upstream resolvers used at most. */
#define OPTIONS_RESOLVERS_MAX 4

struct options_resolver {
	struct addr addr;
	uint16_t port;
};

struct options {
	const char *runtime_dir; /* --runtime-dir, POSTERN_RUNTIME_DIR; /run/postern: control.sock, lock */
	const char *state_dir;   /* --state-dir, POSTERN_STATE_DIR; /var/lib/postern: audit/audit.db, sandboxes/ */
	const char *netns_dir;   /* --netns-dir; /run/netns */
	const char *users[MSG_ROLE_MAX]; /* --gateway-user ...: name or number; postern-gateway ... */
	const char *group;               /* --group: may use the control socket; name or number; postern */
	struct options_resolver
	    resolvers[OPTIONS_RESOLVERS_MAX]; /* --resolver ADDR[:PORT]; default: /etc/resolv.conf */
	size_t resolver_count;
	unsigned int gateways;    /* --gateways: gateway processes, 1..16; one per core up to 4 */
	const char *organisation; /* --organisation: NULL: the default file, which need not exist */
	const char *preset_dir;   /* --preset-dir; NULL: the default ones */
	const char
	    *geo_files[GEO_KIND_MAX]; /* --country-db, POSTERN_COUNTRY_DB; --asn-db, POSTERN_ASN_DB; NULL: none */
	unsigned int exit_idle_s;     /* --exit-idle: stop after so long without a sandbox; 0: never */
	uint32_t retain_s;            /* --retain-for: records older than this are dropped; 0: never */
	uint64_t wal_limit;    /* --wal-limit: bytes of the audit database's -wal at which nothing new is let out;
	                           * 0: the default, 1 GiB */
	uint64_t retain_bytes; /* --retain-size: and the oldest of a database larger than this; 0: never */
	bool rootless;         /* not started as root: roles share the caller's uid */
	bool probe;            /* --probe */
	int64_t progress_ms;   /* --progress-ms: for tests; 0: INTERIM_MS */

	/* Set by the keeper for its children only. */
	const char *role;          /* --role: "gateway", "auditor", "control"; NULL: the keeper */
	int role_fd;               /* --role-fd: channel to the keeper */
	uint64_t epoch;            /* --epoch: of this process; upper part of its record ids */
	int geo_fds[GEO_KIND_MAX]; /* --country-fd, --asn-fd: sealed copies of geo_files; 0: none */
	uid_t uids[MSG_ROLE_MAX];  /* of users; all the caller's when rootless */
	gid_t group_gid;
};

/* Fill *options from the command line, the environment and /etc/resolv.conf. 0, or -1 with ERROR_USAGE or NOT_FOUND.
 * --help and --version print and exit. Strings point into argv and the environment. */
int options_read(struct options *options, int argc, char **argv, struct error *err);

/* In a role: read the databases of addresses that the keeper handed over. 0, or -1 with the option and the remedy. */
int options_open_geo(const struct options *options, struct geo *ret_geo, struct error *err);

#endif
