/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/target.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	unsigned int port;
} target_schemes[] = {
    {"https", 443},
    {"http", 80},
    {"wss", 443},
    {"ws", 80},
    {"ssh", 22},
    {"git", 9418},
    {"ftp", 21},
};
#define TARGET_SCHEMES (sizeof(target_schemes) / sizeof(target_schemes[0]))

int
target_from_user(const char *text, char ret_target[TARGET_TEXT_MAX], struct error *err)
{
	const char *rest = strstr(text, "://"), *user;
	const char *bracket;
	size_t len, scheme = 0;
	int n;

	if (rest == NULL) {
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%s", text);
		return n >= TARGET_TEXT_MAX ? error_set(err, ERROR_USAGE, "the target is too long") : 0;
	}
	len = (size_t)(rest - text);
	while (scheme < TARGET_SCHEMES &&
	    (strlen(target_schemes[scheme].name) != len || strncasecmp(target_schemes[scheme].name, text, len) != 0))
		scheme++;
	if (scheme == TARGET_SCHEMES)
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
	/* "host:port" or "[v6]:port" */
	bracket = memrchr(rest, ']', len);
	if (memchr(bracket == NULL ? rest : bracket, ':', len - (bracket == NULL ? 0 : (size_t)(bracket - rest))) !=
	    NULL)
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%.*s", (int)len, rest);
	else
		n = snprintf(ret_target, TARGET_TEXT_MAX, "%.*s:%u", (int)len, rest, target_schemes[scheme].port);
	return n >= TARGET_TEXT_MAX ? error_set(err, ERROR_USAGE, "the target is too long") : 0;
}
