/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/options.h"

#include "base/paths.h"
#include "policy/text/quantity.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_RESOLV_CONF "/etc/resolv.conf"
#define OPTIONS_GATEWAYS_DEFAULT_MAX 4
#define OPTIONS_PATH_MAX 200
/* Any: the keeper of a large fleet has thousands open when it starts a role again. */
#define OPTIONS_FD_WANTED "the number of an open descriptor"
#define OPTIONS_RETAIN_DEFAULT_S (90u * 24 * 3600)
#define OPTIONS_RETAIN_BYTES_DEFAULT (10ull << 30)
/* Beneath this an ordinary query of the log would stop everything. */
#define OPTIONS_WAL_LIMIT_MIN (4ull << 20)
/* Less would drop what was just written. */
#define OPTIONS_RETAIN_BYTES_MIN (1ull << 20)

/* One row an option: how it is written, what it does to struct options, what --help says. */
struct option_row {
	const char *name;
	const char *argument; /* NULL: takes none */
	int (*set)(struct options *options, const struct option_row *row, const char *value, struct error *err);
	const char *help; /* NULL: for the keeper's children, or for tests, only */
	/* For the plain setters: the member of struct options, and of a number its range. */
	size_t at, size;
	unsigned long min, max;
	const char *wanted; /* a number's, for the message */
};
#define NO_MEMBER .at = 0
#define MEMBER(member) .at = offsetof(struct options, member), .size = sizeof(((struct options *)0)->member)

/* Reads a decimal number up to max. 0 or -1. */
static int
options_number(const char *value, unsigned long max, unsigned long *ret_number)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' || number > max)
		return -1;
	*ret_number = number;
	return 0;
}

/* Sets a text as it is. */
static int
options_set_text(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)err;
	memcpy((char *)options + row->at, &value, sizeof(value));
	return 0;
}

/* Sets an absolute path. */
static int
options_set_path(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	if (value[0] != '/' || strlen(value) > OPTIONS_PATH_MAX)
		return error_set(err, ERROR_USAGE, "--%s %s: give an absolute path of at most %d bytes", row->name,
		    value, OPTIONS_PATH_MAX);
	return options_set_text(options, row, value, err);
}

/* Sets a number of the row's range, in a member of 4 or 8 bytes. */
static int
options_set_number(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	unsigned long number;
	uint32_t narrow;

	if (options_number(value, row->max, &number) < 0 || number < row->min)
		return error_set(err, ERROR_USAGE, "--%s %s: give %s", row->name, value, row->wanted);
	narrow = (uint32_t)number;
	if (row->size == sizeof(narrow))
		memcpy((char *)options + row->at, &narrow, sizeof(narrow));
	else
		memcpy((char *)options + row->at, &number, sizeof(number));
	return 0;
}

/* "1.2.3.4", "1.2.3.4:5353", "2600::1", "[2600::1]:53". */
static int
options_parse_resolver(const char *value, struct options_resolver *ret_resolver)
{
	const char *colon = strrchr(value, ':');
	size_t len = strlen(value);
	unsigned long port = 53;

	if (value[0] == '[') {
		const char *close = strchr(value, ']');

		if (close == NULL ||
		    (close[1] != '\0' && (close[1] != ':' || options_number(close + 2, 65535, &port) < 0)))
			return -1;
		value++;
		len = (size_t)(close - value);
	} else if (colon != NULL && strchr(value, ':') == colon) {
		if (options_number(colon + 1, 65535, &port) < 0)
			return -1;
		len = (size_t)(colon - value);
	}
	if (port == 0 || !addr_parse(value, len, &ret_resolver->addr))
		return -1;
	ret_resolver->port = (uint16_t)port;
	return 0;
}

/* Adds a resolver. */
static int
options_set_resolver(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	if (options->resolver_count == OPTIONS_RESOLVERS_MAX)
		return error_set(err, ERROR_USAGE, "--resolver %s: at most %d resolvers", value, OPTIONS_RESOLVERS_MAX);
	if (options_parse_resolver(value, &options->resolvers[options->resolver_count]) < 0)
		return error_set(
		    err, ERROR_USAGE, "--resolver %s: give ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT", value);
	options->resolver_count++;
	return 0;
}

