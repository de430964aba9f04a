/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control.h"

#include "gateway/control/control_config.h"
#include "gateway/control/control_labels.h"

#include "policy/text/terms.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int
sandbox_compare(const void *a, const void *b)
{
	const struct control_sandbox *left = a, *right = b;

	return strcmp(left->name, right->name);
}

struct control_sandbox *
control_sandbox_find(struct control *control, const char *name)
{
	struct control_sandbox key;
	void *node;

	snprintf(key.name, sizeof(key.name), "%s", name);
	node = tfind(&key, &control->sandboxes, sandbox_compare);
	return node == NULL ? NULL : *(struct control_sandbox **)node;
}

struct control_sandbox *
control_sandbox_new(const char *name)
{
	struct control_sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (sandbox == NULL)
		return NULL;
	tap_config_init(&sandbox->config);
	policy_init(&sandbox->edits);
	snprintf(sandbox->name, sizeof(sandbox->name), "%s", name);
	snprintf(sandbox->config.name, sizeof(sandbox->config.name), "%s", name);
	return sandbox;
}

int
control_sandbox_insert(struct control *control, struct control_sandbox *sandbox)
{
	if (tsearch(sandbox, &control->sandboxes, sandbox_compare) == NULL)
		return -ENOMEM;
	control->sandbox_count++;
	return 0;
}

void
control_sandbox_remove(struct control *control, struct control_sandbox *sandbox)
{
	tdelete(sandbox, &control->sandboxes, sandbox_compare);
	control->sandbox_count--;
	control_sandbox_free(sandbox);
}

void
control_sandbox_free(struct control_sandbox *sandbox)
{
	if (sandbox == NULL)
		return;
	control_text_release(sandbox->policy_text);
	policy_free(&sandbox->edits);
	snapshot_free(sandbox->snapshot);
	usage_table_free(&sandbox->usage);
	json_decref(sandbox->labels);
	free(sandbox);
}

struct sandbox_walk {
	void (*handler)(struct control_sandbox *sandbox, void *context);
	void *context;
};

static void
sandbox_visit(const void *node, VISIT which, void *context)
{
	const struct sandbox_walk *walk = context;

	if (which == postorder || which == leaf)
		walk->handler(*(struct control_sandbox *const *)node, walk->context);
}

void
control_sandbox_each(
    struct control *control, void (*handler)(struct control_sandbox *sandbox, void *context), void *context)
{
	struct sandbox_walk walk = {.handler = handler, .context = context};

	twalk_r(control->sandboxes, sandbox_visit, &walk);
}

const char *
control_sandbox_state(const struct control_sandbox *sandbox)
{
	if (sandbox->restoring)
		return "restoring";
	return sandbox->error[0] != '\0' || !sandbox->attached ? "broken" : "attached";
}

static void
sandbox_set_addr(json_t *object, const char *key, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	if (addr->family != 0)
		json_object_set_new(object, key, json_string(addr_format(addr, text)));
}

static void
sandbox_set_subnet(json_t *object, const char *key, const struct addr *addr, uint8_t bits)
{
	char text[ADDR_TEXT_MAX], subnet[ADDR_TEXT_MAX + 8];

	if (addr->family == 0)
		snprintf(subnet, sizeof(subnet), CONTROL_CONFIG_NONE); /* left out, it would be the default */
	else
		snprintf(subnet, sizeof(subnet), "%s/%u", addr_format(addr, text), (unsigned int)bits);
	json_object_set_new(object, key, json_string(subnet));
}

static void
sandbox_set_mac(json_t *object, const char *key, const uint8_t mac[6])
{
	static const uint8_t none[6];
	char text[18];

	if (memcmp(mac, none, sizeof(none)) == 0)
		return;
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	json_object_set_new(object, key, json_string(text));
}

static void
sandbox_set_text(json_t *object, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(object, key, json_string(text));
}

static void
sandbox_set_time(json_t *object, const char *key, int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	char text[40], whole[64];

	if (us == 0 || gmtime_r(&seconds, &tm) == NULL)
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(whole, sizeof(whole), "%s.%06lldZ", text, (long long)(us % 1000000));
	json_object_set_new(object, key, json_string(whole));
}

/* The part that the attach request, the stored form and the API's answers spell in the same way. */
static void
sandbox_set_config(json_t *object, const struct control_sandbox *sandbox)
{
	const struct tap_config *config = &sandbox->config;

	json_object_set_new(object, "name", json_string(sandbox->name));
	json_object_set_new(object, "kind", json_string(config->kind == TAP_KIND_TAP ? "tap" : "netns"));
	sandbox_set_text(object, "ifname", config->ifname);
	if (config->kind == TAP_KIND_TAP && config->owner_uid != (uid_t)-1)
		json_object_set_new(object, "owner", json_sprintf("%u:%u", config->owner_uid, config->owner_gid));
	sandbox_set_subnet(object, "guest_ip", &config->guest4, config->bits4);
	sandbox_set_addr(object, "gateway_ip", &config->gateway4);
	sandbox_set_subnet(object, "guest_ip6", &config->guest6, config->bits6);
	sandbox_set_addr(object, "gateway_ip6", &config->gateway6);
	sandbox_set_mac(object, "mac", config->guest_mac);
	sandbox_set_text(object, "netns", sandbox->netns_source);
	if (sandbox->pid != 0)
		json_object_set_new(object, "pid", json_integer(sandbox->pid));
	sandbox_set_text(object, "policy_file", sandbox->policy_file);
	control_labels_format(object, sandbox);
	json_object_set_new(object, "generation", json_integer(sandbox->generation));
	json_object_set_new(object, "uid", json_integer(sandbox->uid));
	json_object_set_new(object, "id", json_integer(sandbox->id));
}

