/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *
paths_set_by(const char *variable)
{
	const char *value = getenv(variable);

	return value != NULL && value[0] == '/' ? value : NULL;
}

const char *
paths_own_runtime_dir(void)
{
	static char path[PATH_MAX];
	const char *set = paths_set_by("POSTERN_RUNTIME_DIR");

	if (set != NULL)
		return set;
	if (geteuid() == 0)
		return PATHS_SYSTEM_RUNTIME;
	set = paths_set_by("XDG_RUNTIME_DIR");
	if (set != NULL)
		snprintf(path, sizeof(path), "%s/postern", set);
	else
		snprintf(path, sizeof(path), "/tmp/postern-%u", geteuid());
	return path;
}

const char *
paths_runtime_dir(void)
{
	static char path[PATH_MAX];
	const char *own = paths_own_runtime_dir();

	if (paths_set_by("POSTERN_RUNTIME_DIR") != NULL || geteuid() == 0)
		return own;
	snprintf(path, sizeof(path), "%s/control.sock", own);
	if (access(path, F_OK) < 0 && access(PATHS_SYSTEM_RUNTIME "/control.sock", F_OK) == 0)
		return PATHS_SYSTEM_RUNTIME;
	return own;
}

const char *
paths_own_state_dir(void)
{
	static char path[PATH_MAX];
	const char *set = paths_set_by("POSTERN_STATE_DIR");
	const char *home;

	if (set != NULL)
		return set;
	if (geteuid() == 0)
		return PATHS_SYSTEM_STATE;
	set = paths_set_by("XDG_STATE_HOME");
	home = paths_set_by("HOME");
	if (set != NULL)
		snprintf(path, sizeof(path), "%s/postern", set);
	else
		snprintf(path, sizeof(path), "%s/.local/state/postern", home != NULL ? home : "/nonexistent");
	return path;
}

const char *
paths_country_db(void)
{
	return paths_set_by("POSTERN_COUNTRY_DB");
}

const char *
paths_asn_db(void)
{
	return paths_set_by("POSTERN_ASN_DB");
}

const char *
paths_state_dir(void)
{
	if (paths_set_by("POSTERN_STATE_DIR") == NULL && strcmp(paths_runtime_dir(), PATHS_SYSTEM_RUNTIME) == 0)
		return PATHS_SYSTEM_STATE;
	return paths_own_state_dir();
}
