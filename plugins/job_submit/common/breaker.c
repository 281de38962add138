/* The breaker: an advisor that does not answer costs each job a deadline, so after some misses it is left alone. */
#include "internal.h"

void gw_breaker_start(gw_breaker *breaker)
{
	atomic_init(&breaker->misses, 0);
	atomic_init(&breaker->until_ms, 0);
	atomic_init(&breaker->wait_ms, 0);
}

uint64_t gw_breaker_admit(gw_breaker *breaker, uint64_t now_ms, const gw_settings *settings)
{
	uint_least64_t until = atomic_load(&breaker->until_ms);
	uint64_t wait, next;

	if (!until)
		return GW_NO_PROBE;
	if (now_ms < until)
		return GW_REFUSED;
	/*
	 * Whoever moves the time of the next probe is this period's probe. The time is moved before the outcome is
	 * known: a probe that takes long is not joined by others meanwhile.
	 */
	wait = atomic_load(&breaker->wait_ms);
	next = now_ms + (wait ? wait : (uint64_t)settings->breaker_first_ms);
	if (atomic_compare_exchange_strong(&breaker->until_ms, &until, next))
		return next;
	return until ? GW_REFUSED : GW_NO_PROBE;
}

bool gw_breaker_answered(gw_breaker *breaker)
{
	atomic_store(&breaker->misses, 0);
	if (!atomic_load(&breaker->until_ms))
		return false;
	return atomic_exchange(&breaker->until_ms, 0) != 0;
}

static uint64_t doubled(uint64_t wait_ms, const gw_settings *settings)
{
	uint64_t most = (uint64_t)settings->breaker_max_ms;

	return wait_ms > most / 2 ? most : wait_ms * 2;
}

bool gw_breaker_missed(gw_breaker *breaker, uint64_t probe, uint64_t now_ms, const gw_settings *settings)
{
	uint_least64_t closed = 0, mine = probe;
	uint64_t wait;

	if (probe != GW_NO_PROBE) {
		wait = doubled(atomic_load(&breaker->wait_ms), settings);
		/* Where another answer has closed it meanwhile, it stays closed. */
		if (atomic_compare_exchange_strong(&breaker->until_ms, &mine, now_ms + wait))
			atomic_store(&breaker->wait_ms, wait);
		return false;
	}
	if (atomic_fetch_add(&breaker->misses, 1) + 1 < (unsigned)settings->breaker_misses)
		return false;
	wait = (uint64_t)settings->breaker_first_ms;
	if (!atomic_compare_exchange_strong(&breaker->until_ms, &closed, now_ms + wait))
		return false;
	atomic_store(&breaker->wait_ms, wait);
	return true;
}
