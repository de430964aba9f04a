/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern attach, postern detach. */
#include "cli/client.h"
#include "cli/command.h"
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

struct attach_options {
	bool tap;
	const char *tap_name, *netns, *pid, *owner, *ifname;
	const char *guest_ip, *gateway_ip, *guest_ip6, *gateway_ip6, *mac, *policy, *parent;
	struct args_list allow, deny, labels;
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

/* A path, or the name of a namespace as `ip netns` has them. */
static int
attach_netns(const char *text, json_t *request, struct error *err)
{
	char path[PATH_MAX], cwd[PATH_MAX / 2];
	int len;

	if (text[0] == '/')
		len = snprintf(path, sizeof(path), "%s", text);
	else if (strchr(text, '/') == NULL)
		len = snprintf(path, sizeof(path), "/run/netns/%s", text);
	else if (getcwd(cwd, sizeof(cwd)) != NULL)
		len = snprintf(path, sizeof(path), "%s/%s", cwd, text);
	else
		return error_sys(err, errno, "--netns %.100s", text);
	if (len < 0 || (size_t)len >= sizeof(path))
		return error_set(err, ERROR_USAGE, "--netns: path too long");
	json_object_set_new(request, "netns", json_string(path));
	return 0;
}

static int
attach_kind(const struct attach_options *options, json_t *request, struct error *err)
{
	unsigned long pid;
	bool tap = options->netns == NULL && options->pid == NULL;

	if (options->tap + (options->netns != NULL) + (options->pid != NULL) > 1)
		return error_set(err, ERROR_USAGE, "--tap, --netns and --pid exclude each other");
	json_object_set_new(request, "kind", json_string(tap ? "tap" : "netns"));
	if (options->netns != NULL)
		return attach_netns(options->netns, request, err);
	if (options->pid == NULL)
		return 0;
	if (!attach_number(options->pid, INT_MAX, &pid) || pid == 0)
		return error_set(err, ERROR_USAGE, "--pid %.100s: not a process number", options->pid);
	json_object_set_new(request, "pid", json_integer((json_int_t)pid));
	return 0;
}

static void
attach_set(json_t *request, const char *member, const char *value)
{
	if (value != NULL)
		json_object_set_new(request, member, json_string(value));
}

static int
attach_rules(
    const struct args_list *words, enum rule_action action, const char *member, json_t *request, struct error *err)
{
	json_t *rules;

	if (words->count == 0)
		return 0;
	rules = policy_text_rules(action, words->items, words->count, err);
	if (rules == NULL)
		return -1;
	json_object_set_new(request, member, rules);
	return 0;
}

static int
attach_request(const struct attach_options *options, const char *name, json_t *request, struct error *err)
{
	char path[CLIENT_PATH_MAX];

	if (client_sandbox_path(name, "", path, err) < 0)
		return -1;
	attach_set(request, "name", name);
	attach_set(request, "ifname", options->ifname != NULL ? options->ifname : options->tap_name);
	attach_set(request, "guest_ip", options->guest_ip);
	attach_set(request, "gateway_ip", options->gateway_ip);
	attach_set(request, "guest_ip6", options->guest_ip6);
	attach_set(request, "gateway_ip6", options->gateway_ip6);
	attach_set(request, "mac", options->mac);
	attach_set(request, "parent", options->parent);
	for (size_t i = 0; i < options->labels.count; i++)
		if (label_add(request, options->labels.items[i], err) < 0)
			return -1;
	if (attach_kind(options, request, err) < 0)
		return -1;
	if (options->owner != NULL && attach_owner(options->owner, request, err) < 0)
		return -1;
	if (options->policy != NULL && policy_text_read(options->policy, request, err) < 0)
		return -1;
	if (attach_rules(&options->allow, RULE_ALLOW, "allow", request, err) < 0)
		return -1;
	return attach_rules(&options->deny, RULE_DENY, "deny", request, err);
}

static int
attach_run(const struct attach_options *options, const struct command *command)
{
	json_t *request = json_object(), *answer = NULL;
	struct error err;
	int rc = attach_request(options, command->words.items[0], request, &err);

	if (rc == 0)
		rc = client_request("POST", "/v1/sandboxes", request, &answer, &err);
	json_decref(request);
	if (rc < 0)
		return command_fail(&err);
	if (command->json)
		command_print_json(answer);
	else
		sandbox_print(answer);
	if (json_array_size(json_object_get(answer, "rules")) == 0)
		command_warn("no rule yet: %s can reach nothing; postern allow %s HOST opens one",
		    command_text(answer, "name"), command_text(answer, "name"));
	json_decref(answer);
	return 0;
}

int
cli_attach(int argc, char **argv)
{
	static struct attach_options o; /* large */
	const struct args_option options[] = {
	    {'t', "tap", "[IFNAME]", "a TAP for a microVM in a namespace of its own (default: tap0)", &o.tap,
		&o.tap_name, NULL},
	    {'n', "netns", "PATH", "a container's network namespace, by path or by its name in /run/netns", NULL,
		&o.netns, NULL},
	    {'p', "pid", "PID", "a container's network namespace, by a process in it", NULL, &o.pid, NULL},
	    {0, "ifname", "IFNAME", "name of the device (tap0; in a container eth0)", NULL, &o.ifname, NULL},
	    {0, "owner", "USER[:GROUP]", "who may open the TAP, besides root", NULL, &o.owner, NULL},
	    {'f', "policy", "FILE", "policy in YAML; - is standard input", NULL, &o.policy, NULL},
	    {'a', "allow", "RULE", "a rule to begin with; may be repeated", NULL, NULL, &o.allow},
	    {'d', "deny", "RULE", "likewise", NULL, NULL, &o.deny},
	    {'l', "label", "KEY=VALUE", "what to find it by in lists and in the log; may be repeated", NULL, NULL,
		&o.labels},
	    {0, "parent", "NAME", "the log shall say that it is a clone of this sandbox; inherits nothing", NULL,
		&o.parent, NULL},
	    {0, "guest-ip", "ADDR/BITS", "the guest's address (172.16.0.2/30)", NULL, &o.guest_ip, NULL},
	    {0, "gateway-ip", "ADDR", "its gateway and resolver (the subnet's first)", NULL, &o.gateway_ip, NULL},
	    {0, "guest-ip6", "ADDR/BITS", "likewise for IPv6, or none", NULL, &o.guest_ip6, NULL},
	    {0, "gateway-ip6", "ADDR", "likewise for IPv6", NULL, &o.gateway_ip6, NULL},
	    {0, "mac", "MAC", "the guest's hardware address", NULL, &o.mac, NULL},
	};
	static struct command command;
	int status = command_parse(argc, argv, options, sizeof(options) / sizeof(options[0]), 1, 1, &command);

	return status >= 0 ? status : attach_run(&o, &command);
}

/* -- detach -------------------------------------------------------------------------------------------------------- */

static int
detach_one(const char *name, struct error *err)
{
	char path[CLIENT_PATH_MAX];
	json_t *answer;

	if (client_sandbox_path(name, "", path, err) < 0 || client_request("DELETE", path, NULL, &answer, err) < 0)
		return -1;
	json_decref(answer);
	return 0;
}

int
cli_detach(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 1, ARGS_LIST_MAX, &command);
	json_t *detached = json_array();
	struct error err;

	if (status >= 0) {
		json_decref(detached);
		return status;
	}
	status = 0;
	for (size_t i = 0; i < command.words.count; i++) {
		const char *name = command.words.items[i];

		if (detach_one(name, &err) < 0)
			status = command_fail(&err);
		else if (command.json)
			json_array_append_new(detached, json_string(name));
		else
			printf("%s detached\n", name);
	}
	if (command.json) {
		json_t *object = json_pack("{s:O}", "detached", detached);

		command_print_json(object);
		json_decref(object);
	}
	json_decref(detached);
	return status;
}
