/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Labels and parent are for the log alone: nothing is decided by either. */
#include "gateway/control/control_config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "[ADDR]/128" and NUL. */
#define CONFIG_ADDR_MAX (ADDR_TEXT_MAX + 8)
/* Instead of an IPv6 address: the sandbox has none, and the guest's IPv6 frames are refused. */
#define CONFIG_NONE "none"

/* "UID:GID", numbers only: names mean something else on another machine. */
static int
config_owner(const json_t *value, struct tap_config *config, struct error *err)
{
	char text[32], end;
	unsigned long uid, gid;

	if (value == NULL)
		return 0;
	if (control_json_text(value, "owner", text, sizeof(text), err) < 0)
		return -1;
	if (config->kind != TAP_KIND_TAP)
		return error_set(err, ERROR_USAGE, "\"owner\" is for a tap only");
	if (strspn(text, "0123456789:") != strlen(text) || sscanf(text, "%10lu:%10lu%c", &uid, &gid, &end) != 2 ||
	    uid >= (uid_t)-1 || gid >= (gid_t)-1)
		return error_set(err, ERROR_USAGE, "\"owner\" must be UID:GID in numbers, such as 1000:1000");
	config->owner_uid = (uid_t)uid;
	config->owner_gid = (gid_t)gid;
	return 0;
}

static int
config_mac(const json_t *value, struct tap_config *config, struct error *err)
{
	char text[18], end;
	unsigned int b[6];

	if (value == NULL)
		return 0;
	if (control_json_text(value, "mac", text, sizeof(text), err) < 0)
		return -1;
	if (strlen(text) != 17 || strspn(text, "0123456789abcdefABCDEF:") != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &end) != 6)
		return error_set(err, ERROR_USAGE, "\"mac\" must look like 06:00:ac:10:00:02");
	for (int i = 0; i < 6; i++)
		config->guest_mac[i] = (uint8_t)b[i];
	return 0;
}

/* The usual place of a gateway: the subnet's first address, or the next one when that is the guest's. */
static struct addr
config_default_gateway(const struct addr *guest, uint8_t bits)
{
	size_t len = guest->family == 4 ? 4 : 16;
	struct addr gateway = *guest;

	for (size_t i = 0; i < len; i++) {
		size_t first = i * 8;

		if (first >= bits)
			gateway.bytes[i] = 0;
		else if (first + 8 > bits)
			gateway.bytes[i] &= (uint8_t)(0xff << (8 - (bits - first)));
	}
	gateway.bytes[len - 1] |= 1;
	if (addr_equal(&gateway, guest))
		gateway.bytes[len - 1] ^= 3;
	return gateway;
}

static int
config_guest(const json_t *value, const char *what, uint8_t family, struct addr *addr, uint8_t *bits,
    struct addr *gateway, struct error *err)
{
	unsigned int max = family == 4 ? 32 : 128, length;
	char text[CONFIG_ADDR_MAX], end, *slash;
	struct addr parsed;

	if (value == NULL)
		return 0;
	if (control_json_text(value, what, text, sizeof(text), err) < 0)
		return -1;
	if (family == 6 && strcmp(text, CONFIG_NONE) == 0) {
		*addr = *gateway = (struct addr){.family = 0};
		*bits = 0;
		return 0;
	}
	slash = strchr(text, '/');
	if (slash == NULL || strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
	    sscanf(slash + 1, "%3u%c", &length, &end) != 1 || length < 1 || length > max ||
	    !addr_parse(text, (size_t)(slash - text), &parsed) || parsed.family != family)
		return error_set(err, ERROR_USAGE, "\"%s\" must be an IPv%u address with its prefix length, such as %s",
		    what, family, family == 4 ? "172.16.0.2/30" : "fd00::2/64, or " CONFIG_NONE);
	*addr = parsed;
	*bits = (uint8_t)length;
	*gateway = config_default_gateway(addr, *bits);
	return 0;
}

