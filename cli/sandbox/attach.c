/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern attach. */
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/sandbox/label.h"
#include "cli/policy/policy_text.h"
#include "cli/sandbox/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	bool tap;
	const char *tap_name, *netns, *owner, *ifname;
	int64_t pid; /* 0: none */
	const char *guest_ip, *gateway_ip, *guest_ip6, *gateway_ip6, *mac, *policy, *parent;
	struct args_list allow, deny, labels;
} attach;

static const struct args_option attach_options[] = {
    {'t', "tap", "[IFNAME]", "a TAP for a microVM in a namespace of its own (default: tap0)", .flag = &attach.tap,
	.text = &attach.tap_name},
    {'n', "netns", "PATH", "a container's network namespace, by path or by its name in /run/netns",
	.text = &attach.netns},
    {'p', "pid", "PID", "a container's network namespace, by a process in it", .parse = command_parse_number,
	.target = &attach.pid, .min = 1, .max = INT_MAX},
    {0, "ifname", "IFNAME", "name of the device (tap0; in a container eth0)", .text = &attach.ifname},
    {0, "owner", "USER[:GROUP]", "who may open the TAP, besides root", .text = &attach.owner},
    COMMAND_POLICY(&attach.policy),
    COMMAND_ALLOW(&attach.allow),
    COMMAND_DENY(&attach.deny),
    COMMAND_LABEL(&attach.labels),
    {0, "parent", "NAME", "record that it is a clone of this sandbox; nothing is inherited", .text = &attach.parent},
    {0, "guest-ip", "ADDR/BITS", "the guest's address (172.16.0.2/30)", .text = &attach.guest_ip},
    {0, "gateway-ip", "ADDR", "its router and resolver (the subnet's first address)", .text = &attach.gateway_ip},
    {0, "guest-ip6", "ADDR/BITS", "the guest's IPv6 address, or none", .text = &attach.guest_ip6},
    {0, "gateway-ip6", "ADDR", "its IPv6 router and resolver", .text = &attach.gateway_ip6},
    {0, "mac", "MAC", "the guest's hardware address", .text = &attach.mac},
    {0},
};

static bool
attach_number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && *ret <= max;
}

/* "UID:GID", "USER" (with its own group), "USER:GROUP"; the daemon takes numbers only. */
static int
attach_owner(const char *text, json_t *request, struct error *err)
{
	const char *colon = strchr(text, ':');
	char *user = colon == NULL ? strdup(text) : strndup(text, (size_t)(colon - text));
	const struct passwd *passwd;
	const struct group *group;
	unsigned long uid = ULONG_MAX, gid = ULONG_MAX;

	if (user == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	if (!attach_number(user, UINT32_MAX - 1, &uid)) {
		passwd = getpwnam(user);
		if (passwd != NULL) {
			uid = passwd->pw_uid;
			gid = passwd->pw_gid;
		}
	} else if (colon == NULL && (passwd = getpwuid((uid_t)uid)) != NULL) {
		gid = passwd->pw_gid;
	}
	free(user);
	if (colon != NULL && !attach_number(colon + 1, UINT32_MAX - 1, &gid)) {
		group = getgrnam(colon + 1);
		gid = group == NULL ? ULONG_MAX : group->gr_gid;
	}
	if (uid == ULONG_MAX || gid == ULONG_MAX)
		return error_set(err, ERROR_USAGE, "--owner %.100s: no such user or group; write UID:GID", text);
	json_object_set_new(request, "owner", json_sprintf("%lu:%lu", uid, gid));
	return 0;
}

static int
attach_kind(json_t *request, struct error *err)
{
	bool tap = attach.netns == NULL && attach.pid == 0;
	char path[PATH_MAX], named[PATH_MAX];

	if (attach.tap + (attach.netns != NULL) + (attach.pid != 0) > 1)
		return command_usage(err, "--tap, --netns and --pid exclude each other");
	json_object_set_new(request, "kind", json_string(tap ? "tap" : "netns"));
	if (attach.pid != 0)
		json_object_set_new(request, "pid", json_integer(attach.pid));
	if (attach.netns == NULL)
		return 0;
	/* A path, or a name as `ip netns` has them. */
	snprintf(named, sizeof(named), "/run/netns/%.*s", PATH_MAX - 16, attach.netns);
	if (command_absolute(strchr(attach.netns, '/') == NULL ? named : attach.netns, path) < 0)
		return error_set(err, ERROR_USAGE, "--netns: the path is too long");
	json_object_set_new(request, "netns", json_string(path));
	return 0;
}

static int
attach_fill(json_t *request, const char *name, struct error *err)
{
	const struct {
		const char *member, *value;
	} members[] = {
	    {"name", name},
	    {"ifname", attach.ifname != NULL ? attach.ifname : attach.tap_name},
	    {"guest_ip", attach.guest_ip},
	    {"gateway_ip", attach.gateway_ip},
	    {"guest_ip6", attach.guest_ip6},
	    {"gateway_ip6", attach.gateway_ip6},
	    {"mac", attach.mac},
	    {"parent", attach.parent},
	};

	if (client_check_name(name, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i].value != NULL)
			json_object_set_new(request, members[i].member, json_string(members[i].value));
	if (label_add_all(request, &attach.labels, err) < 0 || attach_kind(request, err) < 0)
		return -1;
	if (attach.owner != NULL && attach_owner(attach.owner, request, err) < 0)
		return -1;
	return policy_text_add(request, attach.policy, &attach.allow, &attach.deny, err);
}

static int
attach_run(const struct command *command, struct error *err)
{
	json_t *request = json_object(), *answer;
	const char *name = command->operands.items[0];
	bool opens_nothing;

	if (attach_fill(request, name, err) < 0) {
		json_decref(request);
		return -1;
	}
	if (client_request("POST", "/v1/sandboxes", request, &answer, err) < 0)
		return -1;
	opens_nothing = json_array_size(json_object_get(answer, "rules")) == 0;
	command_print(command, answer, sandbox_print);
	if (opens_nothing)
		command_warn("no rules yet: %s can reach nothing; postern allow %s HOST adds one", name, name);
	return 0;
}

const struct command_row attach_command = {
    .name = "attach",
    .operands = "SANDBOX",
    .summary = "Make a sandbox for a microVM (a TAP) or around a container's network namespace.",
    .syntax = {.groups = {attach_options, command_output, command_daemon}},
    .run = attach_run,
};
