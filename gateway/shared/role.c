/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/role.h"

#include <stdio.h>
#include <string.h>

const struct role *
role_find(const struct role *roles, const char *name)
{
	while (roles->name != NULL && strcmp(roles->name, name) != 0)
		roles++;
	return roles->name == NULL ? NULL : roles;
}

void
role_confine(const struct role *role, const struct options *options)
{
	char empty[256];

	snprintf(empty, sizeof(empty), "%s/empty", options->runtime_dir);
	confine_process(&role->confinement, empty, options->uids[role->kind], options->group_gid);
}
