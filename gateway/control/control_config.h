/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members that describe how a sandbox is attached, shared by the API's request and attachment.json. */
#ifndef POSTERN_GATEWAY_CONTROL_CONFIG_H
#define POSTERN_GATEWAY_CONTROL_CONFIG_H

#include "gateway/control/control.h"

#include <jansson.h>

struct control_config_json {
	json_t *name, *kind, *ifname, *owner, *guest_ip, *gateway_ip, *guest_ip6, *gateway_ip6, *mac, *netns, *pid,
	    *policy_file, *labels;
};

/* Instead of an IPv6 address: the sandbox has none, and the guest's IPv6 frames are refused. */
#define CONTROL_CONFIG_NONE "none"

/* Rows for control_json_fields that fill a struct control_config_json. */
#define CONTROL_CONFIG_FIELDS(json)                                                                                    \
	{"name", JSON_STRING, true, &(json).name}, {"kind", JSON_STRING, true, &(json).kind},                          \
	    {"ifname", JSON_STRING, false, &(json).ifname}, {"owner", JSON_STRING, false, &(json).owner},              \
	    {"guest_ip", JSON_STRING, false, &(json).guest_ip},                                                        \
	    {"gateway_ip", JSON_STRING, false, &(json).gateway_ip},                                                    \
	    {"guest_ip6", JSON_STRING, false, &(json).guest_ip6},                                                      \
	    {"gateway_ip6", JSON_STRING, false, &(json).gateway_ip6}, {"mac", JSON_STRING, false, &(json).mac},        \
	    {"netns", JSON_STRING, false, &(json).netns}, {"pid", JSON_INTEGER, false, &(json).pid},                   \
	    {"policy_file", JSON_STRING, false, &(json).policy_file},                                                  \
	{                                                                                                              \
		"labels", JSON_OBJECT, false, &(json).labels                                                           \
	}

/* Fill config, source, pid, policy_file and labels of a fresh sandbox; defaults stay where a member is absent. */
int control_config_parse(const struct control_config_json *json, struct control_sandbox *sandbox, struct error *err);

#endif