/* Sets the age of records. */
static int
options_set_retain_for(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	options->retain_s = 0;
	if (strcmp(value, "forever") == 0 ||
	    (quantity_parse_duration(value, strlen(value), UINT32_MAX, &options->retain_s) && options->retain_s > 0))
		return 0;
	return error_set(err, ERROR_USAGE, "--retain-for %s: give a duration such as 90d or 12h, or forever", value);
}

/* Sets the size of the -wal. */
static int
options_set_wal_limit(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	if (quantity_parse_size(value, strlen(value), INT64_MAX, &options->wal_limit) &&
	    options->wal_limit >= OPTIONS_WAL_LIMIT_MIN)
		return 0;
	return error_set(err, ERROR_USAGE, "--wal-limit %s: give a size such as 1GiB, at least 4MiB", value);
}

/* Sets the size of the log. */
static int
options_set_retain_size(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	options->retain_bytes = 0;
	if (strcmp(value, "unlimited") == 0)
		return 0;
	if (!quantity_parse_size(value, strlen(value), INT64_MAX, &options->retain_bytes) ||
	    options->retain_bytes < OPTIONS_RETAIN_BYTES_MIN)
		return error_set(err, ERROR_USAGE,
		    "--retain-size %s: give a size such as 10GiB, at least 1MiB, or unlimited", value);
	return 0;
}

/* Adds a platform's ranges to those that are never reached. */
static int
options_set_deny_env(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	(void)options;
	if (!addr_never_env(value))
		return error_set(err, ERROR_USAGE, "--deny-env %s: known platforms are gcp, ibm, equinix", value);
	return 0;
}

/* Asks for the probe. */
static int
options_set_probe(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	(void)value;
	(void)err;
	options->probe = true;
	return 0;
}

/* Prints the version and exits. */
static int
options_set_version(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)row;
	(void)options;
	(void)value;
	(void)err;
	puts("posternd " POSTERN_VERSION);
	exit(0);
}

static int options_set_help(
    struct options *options, const struct option_row *row, const char *value, struct error *err);

static const struct option_row option_rows[] = {
    {"resolver", "ADDR[:PORT]", options_set_resolver,
	"upstream DNS resolver; may be repeated (default: " OPTIONS_RESOLV_CONF ")", NO_MEMBER},
    {"gateways", "N", options_set_number, "gateway processes, 1 to 16 (default: one per core, at most 4)",
	MEMBER(gateways), .min = 1, .max = MSG_GATEWAYS_MAX, .wanted = "a number from 1 to 16"},
    {"deny-env", "PLATFORM", options_set_deny_env, "refuse a cloud's internal ranges too: gcp, ibm, equinix",
	NO_MEMBER},
    {"exit-idle", "SECONDS", options_set_number, "stop after this long without a sandbox (default: never)",
	MEMBER(exit_idle_s), .min = 1, .max = 86400, .wanted = "seconds from 1 to 86400"},
    {"retain-for", "DURATION", options_set_retain_for, "drop records older than this (default: 90d), or forever",
	NO_MEMBER},
    {"retain-size", "SIZE", options_set_retain_size, "drop the oldest beyond this size (default: 10GiB), or unlimited",
	NO_MEMBER},
    {"wal-limit", "SIZE", options_set_wal_limit,
	"refuse when a reader keeps the log's -wal growing to this (default: 1GiB)", NO_MEMBER},
    {"organisation", "FILE", options_set_path,
	"policy under every sandbox's (default: /etc/postern/organisation.yaml, if there)", MEMBER(organisation)},
    {"preset-dir", "DIR", options_set_path, "where presets are looked up (default: /usr/share/postern/presets)",
	MEMBER(preset_dir)},
    {"country-db", "FILE", options_set_path, "database of countries, .mmdb: for rules by country and for the log",
	MEMBER(geo_files[GEO_COUNTRY])},
    {"asn-db", "FILE", options_set_path, "database of networks (ASN), .mmdb: for rules by asn and for the log",
	MEMBER(geo_files[GEO_ASN])},
    {"runtime-dir", "DIR", options_set_path, "control socket and lock (default: /run/postern)", MEMBER(runtime_dir)},
    {"state-dir", "DIR", options_set_path, "sandboxes, policies, audit/audit.db (default: /var/lib/postern)",
	MEMBER(state_dir)},
    {"netns-dir", "DIR", options_set_path, "where namespaces get their names (default: /run/netns)", MEMBER(netns_dir)},
    {"gateway-user", "USER", options_set_text, "uid of the gateways (default: postern-gateway)",
	MEMBER(users[MSG_ROLE_GATEWAY])},
    {"audit-user", "USER", options_set_text, "uid of the auditor (default: postern-audit)",
	MEMBER(users[MSG_ROLE_AUDITOR])},
    {"control-user", "USER", options_set_text, "uid of the control role (default: postern-control)",
	MEMBER(users[MSG_ROLE_CONTROL])},
    {"group", "GROUP", options_set_text, "may use the control socket and read the log (default: postern)",
	MEMBER(group)},
    {"probe", NULL, options_set_probe, "say whether this kernel has what postern needs, and exit", NO_MEMBER},
    {"version", NULL, options_set_version, "print the version and exit", NO_MEMBER},
    {"help", NULL, options_set_help, "print this and exit", NO_MEMBER},
    {"role", "", options_set_text, NULL, MEMBER(role)},
    {"role-fd", "", options_set_number, NULL, MEMBER(role_fd), .max = INT_MAX, .wanted = OPTIONS_FD_WANTED},
    {"epoch", "", options_set_number, NULL, MEMBER(epoch), .max = UINT32_MAX, .wanted = "a number below 2^32"},
    {"country-fd", "", options_set_number, NULL, MEMBER(geo_fds[GEO_COUNTRY]), .max = INT_MAX,
	.wanted = OPTIONS_FD_WANTED},
    {"asn-fd", "", options_set_number, NULL, MEMBER(geo_fds[GEO_ASN]), .max = INT_MAX, .wanted = OPTIONS_FD_WANTED},
    {"progress-ms", "", options_set_number, NULL, MEMBER(progress_ms), .min = 1, .max = 86400000,
	.wanted = "milliseconds from 1 to 86400000"},
};
#define OPTION_ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

