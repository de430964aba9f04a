/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Error object: a code that callers branch on and a text that a person reads; library folders fill it, never print. */
#ifndef POSTERN_BASE_ERROR_H
#define POSTERN_BASE_ERROR_H

#include <stdarg.h>

/* Longest message kept; longer ones are cut. Room for a path, a line, a cause and a remedy. */
#define ERROR_TEXT_MAX 1024

enum error_code {
	ERROR_NONE = 0,
	ERROR_SYSTEM,      /* a system call or library failed; sys_errno says which way */
	ERROR_USAGE,       /* the caller's words are off (exit 2, HTTP 400) */
	ERROR_UNREACHABLE, /* no daemon answers (exit 3) */
	ERROR_PERMISSION,  /* EPERM/EACCES (exit 4, HTTP 403) */
	ERROR_POLICY,      /* a policy or rule is invalid (exit 5, HTTP 422) */
	ERROR_EXISTS,      /* the name is taken (exit 1, HTTP 409) */
	ERROR_NOT_FOUND,   /* no such sandbox, rule, file (exit 1, HTTP 404) */
	ERROR_LIMIT,       /* a documented maximum was reached (exit 1, HTTP 429) */
	ERROR_CORRUPT,     /* stored state or a peer's message cannot be trusted (exit 1, HTTP 500) */
	ERROR_CODE_MAX
};

struct error {
	enum error_code code;
	int sys_errno; /* positive errno, 0 when none applies */
	char text[ERROR_TEXT_MAX];
};

/* Fill *err (NULL is accepted and ignored). Returns -1, so that "return error_set(...)" reads well. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like error_set, with ": strerror(sys_errno)" appended. EPERM and EACCES become ERROR_PERMISSION. */
int error_sys(struct error *err, int sys_errno, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " in front of the text. Returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The documented exit status of postern for a code (postern(1), EXIT STATUS). */
int error_exit_status(enum error_code code);

/* The HTTP status the control API answers for a code. */
unsigned int error_http_status(enum error_code code);

/* Stable lower-case word for a code, as in the API's "error" member. */
const char *error_code_text(enum error_code code);

/* The code for such a word; ERROR_SYSTEM for an unknown one. */
enum error_code error_code_parse(const char *text);

#endif