static int
config_gateway(const json_t *value, const char *what, uint8_t family, struct addr *gateway, struct error *err)
{
	char text[CONFIG_ADDR_MAX];
	struct addr parsed;

	if (value == NULL)
		return 0;
	if (control_json_text(value, what, text, sizeof(text), err) < 0)
		return -1;
	if (!addr_parse(text, strlen(text), &parsed) || parsed.family != family)
		return error_set(err, ERROR_USAGE, "\"%s\" must be an IPv%u address", what, family);
	*gateway = parsed;
	return 0;
}

static int
config_source(const json_t *netns, const json_t *pid, struct control_sandbox *sandbox, struct error *err)
{
	int64_t number = 0;

	if (control_json_text(netns, "netns", sandbox->netns_source, sizeof(sandbox->netns_source), err) < 0 ||
	    control_json_integer(pid, "pid", 1, INT32_MAX, &number, err) < 0)
		return -1;
	sandbox->pid = (int32_t)number;
	if (sandbox->config.kind == TAP_KIND_TAP && (netns != NULL || pid != NULL))
		return error_set(err, ERROR_USAGE, "\"netns\" and \"pid\" are for kind \"netns\" only");
	if (sandbox->config.kind == TAP_KIND_NETNS && (netns == NULL) == (pid == NULL))
		return error_set(err, ERROR_USAGE, "kind \"netns\" needs either \"netns\" (a path) or \"pid\"");
	if (netns != NULL && sandbox->netns_source[0] != '/')
		return error_set(err, ERROR_USAGE, "\"netns\" must be an absolute path");
	return 0;
}

/* -- labels and parent --------------------------------------------------------------------------------------------- */