/* Prints the table and exits. */
static int
options_set_help(struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	(void)options;
	(void)value;
	(void)err;
	puts("usage: posternd [OPTION]...\n"
	     "The daemon of postern: attaches sandboxes, decides by name what they reach, records every attempt.\n");
	for (row = option_rows; row < option_rows + OPTION_ROWS; row++) {
		char left[48];

		if (row->help == NULL)
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument != NULL ? " " : "",
		    row->argument != NULL ? row->argument : "");
		printf("  %-24s  %s\n", left, row->help);
	}
	puts("\nStarted by an ordinary user it runs rootless: see posternd(8).");
	exit(0);
}

/* Reads the command line by the table. */
static int
options_read_arguments(struct options *options, int argc, char **argv, struct error *err)
{
	struct option longs[OPTION_ROWS + 1] = {{0}};
	int index, c;

	for (size_t i = 0; i < OPTION_ROWS; i++) {
		longs[i].name = option_rows[i].name;
		longs[i].has_arg = option_rows[i].argument != NULL ? required_argument : no_argument;
	}
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", longs, &index)) == 0)
		if (option_rows[index].set(options, &option_rows[index], optarg, err) < 0)
			return -1;
	if (c == ':')
		return error_set(err, ERROR_USAGE, "%s wants an argument; see posternd --help", argv[optind - 1]);
	if (c != -1)
		return error_set(err, ERROR_USAGE, "unknown option %s; see posternd --help", argv[optind - 1]);
	if (optind < argc)
		return error_set(err, ERROR_USAGE, "unexpected argument %s; see posternd --help", argv[optind]);
	return 0;
}

/* Adds the name servers of the host. */
static void
options_read_resolv_conf(struct options *options)
{
	FILE *file = fopen(OPTIONS_RESOLV_CONF, "re");
	char line[512], word[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL &&
	    options->resolver_count < OPTIONS_RESOLVERS_MAX) {
		struct options_resolver *resolver = &options->resolvers[options->resolver_count];

		if (sscanf(line, " nameserver %255s", word) == 1 && options_parse_resolver(word, resolver) == 0)
			options->resolver_count++;
	}
	if (file != NULL)
		fclose(file);
}

