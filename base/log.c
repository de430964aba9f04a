/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/log.h"

#include "base/escape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/* Longest line written; the rest is cut. */
#define LOG_LINE_MAX 2048

static const char *log_ident = "postern";
static bool log_to_journal;

void
log_init(const char *ident)
{
	log_ident = ident;
	log_to_journal = getenv("JOURNAL_STREAM") != NULL;
}

static void
log_write(int priority, const char *fmt, va_list ap, int sys_errno)
{
	char text[LOG_LINE_MAX], safe[LOG_LINE_MAX], line[LOG_LINE_MAX + 64];
	size_t len;
	int n;

	vsnprintf(text, sizeof(text), fmt, ap);
	if (sys_errno != 0) {
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, ": %s", strerror(sys_errno));
	}
	escape_terminal(text, strlen(text), safe, sizeof(safe));
	if (log_to_journal)
		n = snprintf(line, sizeof(line), "<%d>%s: %s\n", priority, log_ident, safe);
	else
		n = snprintf(line, sizeof(line), "%s: %s\n", log_ident, safe);
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		return; /* nowhere left to say it */
}

#define LOG_BODY(priority, sys_errno)                                                                                  \
	do {                                                                                                           \
		va_list ap;                                                                                            \
		int log_errno = (sys_errno);                                                                           \
		va_start(ap, fmt);                                                                                     \
		log_write(priority, fmt, ap, log_errno);                                                               \
		va_end(ap);                                                                                            \
	} while (0)

void
log_info(const char *fmt, ...)
{
	LOG_BODY(LOG_INFO, 0);
}

void
log_warn(const char *fmt, ...)
{
	LOG_BODY(LOG_WARNING, errno);
}

void
log_warnx(const char *fmt, ...)
{
	LOG_BODY(LOG_WARNING, 0);
}

void
log_fatal(const char *fmt, ...)
{
	LOG_BODY(LOG_CRIT, errno);
	exit(1);
}

void
log_fatalx(const char *fmt, ...)
{
	LOG_BODY(LOG_CRIT, 0);
	exit(1);
}
