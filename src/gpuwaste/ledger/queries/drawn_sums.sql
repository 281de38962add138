-- The sums of hours with their prices: energy, and how often it is multiplied by what an hour costs.
    sum(energy_j) AS energy_j,
    coalesce(sum(energy_j * price_per_kwh), 0) AS priced_j,
    coalesce(sum(energy_j * g_co2e_per_kwh), 0) AS carbon_j,
    count(*) FILTER (price_per_kwh IS NULL) AS hours_without_price,
    count(*) FILTER (g_co2e_per_kwh IS NULL) AS hours_without_carbon