char *
control_attachment_format(const struct control_sandbox *sandbox)
{
	json_t *object = json_object();
	char *text;

	if (object == NULL)
		return NULL;
	json_object_set_new(object, "version", json_integer(1));
	sandbox_set_config(object, sandbox);
	json_object_set_new(object, "last_generation", json_integer(sandbox->last_generation));
	json_object_set_new(object, "hash", json_string(sandbox->hash));
	json_object_set_new(object, "policy_applied_us", json_integer(sandbox->policy_applied_us));
	json_object_set_new(object, "netns_dev", json_integer((json_int_t)sandbox->netns_dev));
	json_object_set_new(object, "netns_ino", json_integer((json_int_t)sandbox->netns_ino));
	text = json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	return text;
}

json_t *
control_sandbox_summary(const struct control_sandbox *sandbox)
{
	json_t *object = json_object();

	if (object == NULL)
		return NULL;
	json_object_set_new(object, "name", json_string(sandbox->name));
	json_object_set_new(object, "id", json_integer(sandbox->id));
	json_object_set_new(object, "state", json_string(control_sandbox_state(sandbox)));
	sandbox_set_text(object, "error", sandbox->error);
	if (sandbox->id == 0)
		return object;
	sandbox_set_config(object, sandbox);
	sandbox_set_time(object, "attached", sandbox->id);
	json_object_del(object, "netns");
	sandbox_set_text(object, "container_netns", sandbox->netns_source);
	json_object_set_new(object, "device", json_string(sandbox->config.ifname));
	json_object_del(object, "ifname");
	sandbox_set_text(object, "netns", sandbox->netns);
	json_object_set_new(object, "policy_hash", json_string(sandbox->hash));
	json_object_set_new(object, "rules",
	    json_integer(sandbox->snapshot == NULL ? 0 : (json_int_t)snapshot_rule_count(sandbox->snapshot)));
	return object;
}

/* Each kind that is limited, by its word. Nothing for none. */
static void
sandbox_set_limits(json_t *object, const struct limits *limits)
{
	json_t *kinds = json_object();

	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (limits->of[kind].hard != 0)
			json_object_set_new(kinds, limit_kind_text(kind),
			    json_pack("{s:I, s:I}", "soft", (json_int_t)limits->of[kind].soft, "hard",
				(json_int_t)limits->of[kind].hard));
	if (json_object_size(kinds) > 0)
		json_object_set(object, "limits", kinds);
	json_decref(kinds);
}

/* What is in force for the sandbox as a whole, and where that stands. */
static void
sandbox_set_settings(json_t *object, const struct snapshot *snapshot)
{
	json_t *origins = json_object();

	json_object_set_new(
	    object, "mode", json_string(snapshot_mode(snapshot) == POLICY_MODE_LEARN ? "learn" : "enforce"));
	json_object_set_new(
	    object, "ech", json_string(snapshot_ech(snapshot) == POLICY_ECH_DENY ? "deny" : "grease-ok"));
	json_object_set_new(object, "bounded", json_boolean(snapshot_is_bounded(snapshot)));
	sandbox_set_limits(object, snapshot_limits(snapshot));
	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++)
		sandbox_set_text(origins, terms_setting_text((enum policy_setting)i),
		    snapshot_setting_origin(snapshot, (enum policy_setting)i));
	json_object_set_new(object, "origins", origins);
}

static json_t *
sandbox_rules(const struct control_sandbox *sandbox)
{
	const struct snapshot *snapshot = sandbox->snapshot;
	json_t *rules = json_array();
	size_t count = snapshot == NULL ? 0 : snapshot_rule_count(snapshot);

	for (uint32_t i = 0; i < count; i++) {
		json_t *rule = json_pack(
		    "{s:s, s:s}", "rule", snapshot_rule_text(snapshot, i), "origin", snapshot_rule_origin(snapshot, i));

		if (snapshot_rule_expires_us(snapshot, i) != 0)
			sandbox_set_time(rule, "expires", snapshot_rule_expires_us(snapshot, i));
		if (snapshot_rule_uses(snapshot, i) != 0) {
			json_object_set_new(rule, "uses", json_integer(snapshot_rule_uses(snapshot, i)));
			json_object_set_new(rule, "used", json_integer((json_int_t)control_usage_of(sandbox, i)));
		}
		if (snapshot_rule_is_organisations(snapshot, i))
			json_object_set_new(rule, "organisation", json_true());
		if (snapshot_rule_is_bound(snapshot, i))
			json_object_set_new(rule, "bound", json_true());
		sandbox_set_limits(rule, snapshot_rule_limits(snapshot, i));
		json_array_append_new(rules, rule);
	}
	return rules;
}

json_t *
control_sandbox_full(const struct control_sandbox *sandbox)
{
	json_t *object = control_sandbox_summary(sandbox);
	char *edits;

	if (object == NULL || sandbox->id == 0)
		return object;
	sandbox_set_mac(object, "gateway_mac", sandbox->gateway_mac);
	sandbox_set_addr(object, "dns", &sandbox->config.gateway4);
	sandbox_set_addr(object, "dns6", &sandbox->config.gateway6);
	json_object_set_new(object, "rules", sandbox_rules(sandbox));
	json_object_set_new(
	    object, "policy", sandbox->policy_text == NULL ? json_null() : json_string(sandbox->policy_text));
	edits = sandbox->edits.rule_count == 0 ? NULL : policy_format(&sandbox->edits);
	json_object_set_new(object, "edits", edits == NULL ? json_null() : json_string(edits));
	free(edits);
	if (sandbox->snapshot != NULL)
		sandbox_set_settings(object, sandbox->snapshot);
	return object;
}
