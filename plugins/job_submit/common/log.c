/* A line of the log. */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

void gw_say(gw_log log, const char *format, ...)
{
	char text[GW_LOG_BYTES];
	va_list arguments;

	if (!log)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log(text);
}
