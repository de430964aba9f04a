/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of a process to stderr (and so to the journal), hostile bytes escaped; only process files call it. */
#ifndef POSTERN_BASE_LOG_H
#define POSTERN_BASE_LOG_H

/* Set the word in front of each message ("keeper"). ident must stay valid. When stderr is the journal
 * (JOURNAL_STREAM is set) each line carries its sd-daemon(3) priority prefix. */
void log_init(const char *ident);

void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A warning with ": strerror(errno)" appended, and one without. */
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warnx(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Message, then exit(1). For set-up errors and for own-process errors only. */
void log_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void log_fatalx(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
