/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What people say of a sandbox for the log alone: its labels, and of which sandbox it is a clone. Nothing is decided by
 * either. */
#ifndef POSTERN_GATEWAY_CONTROL_LABELS_H
#define POSTERN_GATEWAY_CONTROL_LABELS_H

#include "gateway/control/control.h"

#include <jansson.h>

/* Labels of one sandbox, and bytes of a key and of a value. */
#define CONTROL_LABELS_MAX 16
#define CONTROL_LABEL_KEY_MAX 63
#define CONTROL_LABEL_VALUE_MAX 128
/* All of them as JSON: they must fit the sandbox's record (RECORD_SANDBOX_DETAIL_MAX). */
#define CONTROL_LABELS_TEXT_MAX 2048

/* Check labels ({"key":"value"}; NULL: none). *ret_labels becomes a copy, or NULL when there is none. 0, or -1 with
 * ERROR_USAGE. */
int control_labels_parse(const json_t *value, json_t **ret_labels, struct error *err);

/* The parent by name, which must be attached now. value NULL: none. Nothing else is taken over from it. 0, or -1 with
 * ERROR_NOT_FOUND. */
int control_parent_find(
    struct control *control, const json_t *value, struct control_sandbox *sandbox, struct error *err);

/* The parent as stored: {"name","id"}; value NULL: none. 0, or -1 with ERROR_USAGE. */
int control_parent_parse(json_t *value, struct control_sandbox *sandbox, struct error *err);

/* Both as members of object, where there are any. */
void control_labels_format(json_t *object, const struct control_sandbox *sandbox);

#endif
