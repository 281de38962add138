"""What energy costs: the site's tariff by hour, kilowatt-hours, money and CO2e."""