/* Looks a user up; the role must not run as root. */
static int
options_user(const char *name, const char *option, uid_t *ret_uid, struct error *err)
{
	unsigned long number;
	struct passwd *user;

	if (options_number(name, UINT32_MAX - 1, &number) == 0) {
		*ret_uid = (uid_t)number;
	} else {
		user = getpwnam(name);
		if (user == NULL)
			return error_set(err, ERROR_NOT_FOUND,
			    "user %s does not exist: run systemd-sysusers, or name another one with --%s", name,
			    option);
		*ret_uid = user->pw_uid;
	}
	if (*ret_uid == 0)
		return error_set(err, ERROR_USAGE, "--%s %s: the role must not run as root", option, name);
	return 0;
}

/* The roles that give up root, and whom they become by default. */
static const struct {
	enum msg_role role;
	const char *option, *user;
} options_users[] = {
    {MSG_ROLE_GATEWAY, "gateway-user", "postern-gateway"},
    {MSG_ROLE_AUDITOR, "audit-user", "postern-audit"},
    {MSG_ROLE_CONTROL, "control-user", "postern-control"},
};
#define OPTIONS_USERS (sizeof(options_users) / sizeof(options_users[0]))

/* Looks up the roles' users and the group. */
static int
options_resolve_users(struct options *options, struct error *err)
{
	unsigned long number;
	struct group *group;

	options->group_gid = getegid();
	for (size_t i = 0; i < OPTIONS_USERS; i++) {
		uid_t *uid = &options->uids[options_users[i].role];

		*uid = geteuid();
		if (!options->rootless &&
		    options_user(options->users[options_users[i].role], options_users[i].option, uid, err) < 0)
			return -1;
		for (size_t before = 0; before < i && !options->rootless; before++)
			if (options->uids[options_users[before].role] == *uid)
				return error_set(err, ERROR_USAGE,
				    "--gateway-user, --audit-user and --control-user must be three different users");
	}
	if (options->rootless)
		return 0;
	if (options_number(options->group, UINT32_MAX - 1, &number) == 0) {
		options->group_gid = (gid_t)number;
		return 0;
	}
	group = getgrnam(options->group);
	if (group == NULL)
		return error_set(err, ERROR_NOT_FOUND,
		    "group %s does not exist: run systemd-sysusers, or name another one with --group", options->group);
	options->group_gid = group->gr_gid;
	return 0;
}

int
options_read(struct options *options, int argc, char **argv, struct error *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	memset(options, 0, sizeof(*options));
	options->rootless = geteuid() != 0;
	options->runtime_dir = paths_own_runtime_dir();
	options->state_dir = paths_own_state_dir();
	options->netns_dir = "/run/netns";
	options->geo_files[GEO_COUNTRY] = paths_country_db();
	options->geo_files[GEO_ASN] = paths_asn_db();
	for (size_t i = 0; i < OPTIONS_USERS; i++)
		options->users[options_users[i].role] = options_users[i].user;
	options->group = "postern";
	options->retain_s = OPTIONS_RETAIN_DEFAULT_S;
	options->retain_bytes = OPTIONS_RETAIN_BYTES_DEFAULT;
	options->gateways = cores < 1              ? 1
	    : cores > OPTIONS_GATEWAYS_DEFAULT_MAX ? OPTIONS_GATEWAYS_DEFAULT_MAX
						   : (unsigned int)cores;
	if (options_read_arguments(options, argc, argv, err) < 0)
		return -1;
	if (options->rootless)
		options->netns_dir = NULL;
	if (options->resolver_count == 0)
		options_read_resolv_conf(options);
	if (options->resolver_count == 0)
		return error_set(
		    err, ERROR_USAGE, "no resolver: " OPTIONS_RESOLV_CONF " names none; give --resolver ADDRESS");
	return options->probe ? 0 : options_resolve_users(options, err);
}

int
options_open_geo(const struct options *options, struct geo *ret_geo, struct error *err)
{
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		const char *file = options->geo_files[kind] == NULL ? "?" : options->geo_files[kind];

		if (options->geo_fds[kind] == 0)
			continue;
		if (geo_open(ret_geo, (enum geo_kind)kind, options->geo_fds[kind], file, err) < 0)
			return -1;
		close(options->geo_fds[kind]);
	}
	return 0;
}
