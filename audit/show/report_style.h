/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report's style sheet. Its digest stands in the page's content security policy: nothing else styles it. */
#ifndef POSTERN_AUDIT_REPORT_STYLE_H
#define POSTERN_AUDIT_REPORT_STYLE_H

/* Up to this width cells of tables stand below each other, or two or three side by side: the widest table needs more.
 */
#define REPORT_NARROW "74rem"

extern const char report_style[];

#endif
