/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a sandbox is attached, as JSON: the members of POST /v1/sandboxes, which attachment.json and answers repeat. */
#ifndef POSTERN_GATEWAY_CONTROL_CONFIG_H
#define POSTERN_GATEWAY_CONTROL_CONFIG_H

#include "gateway/control/control_json.h"
#include "gateway/control/control_sandbox.h"

/* Labels of one sandbox, and bytes of a key and of a value. */
#define CONTROL_LABELS_MAX 16
#define CONTROL_LABEL_KEY_MAX 63
#define CONTROL_LABEL_VALUE_MAX 128
/* All of them as JSON: they must fit the sandbox's record (RECORD_SANDBOX_DETAIL_MAX). */
#define CONTROL_LABELS_TEXT_MAX 2048

/* Members that a caller may add. */
#define CONTROL_CONFIG_MORE_MAX 10

/* Fill config, source, pid, policy_file and labels of a fresh sandbox from an object that has these members, and count
 * more of the caller's, which are taken apart. Defaults stay where a member is absent. 0, or -1 with ERROR_USAGE. */
int control_config_parse(
    json_t *object, const struct control_field *more, size_t count, struct control_sandbox *sandbox, struct error *err);

/* Check labels ({"key":"value"}; NULL: none). *ret_labels becomes a copy, or NULL when there is none. 0, or -1 with
 * ERROR_USAGE. */
int control_config_parse_labels(const json_t *value, json_t **ret_labels, struct error *err);

/* The parent by name, which must be attached now. value NULL: none. It is for the log alone: nothing is taken over from
 * it. 0, or -1 with ERROR_NOT_FOUND. */
int control_config_find_parent(
    struct control *control, const json_t *value, struct control_sandbox *sandbox, struct error *err);

/* What the API shows in a list. New reference; NULL without memory. */
json_t *control_config_summary(const struct control_sandbox *sandbox);

/* The stored form: attachment.json <-> the sandbox's fields (not policy text and edits). */
char *control_config_format_attachment(const struct control_sandbox *sandbox);
int control_config_parse_attachment(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err);

#endif
