/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process table for tests of the keeper: the rows of gateway/posternd.c, with nothing to run. */
#ifndef POSTERN_TESTS_GATEWAY_ROLES_H
#define POSTERN_TESTS_GATEWAY_ROLES_H

#include "gateway/shared/role.h"

static const struct role test_roles[] = {
    {.kind = MSG_ROLE_AUDITOR, .name = "auditor"},
    {.kind = MSG_ROLE_GATEWAY, .name = "gateway", .sandboxes = true, .records = true, .geo = true},
    {.kind = MSG_ROLE_CONTROL, .name = "control", .records = true, .geo = true, .listener = true},
    {.name = NULL},
};

#endif
