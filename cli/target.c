/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/target.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct target_scheme {
	const char *name;
	unsigned int port;
};

static const struct target_scheme target_schemes[] = {
    {"https", 443},
    {"http", 80},
    {"wss", 443},
    {"ws", 80},
    {"ssh", 22},
    {"git", 9418},
    {"ftp", 21},
};

static const struct target_scheme *
target_scheme(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(target_schemes) / sizeof(target_schemes[0]); i++)
		if (strlen(target_schemes[i].name) == len && strncasecmp(target_schemes[i].name, text, len) == 0)
			return &target_schemes[i];
	return NULL;
}

/* Does "host", "host:port", "[v6]" or "[v6]:port" name a port? */
static bool
target_has_port(const char *authority, size_t len)
{
	const char *end = memrchr(authority, ']', len);
	const char *from = end == NULL ? authority : end;

	return memchr(from, ':', len - (size_t)(from - authority)) != NULL;
}

int
target_from_user(const char *text, char ret_target[TARGET_TEXT_MAX], struct error *err)
{
	const char *rest = strstr(text, "://"), *user;
	const struct target_scheme *scheme;
	size_t len;
	int n;

	if (rest == NULL) {
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%s", text);
		return n >= TARGET_TEXT_MAX ? error_set(err, ERROR_USAGE, "the target is too long") : 0;
	}
	scheme = target_scheme(text, (size_t)(rest - text));
	if (scheme == NULL)
		return error_set(
		    err, ERROR_USAGE, "'%.*s://': unknown scheme; write HOST:PORT", (int)(rest - text), text);
	rest += 3;
	len = strcspn(rest, "/?#");
	if (memchr(rest, '\\', len) != NULL)
		return error_set(err, ERROR_USAGE,
		    "'%.100s': to some programs '\\' ends the host, to others it does not; write HOST:PORT", text);
	user = memrchr(rest, '@', len);
	if (user != NULL) {
		len -= (size_t)(user + 1 - rest);
		rest = user + 1;
	}
	if (len == 0 || rest[0] == ':')
		return error_set(err, ERROR_USAGE, "'%.100s' names no host", text);
	if (target_has_port(rest, len))
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%.*s", (int)len, rest);
	else
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%.*s:%u", (int)len, rest, scheme->port);
	return n >= TARGET_TEXT_MAX ? error_set(err, ERROR_USAGE, "the target is too long") : 0;
}
