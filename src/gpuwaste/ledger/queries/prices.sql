-- What a kilowatt-hour costs and emits by UTC hour.
prices AS (
    SELECT
        unnest($hours::BIGINT[]) AS hour_utc,
        unnest($price_per_kwh::DOUBLE[]) AS price_per_kwh,
        unnest($g_co2e_per_kwh::DOUBLE[]) AS g_co2e_per_kwh
)
