/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct error_code_row {
	const char *text;
	int exit_status;
	unsigned int http_status;
};

static const struct error_code_row error_codes[] = {
    [ERROR_NONE] = {"ok", 0, 200},
    [ERROR_SYSTEM] = {"system", 1, 500},
    [ERROR_USAGE] = {"usage", 2, 400},
    [ERROR_UNREACHABLE] = {"unreachable", 3, 503},
    [ERROR_PERMISSION] = {"permission", 4, 403},
    [ERROR_POLICY] = {"policy_invalid", 5, 422},
    [ERROR_EXISTS] = {"exists", 1, 409},
    [ERROR_NOT_FOUND] = {"not_found", 1, 404},
    [ERROR_LIMIT] = {"limit", 1, 429},
    [ERROR_CORRUPT] = {"corrupt", 1, 500},
};
static_assert(sizeof(error_codes) / sizeof(error_codes[0]) == ERROR_CODE_MAX, "one row per error code");

int
error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return -1;
	err->code = code;
	err->sys_errno = 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
error_sys(struct error *err, int sys_errno, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (err == NULL)
		return -1;
	err->code = (sys_errno == EPERM || sys_errno == EACCES) ? ERROR_PERMISSION : ERROR_SYSTEM;
	err->sys_errno = sys_errno;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(sys_errno));
	return -1;
}

int
error_prefix(struct error *err, const char *fmt, ...)
{
	char old[ERROR_TEXT_MAX];
	va_list ap;
	size_t len;

	if (err == NULL)
		return -1;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", old);
	return -1;
}

static const struct error_code_row *
error_code_row(enum error_code code)
{
	assert(code < ERROR_CODE_MAX);
	return &error_codes[code];
}

int
error_exit_status(enum error_code code)
{
	return error_code_row(code)->exit_status;
}

unsigned int
error_http_status(enum error_code code)
{
	return error_code_row(code)->http_status;
}

const char *
error_code_text(enum error_code code)
{
	return error_code_row(code)->text;
}

enum error_code
error_code_parse(const char *text)
{
	for (unsigned int code = 0; code < ERROR_CODE_MAX; code++)
		if (strcmp(error_codes[code].text, text) == 0)
			return (enum error_code)code;
	return ERROR_SYSTEM;
}