/* Values are printable ASCII: labels are compared and joined by programs, and two that look alike should be alike. */
static int
labels_check(const char *key, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	size_t len = strlen(key);

	if (len == 0 || len > CONTROL_LABEL_KEY_MAX || strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789._/-") != len)
		return error_set(err, ERROR_USAGE,
		    "label '%.100s': a key is 1 to %d of a to z, digits, '.', '_', '/' and '-'", key,
		    CONTROL_LABEL_KEY_MAX);
	len = json_string_length(value);
	if (text == NULL)
		return error_set(err, ERROR_USAGE, "label '%s': its value must be a string", key);
	if (len > CONTROL_LABEL_VALUE_MAX)
		return error_set(
		    err, ERROR_USAGE, "label '%s': its value is longer than %d bytes", key, CONTROL_LABEL_VALUE_MAX);
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return error_set(err, ERROR_USAGE, "label '%s': its value is not printable ASCII", key);
	return 0;
}

int
control_config_parse_labels(const json_t *labels, json_t **ret_labels, struct error *err)
{
	const char *key;
	json_t *value, *copy;
	char *text;
	size_t len;

	if (json_object_size(labels) == 0)
		return 0;
	if (json_object_size(labels) > CONTROL_LABELS_MAX)
		return error_set(err, ERROR_USAGE, "more than %d labels", CONTROL_LABELS_MAX);
	copy = json_deep_copy(labels);
	json_object_foreach(copy, key, value)
	{
		if (labels_check(key, value, err) < 0) {
			json_decref(copy);
			return -1;
		}
	}
	text = json_dumps(copy, JSON_COMPACT);
	len = text == NULL ? 0 : strlen(text);
	free(text);
	if (len == 0 || len > CONTROL_LABELS_TEXT_MAX) {
		json_decref(copy);
		if (len == 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		return error_set(
		    err, ERROR_USAGE, "the labels are longer than %d bytes together", CONTROL_LABELS_TEXT_MAX);
	}
	*ret_labels = copy;
	return 0;
}

int
control_config_find_parent(
    struct control *control, const json_t *value, struct control_sandbox *sandbox, struct error *err)
{
	char name[TAP_NAME_MAX] = "";
	const struct control_sandbox *parent;

	if (value == NULL)
		return 0;
	if (control_json_text(value, "parent", name, sizeof(name), err) < 0)
		return -1;
	parent = control_sandbox_find(control, name);
	if (parent == NULL || parent->id == 0)
		return error_set(err, ERROR_NOT_FOUND,
		    "parent %s: no sandbox of this name is attached; attach a clone while its parent is attached",
		    name);
	memcpy(sandbox->parent, parent->name, sizeof(sandbox->parent));
	sandbox->parent_id = parent->id;
	return 0;
}

/* The parent as stored: {"name","id"}; NULL: none. */
static int
config_parse_parent(json_t *object, struct control_sandbox *sandbox, struct error *err)
{
	json_t *name, *id;
	const struct control_field fields[] = {
	    {"name", JSON_STRING, true, &name},
	    {"id", JSON_INTEGER, true, &id},
	};

	if (object == NULL)
		return 0;
	if (control_json_fields(object, fields, sizeof(fields) / sizeof(fields[0]), err) < 0 ||
	    control_json_text(name, "parent", sandbox->parent, sizeof(sandbox->parent), err) < 0)
		return -1;
	if (!tap_config_name_valid(sandbox->parent, sizeof(sandbox->parent)))
		return error_set(err, ERROR_USAGE, "\"parent\" is not a valid sandbox name");
	return control_json_integer(id, "parent's id", 1, INT64_MAX, &sandbox->parent_id, err);
}

int
control_config_parse(
    json_t *object, const struct control_field *more, size_t count, struct control_sandbox *sandbox, struct error *err)
{
	enum { CONFIG_OWN = 13 };
	json_t *name, *kind_json, *ifname, *owner, *guest_ip, *gateway_ip, *guest_ip6, *gateway_ip6, *mac, *netns, *pid,
	    *policy_file, *labels;
	struct control_field fields[CONFIG_OWN + CONTROL_CONFIG_MORE_MAX] = {
	    {"name", JSON_STRING, true, &name},
	    {"kind", JSON_STRING, true, &kind_json},
	    {"ifname", JSON_STRING, false, &ifname},
	    {"owner", JSON_STRING, false, &owner},
	    {"guest_ip", JSON_STRING, false, &guest_ip},
	    {"gateway_ip", JSON_STRING, false, &gateway_ip},
	    {"guest_ip6", JSON_STRING, false, &guest_ip6},
	    {"gateway_ip6", JSON_STRING, false, &gateway_ip6},
	    {"mac", JSON_STRING, false, &mac},
	    {"netns", JSON_STRING, false, &netns},
	    {"pid", JSON_INTEGER, false, &pid},
	    {"policy_file", JSON_STRING, false, &policy_file},
	    {"labels", JSON_OBJECT, false, &labels},
	};
	struct tap_config *config = &sandbox->config, checked;
	const char *kind;

	assert(count <= CONTROL_CONFIG_MORE_MAX);
	memcpy(&fields[CONFIG_OWN], more, count * sizeof(*more));
	if (control_json_fields(object, fields, CONFIG_OWN + count, err) < 0)
		return -1;
	kind = json_string_value(kind_json);
	if (strcmp(kind, "tap") != 0 && strcmp(kind, "netns") != 0)
		return error_set(err, ERROR_USAGE, "\"kind\" must be \"tap\" or \"netns\"");
	config->kind = strcmp(kind, "tap") == 0 ? TAP_KIND_TAP : TAP_KIND_NETNS;
	if (config->kind == TAP_KIND_NETNS)
		snprintf(config->ifname, sizeof(config->ifname), "eth0");
	if (control_json_text(ifname, "ifname", config->ifname, sizeof(config->ifname), err) < 0 ||
	    config_owner(owner, config, err) < 0 || config_mac(mac, config, err) < 0 ||
	    config_guest(guest_ip, "guest_ip", 4, &config->guest4, &config->bits4, &config->router4, err) < 0 ||
	    config_gateway(gateway_ip, "gateway_ip", 4, &config->router4, err) < 0 ||
	    config_guest(guest_ip6, "guest_ip6", 6, &config->guest6, &config->bits6, &config->router6, err) < 0 ||
	    config_gateway(gateway_ip6, "gateway_ip6", 6, &config->router6, err) < 0 ||
	    config_source(netns, pid, sandbox, err) < 0 ||
	    control_json_text(policy_file, "policy_file", sandbox->policy_file, sizeof(sandbox->policy_file), err) <
		0 ||
	    control_config_parse_labels(labels, &sandbox->labels, err) < 0)
		return -1;
	/* The keeper opens the container's namespace; here any descriptor stands for it. */
	checked = *config;
	checked.netns_fd = config->kind == TAP_KIND_NETNS ? 0 : -1;
	return tap_config_check(&checked, err);
}

/* -- the answer and the stored form -------------------------------------------------------------------------------- */

static void
config_set_subnet(json_t *object, const char *key, const struct addr *addr, uint8_t bits)
{
	char text[ADDR_TEXT_MAX];

	json_object_set_new(object, key,
	    addr->family == 0 ? json_string(CONFIG_NONE) /* without the member it would be the default */
			      : json_sprintf("%s/%u", addr_format(addr, text), (unsigned int)bits));
}

/* The members that the attach request, the stored form and the API's answers have in common. */
static void
config_format(json_t *object, const struct control_sandbox *sandbox)
{
	const struct tap_config *config = &sandbox->config;

	json_object_set_new(object, "name", json_string(sandbox->name));
	json_object_set_new(object, "kind", json_string(config->kind == TAP_KIND_TAP ? "tap" : "netns"));
	control_json_set_text(object, "ifname", config->ifname);
	if (config->kind == TAP_KIND_TAP && config->owner_uid != (uid_t)-1)
		json_object_set_new(object, "owner", json_sprintf("%u:%u", config->owner_uid, config->owner_gid));
	config_set_subnet(object, "guest_ip", &config->guest4, config->bits4);
	control_json_set_addr(object, "gateway_ip", &config->router4);
	config_set_subnet(object, "guest_ip6", &config->guest6, config->bits6);
	control_json_set_addr(object, "gateway_ip6", &config->router6);
	control_json_set_mac(object, "mac", config->guest_mac);
	control_json_set_text(object, "netns", sandbox->netns_source);
	if (sandbox->pid != 0)
		json_object_set_new(object, "pid", json_integer(sandbox->pid));
	control_json_set_text(object, "policy_file", sandbox->policy_file);
	if (sandbox->labels != NULL)
		json_object_set(object, "labels", sandbox->labels);
	if (sandbox->parent[0] != '\0')
		json_object_set_new(object, "parent",
		    json_pack("{s:s, s:I}", "name", sandbox->parent, "id", (json_int_t)sandbox->parent_id));
	json_object_set_new(object, "generation", json_integer(sandbox->generation));
	json_object_set_new(object, "uid", json_integer(sandbox->uid));
	json_object_set_new(object, "id", json_integer(sandbox->id));
}

json_t *
control_config_summary(const struct control_sandbox *sandbox)
{
	json_t *object = json_object();

	if (object == NULL)
		return NULL;
	json_object_set_new(object, "name", json_string(sandbox->name));
	json_object_set_new(object, "id", json_integer(sandbox->id));
	json_object_set_new(object, "state", json_string(control_sandbox_state(sandbox)));
	control_json_set_text(object, "error", sandbox->error);
	if (sandbox->id == 0)
		return object;
	config_format(object, sandbox);
	control_json_set_time(object, "attached", sandbox->id);
	json_object_del(object, "netns");
	control_json_set_text(object, "container_netns", sandbox->netns_source);
	json_object_set_new(object, "device", json_string(sandbox->config.ifname));
	json_object_del(object, "ifname");
	control_json_set_text(object, "netns", sandbox->netns);
	json_object_set_new(object, "policy_hash", json_string(sandbox->hash));
	json_object_set_new(object, "rules",
	    json_integer(sandbox->snapshot == NULL ? 0 : (json_int_t)snapshot_rule_count(sandbox->snapshot)));
	return object;
}

char *
control_config_format_attachment(const struct control_sandbox *sandbox)
{
	json_t *object = json_object();
	char *text;

	if (object == NULL)
		return NULL;
	json_object_set_new(object, "version", json_integer(1));
	config_format(object, sandbox);
	json_object_set_new(object, "last_generation", json_integer(sandbox->last_generation));
	json_object_set_new(object, "hash", json_string(sandbox->hash));
	json_object_set_new(object, "policy_applied_us", json_integer(sandbox->policy_applied_us));
	json_object_set_new(object, "netns_dev", json_integer((json_int_t)sandbox->netns_dev));
	json_object_set_new(object, "netns_ino", json_integer((json_int_t)sandbox->netns_ino));
	text = json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	return text;
}

static int
config_read_attachment(json_t *object, struct control_sandbox *sandbox, struct error *err)
{
	json_t *version_json, *id, *uid_json, *generation_json, *last_json, *hash, *applied, *dev_json, *ino_json,
	    *parent;
	const struct control_field fields[] = {
	    {"version", JSON_INTEGER, true, &version_json},
	    {"id", JSON_INTEGER, true, &id},
	    {"uid", JSON_INTEGER, true, &uid_json},
	    {"generation", JSON_INTEGER, true, &generation_json},
	    {"last_generation", JSON_INTEGER, true, &last_json},
	    {"hash", JSON_STRING, true, &hash},
	    {"policy_applied_us", JSON_INTEGER, false, &applied},
	    {"netns_dev", JSON_INTEGER, true, &dev_json},
	    {"netns_ino", JSON_INTEGER, true, &ino_json},
	    {"parent", JSON_OBJECT, false, &parent},
	};
	int64_t version = 0, uid = 0, generation = 0, last = 0, dev = 0, ino = 0;

	if (control_config_parse(object, fields, sizeof(fields) / sizeof(fields[0]), sandbox, err) < 0 ||
	    control_json_text(hash, "hash", sandbox->hash, sizeof(sandbox->hash), err) < 0 ||
	    config_parse_parent(parent, sandbox, err) < 0 ||
	    control_json_integer(version_json, "version", 1, 1, &version, err) < 0 ||
	    control_json_integer(id, "id", 1, INT64_MAX, &sandbox->id, err) < 0 ||
	    control_json_integer(uid_json, "uid", 0, UINT32_MAX, &uid, err) < 0 ||
	    control_json_integer(generation_json, "generation", 0, UINT32_MAX, &generation, err) < 0 ||
	    control_json_integer(last_json, "last_generation", generation, UINT32_MAX, &last, err) < 0 ||
	    control_json_integer(applied, "policy_applied_us", 0, INT64_MAX, &sandbox->policy_applied_us, err) < 0 ||
	    control_json_integer(dev_json, "netns_dev", 0, INT64_MAX, &dev, err) < 0 ||
	    control_json_integer(ino_json, "netns_ino", 0, INT64_MAX, &ino, err) < 0)
		return -1;
	if (strcmp(json_string_value(json_object_get(object, "name")), sandbox->name) != 0)
		return error_set(err, ERROR_CORRUPT, "it is about another sandbox");
	sandbox->uid = (uint32_t)uid;
	sandbox->generation = (uint32_t)generation;
	sandbox->last_generation = (uint32_t)last;
	sandbox->netns_dev = (uint64_t)dev;
	sandbox->netns_ino = (uint64_t)ino;
	return 0;
}

int
control_config_parse_attachment(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err)
{
	json_t *object = control_json_parse(text, len, err);
	int rc;

	if (object == NULL) {
		err->code = ERROR_CORRUPT;
		return error_prefix(err, "attachment.json");
	}
	rc = config_read_attachment(object, sandbox, err);
	json_decref(object);
	if (rc < 0) {
		sandbox->id = 0;
		err->code = ERROR_CORRUPT;
		error_prefix(err, "attachment.json");
	}
	return rc;
}
