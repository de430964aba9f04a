/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_target.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Cut "/udp" or "/tcp" off the end. */
static uint8_t
target_proto(const char *text, size_t *len)
{
	if (*len > 4 && memcmp(text + *len - 4, "/udp", 4) == 0) {
		*len -= 4;
		return IPPROTO_UDP;
	}
	if (*len > 4 && memcmp(text + *len - 4, "/tcp", 4) == 0)
		*len -= 4;
	return IPPROTO_TCP;
}

static bool
target_port(const char *text, size_t len, uint16_t *ret_port)
{
	unsigned int port = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (unsigned int)(text[i] - '0');
	}
	if (port < 1 || port > 65535)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

/* "[v6]" or "[v6]:port" */
static int
target_brackets(const char *text, size_t len, struct control_target *target, struct error *err)
{
	const char *end = memchr(text, ']', len);
	size_t inside = end == NULL ? 0 : (size_t)(end - text) - 1, rest = len - inside - 2;

	target->is_addr = true;
	if (end == NULL || !addr_parse(text + 1, inside, &target->addr) ||
	    (rest > 0 && (end[1] != ':' || !target_port(end + 2, rest - 1, &target->port))))
		return error_set(err, ERROR_USAGE, "the target must look like [2600::1]:443");
	return 0;
}

int
control_target_parse(const char *text, struct control_target *ret_target, struct error *err)
{
	struct control_target target = {.port = CONTROL_TARGET_PORT};
	size_t len = strlen(text);
	const char *colon;

	target.proto = target_proto(text, &len);
	colon = memrchr(text, ':', len);
	if (len == 0)
		return error_set(err, ERROR_USAGE, "the target is empty; name a host, such as example.com:443");
	if (text[0] == '[') {
		if (target_brackets(text, len, &target, err) < 0)
			return -1;
		*ret_target = target;
		return 0;
	}
	if (colon != NULL && memchr(text, ':', (size_t)(colon - text)) == NULL) {
		if (!target_port(colon + 1, len - (size_t)(colon - text) - 1, &target.port))
			return error_set(err, ERROR_USAGE, "the port must be a number from 1 to 65535");
		len = (size_t)(colon - text);
	}
	target.is_addr = addr_parse(text, len, &target.addr);
	if (!target.is_addr)
		target.name_error = name_from_user(text, len, &target.name);
	*ret_target = target;
	return 0;
}
